"""Every policy of every shipped pack, by an example: what it lets pass and what it tells."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.build.text import cluster, documents, project, workload

from dovetail.build import assemble, build, contradictions
from dovetail.documents import load_project, load_text
from dovetail.placement import Place
from dovetail.plan.policies import policies_of
from dovetail.resources import pack_names, pack_text
from dovetail.rules import context_of
from dovetail.rules.move import Move
from dovetail.spec import Current, PresentReplica, ReplicaId, Spec

AS_OF = dt.date(2026, 6, 1)
NODES = cluster(
    """
    {name: g, count: 3, accelerator: H100-80GB, gpus: 8, sharing: {mechanism: fraction}}
    {name: c, count: 2, accelerator: H100-80GB, gpus: 8, labels: {compliance: certified}}
    """
)
WORK = [
    workload("type: gang\npriority: 900\nreplicas: 2\nrequest: {gpus: 4}", "gang", ", namespace: a"),
    workload("type: service\nreplicas: 3\nrequest: {share: {compute: 0.5, memory: 8Gi}}", "web", ", namespace: a"),
    workload("type: job\nreplicas: 31\nrequest: {gpus: 1}", "queue", ", namespace: a"),
    workload("type: job\nreplicas: 40\nrequest: {gpus: 1}", "sweep", ", namespace: b"),
    workload("type: job\nreplicas: 2\nrequest: {share: {compute: 0.5, memory: 8Gi}}", "nb", ", namespace: b"),
    workload("type: job\nrequest: {gpus: 1}", "health", ", namespace: a, labels: {data: regulated}"),
    workload("type: job\nrequest: {gpus: 1}", "bank", ", namespace: b, labels: {data: regulated}"),
]
Rows = Mapping[str, tuple[str, tuple[int, ...]]]
GANG: Rows = {"a/gang#0": ("g-000", (0, 1, 2, 3)), "a/gang#1": ("g-001", (0, 1, 2, 3))}
WEB: Rows = {f"a/web#{i}": (f"g-00{i}", (7,)) for i in range(3)}
NAMES = ("g-000", "g-001", "g-002", "c-000", "c-001")
MANY: Rows = {f"b/sweep#{i}": (NAMES[i // 8], (i % 8,)) for i in range(33)}
CASES: tuple[tuple[str, Rows, Rows | None, Rows], ...] = (
    # policy, what runs today, a placement that it takes (None: there is none, as more is asked for than there is),
    # one that it tells
    ("services-spread-over-nodes", {}, WEB, {f"a/web#{i}": ("g-000", (i,)) for i in range(3)}),
    ("tenants-sharing-a-gpu", {}, WEB, {"a/web#0": ("g-000", (7,)), "b/nb#0": ("g-000", (7,))}),
    ("gangs-stay-put", GANG, GANG, {**GANG, "a/gang#1": ("g-002", (0, 1, 2, 3))}),
    ("gangs-own-their-nodes", {}, GANG, {**GANG, "b/sweep#0": ("g-000", (7,))}),
    ("urgent-gangs-are-admitted", {}, GANG, {}),
    ("services-are-admitted", {}, WEB, {"a/web#0": ("g-000", (7,))}),
    ("service-replicas-on-nodes-of-their-own", {}, WEB, {"a/web#0": ("g-000", (7,)), "a/web#1": ("g-000", (6,))}),
    ("a-spare-node", {}, WEB, {f"b/sweep#{i}": (name, (0,)) for i, name in enumerate(NAMES)}),
    ("services-stay-put", WEB, WEB, {**WEB, "a/web#0": ("g-000", (6,))}),
    ("jobs-per-tenant", {}, {key: MANY[key] for key in list(MANY)[:32]}, MANY),
    ("jobs-that-wait", {}, None, {"a/health#0": ("c-000", (0,))}),
    ("tenants-never-share-memory", {}, WEB, {"a/web#0": ("g-000", (7,)), "b/nb#0": ("g-000", (7,))}),
    ("tenants-with-half-the-cluster", {}, WEB, MANY),
    ("tenants-sharing-a-node", {}, WEB, {"a/web#0": ("g-000", (7,)), "b/nb#0": ("g-000", (6,))}),
    ("regulated-work-on-certified-nodes", {}, {"a/health#0": ("c-000", (0,))}, {"a/health#0": ("g-000", (0,))}),
    (
        "regulated-work-shares-no-node",
        {},
        {"a/health#0": ("c-000", (0,))},
        {"a/health#0": ("c-000", (0,)), "b/sweep#0": ("c-000", (1,))},
    ),
    (
        "tenants-of-regulated-work-stay-apart",
        {},
        {"a/health#0": ("c-000", (0,)), "b/bank#0": ("c-001", (0,))},
        {"a/health#0": ("c-000", (0,)), "b/bank#0": ("c-000", (1,))},
    ),
    ("certified-nodes-are-kept-free", {}, GANG, {"b/sweep#0": ("c-000", (0,))}),
    ("regulated-work-that-waits", {}, {"a/health#0": ("c-000", (0,)), "b/bank#0": ("c-001", (0,))}, {}),
)
ELSEWHERE = {"move-budget"}  # fifty moves are too many to write down


def with_all_packs(today: Rows) -> Spec:
    chosen = project(f"packs: [{', '.join(pack_names())}]")
    packs = [document for name in pack_names() for document in load_text(pack_text(name), f"{name}.yaml")]
    given = documents(chosen, NODES, *WORK)
    given = type(given)((*given.documents, *packs), given.root)
    rows = tuple(PresentReplica(id_of(key), node, gpus) for key, (node, gpus) in today.items())
    return assemble(given, current=Current(rows), as_of=AS_OF).spec


def id_of(key: str) -> ReplicaId:
    workload, _, ordinal = key.partition("#")
    return ReplicaId(workload, "", int(ordinal))


def result(name: str, today: Rows, rows: Rows) -> str:
    spec = with_all_packs(today)
    context = context_of(spec)
    view = context.view({id_of(key): Place(node, gpus) for key, (node, gpus) in rows.items()})
    found = policies_of(view, context)[name]
    assert bool(found.subjects) == (found.result == "fail")
    return found.result


@pytest.mark.parametrize(("name", "today", "fine", "wrong"), CASES, ids=[name for name, *_ in CASES])
def test_a_policy_of_a_pack_takes_and_tells_what_it_says(
    name: str, today: Rows, fine: Rows | None, wrong: Rows
) -> None:
    assert fine is None or result(name, today, fine) == "pass"
    assert result(name, today, wrong) == "fail"


def test_the_move_budget_is_fifty() -> None:
    (budget,) = (policy for policy in with_all_packs({}).policies if policy.name == "move-budget")
    assert budget.rule == Move(max_moves=50)


def test_every_policy_of_every_pack_has_an_example() -> None:
    shipped = {policy.name for policy in with_all_packs({}).policies}
    assert {name for name, *_ in CASES} | ELSEWHERE == shipped


def test_all_packs_go_together(tmp_path: Path) -> None:
    (tmp_path / "dovetail.yaml").write_text(project(f"packs: [{', '.join(pack_names())}]") + "---\n" + NODES)
    given = load_project(tmp_path)
    spec = build(given, as_of=AS_OF)
    assert contradictions(given, spec) == ()
    assert {policy.origin for policy in spec.policies} == set(pack_names())
