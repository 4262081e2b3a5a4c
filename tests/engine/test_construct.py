"""Construction: hard rules cost little and change nothing else, gangs find their accelerators, hints are checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.support.mig_specs import card, full_mig, mig_request
from tests.support.mixed_specs import mixed
from tests.support.plans import plan_for
from tests.support.specs import CARD, make_spec, node, place, places, policy, replica, request, role, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.engine.construction import construct as module
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Gradient
from dovetail.engine.construction.outlook import NOWHERE, Outlook, Spoilage
from dovetail.engine.construction.part_outlook import PartOutlook
from dovetail.engine.construction.placing import Outlooks, Put
from dovetail.mig import Instance
from dovetail.model.expand import expand
from dovetail.model.legal import legalise
from dovetail.model.state import State, today_state
from dovetail.placement import Place, Places
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import context_of
from dovetail.rules.guards import SkewGuard
from dovetail.rules.modes import Modes
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.reserve import Reserve
from dovetail.rules.spread import Spread
from dovetail.spec import Enforcement, NodeSelector, ReplicaId, Spec, WorkloadSelector
from dovetail.spec.cluster import EqualParts
from dovetail.verify import verify


def constructed(problem: Problem, start: State | None = None, hint: Places | None = None) -> dict[ReplicaId, Place]:
    return dict(expand(problem, module.construct(problem, start or today_state(problem), Stop(), hint)))


def compiled(spec: Spec) -> Problem:
    return compile_problem(context_of(spec))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often places are held against the guards, and how often outlooks are brought up to date."""
    counts: Counter[str] = Counter()
    blocked, refresh = Field.turned_away, Outlook.refresh

    def counted_blocked(self: Field, index: int, shape: int, gpu: int | None) -> bool:
        counts["blocked"] += 1
        return blocked(self, index, shape, gpu)

    def counted_refresh(self: Outlook) -> None:
        counts["refresh"] += 1
        refresh(self)

    monkeypatch.setattr(Field, "turned_away", counted_blocked)
    monkeypatch.setattr(Outlook, "refresh", counted_refresh)
    return counts


# ---------------------------------------------------------------------- hard rules


def test_a_full_quota_is_asked_without_any_node(asked: Counter[str]) -> None:
    spec = make_spec(
        [node(f"n{i}", 4) for i in range(20)],
        [workload("w", 50, gpus=1)],
        [policy("few", Quota(limits=(("gpus", 3000),)))],
    )
    assert len(constructed(compiled(spec))) == 3
    assert asked == {"blocked": 3, "refresh": 3}


def test_what_a_cohort_lends_is_counted_for_all_who_borrow() -> None:
    """Each may have ten of its own, and the third has lent what it does not ask for: four."""
    own = Quota(guaranteed=(("gpus", 10_000),), cohort="all")
    names = ("a", "b", "c")
    policies = [policy(name, own, workloads=WorkloadSelector(namespaces=(name,))) for name in names]
    work = [workload(f"{name}/w", count, gpus=1) for name, count in zip(names, (20, 20, 6), strict=True)]
    problem = compiled(make_spec([node(f"n{i}", 4) for i in range(20)], work, policies))
    assert len(constructed(problem)) == 30


@pytest.mark.parametrize(("rule", "allowed"), [(Require(), {"n3", "n7"}), (Forbid(), {"n0", "n1", "n2", "n4"})])
def test_closed_nodes_are_no_hosts(rule: Require | Forbid, allowed: set[str], asked: Counter[str]) -> None:
    named = NodeSelector(names=("n3", "n7") if isinstance(rule, Require) else ("n3", "n5", "n6", "n7"))
    spec = make_spec(
        [node(f"n{i}", 1) for i in range(8)],
        [workload("w", 8, gpus=1), workload("x", 8, cpu=100)],
        [policy("here", rule, workloads=WorkloadSelector(names=("w",)), nodes=named)],
    )
    problem = compiled(spec)
    found = constructed(problem)
    assert {place.node for name, place in found.items() if name.workload == "w"} == allowed
    assert len(found) == 8 + len(allowed)
    assert asked["blocked"] == len(found)


def test_a_shape_without_a_place_is_not_asked_again(asked: Counter[str]) -> None:
    spec = make_spec([node("n", 2)], [workload("w", 30, gpus=1), workload("wide", 30, gpus=4)])
    assert len(constructed(compiled(spec))) == 2
    assert asked["refresh"] == 4  # two are placed, and each shape finds no place once


def test_blocked_nodes_are_remembered(asked: Counter[str]) -> None:
    spec = make_spec(
        [node(f"n{i}", 8) for i in range(12)],
        [workload("w", 40, gpus=1)],
        [policy("thin", Spread(over="node", max_per_domain=2))],
    )
    assert len(constructed(compiled(spec))) == 24
    assert asked["blocked"] <= 24 + 12


def test_a_skew_opens_what_it_blocked() -> None:
    spec = make_spec(
        [node(f"n{i}", 4) for i in range(5)],
        [workload("w", 17, share=250)],
        [policy("even", Spread(over="node", max_skew=1))],
    )
    counts = Counter(place.node for place in constructed(compiled(spec)).values())
    assert sorted(counts.values()) == [3, 3, 3, 4, 4]


def test_shares_stay_off_gpus_whose_mode_a_policy_closes() -> None:
    spec = make_spec(
        [node("turns", 4), node("parts", 2, mechanism="devicePlugin", sharing=EqualParts(mps=2))],
        [workload("w", 6, share=250)],
        [policy("calm", Modes(("whole", "mps")))],
    )
    counts = Counter(place.node for place in constructed(compiled(spec)).values())
    assert counts == {"parts": 4}


def test_shares_stay_off_idle_gpus_where_policies_leave_no_mode_that_will_do() -> None:
    turns, parts = EqualParts(mps=0), EqualParts(mps=2)
    spec = make_spec(
        [node("turns", 4, mechanism="dra", sharing=turns), node("parts", 2, mechanism="dra", sharing=parts)],
        [workload("w", 6, share=250)],
        [policy("calm", Modes(("mps",)))],
    )
    counts = Counter(place.node for place in constructed(compiled(spec)).values())
    assert counts == {"parts": 4}


@pytest.mark.parametrize("enforcement", ["hard", 1])
def test_places_are_held_where_they_count(enforcement: str | int) -> None:
    nodes = [node(name, 2, domains={"rack": rack}) for name, rack in (("a", "r"), ("b", "s"), ("c", "s"))]
    here = policy("here", Reserve(1, request(1)), nodes=NodeSelector(names=("c",)), enforcement=enforcement)
    near = policy("near", Reserve(3, request(1), within="rack"), enforcement=enforcement)
    found = constructed(compiled(make_spec(nodes, [workload("w", gpus=1)], [here, near], levels=("rack", "node"))))
    held = {
        kept: {place.node for name, place in found.items() if name.workload == kept}
        for kept in ("hold:here", "hold:near")
    }
    assert held["hold:here"] == {"c"}
    assert held["hold:near"] in ({"a"}, {"b"}, {"b", "c"})


def test_a_failed_gang_leaves_no_memory_of_what_blocked_it() -> None:
    gang = workload("a-gang", type="gang", roles=[role("x", 2, request(gpus=1)), role("y", 1, request(gpus=4))])
    spec = make_spec(
        [node("n0", 2), node("n1", 2)],
        [gang, workload("b", 4, gpus=1)],
        [policy("thin", Spread(over="node", max_per_domain=2))],
    )
    assert Counter(r.workload for r in constructed(compiled(spec))) == {"b": 4}


@pytest.mark.parametrize("turns", [None, 1, 3])
def test_memory_and_rows_change_no_placement(monkeypatch: pytest.MonkeyPatch, turns: int | None) -> None:
    if turns:
        monkeypatch.setattr(module, "EXACT", 0)
        monkeypatch.setattr(module, "TURNS", turns)
    problems = [compiled(_all_hard(tiny(seed), Random(seed))) for seed in range(250)]
    with_memory = [constructed(problem) for problem in problems]
    place = Outlooks.place

    def forgetful(self: Outlooks, shape: int, count: int, models: frozenset[str] | None = None) -> list[Put]:
        puts: list[Put] = []
        for _ in range(count):
            self.reopen(shape)
            puts += place(self, shape, 1, models)
        return puts

    monkeypatch.setattr(Outlooks, "place", forgetful)
    assert [constructed(problem) for problem in problems] == with_memory


@pytest.mark.parametrize("turns", [1, 2, 20])
def test_turns_of_many_replicas_keep_every_hard_rule(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    monkeypatch.setattr(module, "EXACT", 0)
    monkeypatch.setattr(module, "TURNS", turns)
    ruled: Counter[str] = Counter()
    for seed in range(0, 200, 2):
        spec = _more(_all_hard(tiny(seed), Random(seed)))
        spec = replace(spec, policies=tuple(p for p in spec.policies if p.rule.kind != "admission"))
        problem = compiled(spec)
        state = legalise(problem, module.construct(problem, today_state(problem), Stop()))
        found = verify(spec, plan_for(spec, expand(problem, state), "feasible"))
        assert not [(seed, check.name, check.findings) for check in found.checks if check.findings]
        ruled.update(policy.rule.kind for policy in spec.policies)
    assert {"separate", "exclusive", "spread", "quota", "require", "forbid"} <= ruled.keys()


def test_one_node_ranks_as_all_nodes_do() -> None:
    for seed in range(60):
        problem = compiled(_all_hard(tiny(seed), Random(seed)))
        field = Field(problem, module.construct(problem, today_state(problem), Stop()))
        spoilage = Spoilage(field, Gradient(problem))
        for shape in problem.shapes:
            outlook = Outlook(field, spoilage, shape)
            outlook.refresh()
            at_once = outlook.ranks.tolist()
            gpus = [outlook.gpu(node) for node, rank in enumerate(at_once) if rank < NOWHERE]
            one_by_one = [
                outlook.again(node) if host else NOWHERE for node, host in enumerate(field.hosts(shape).tolist())
            ]
            assert one_by_one == at_once
            assert [outlook.gpu(node) for node, rank in enumerate(at_once) if rank < NOWHERE] == gpus


def test_where_no_gpu_may_be_cut_nothing_is_ranked_for_instances() -> None:
    """The mixed Spec of this seed has GPUs that stay as they are with their nodes, and none that is cut."""
    problem = compiled(mixed(8069))
    field = Field(problem, today_state(problem))
    forms = [shape for shape in problem.shapes if shape.request.may_use_mig and shape.request.share is None]
    outlooks = [PartOutlook(field, shape) for shape in forms]
    for outlook in outlooks:
        outlook.refresh()
    assert outlooks
    assert all((outlook.ranks == NOWHERE).all() for outlook in outlooks)


def test_nodes_ranked_at_once_for_instances_rank_as_one_by_one() -> None:
    seen: Counter[bool] = Counter()
    for spec in (draw(seed) for draw in (mixed, full_mig) for seed in range(60)):
        problem = compiled(spec)
        outlooks = Outlooks(Field(problem, today_state(problem)))
        field = outlooks.field
        for shape in problem.shapes:
            if not shape.request.may_use_mig:
                continue
            outlook = PartOutlook(field, shape)
            outlook.refresh()
            for index in np.flatnonzero(field.hosts(shape)).tolist():
                found = outlook.places(index) if field.host_fits(shape, index) else []
                assert outlook.ranks[index] == (found[0][0] if found else NOWHERE)
                assert not found or outlook.gpu(index) == found[0][1]
                seen[bool(found)] += 1
            outlooks.place(shape.index, 1)
    assert min(seen.values()) > 10


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_a_state_is_taken_over_as_it_is(seed: int) -> None:
    problem = compiled(tiny(seed))
    field = Field(problem, State())
    outlooks = Outlooks(field)
    for shape in problem.shapes:
        outlooks.place(shape.index, shape.demand)
    again = Field(problem, field.state())
    assert again.state() == field.state()
    assert again.admitted == +field.admitted
    for name in ("cpu", "memory", "untouched", "partly"):
        assert getattr(again, name).tolist() == getattr(field, name).tolist()
    assert [sorted(row) for row in again.gpus.tolist()] == [sorted(row) for row in field.gpus.tolist()]


def _more(spec: Spec) -> Spec:
    """Return a Spec that asks for five times the replicas of what does not stand or fall together."""
    found = []
    for work in spec.workloads:
        factor = 1 if work.atomic else 5
        roles = tuple(replace(one, replicas=factor * one.replicas) for one in work.roles)
        found.append(replace(work, roles=roles))
    return replace(spec, workloads=tuple(found))


def _all_hard(spec: Spec, rng: Random) -> Spec:
    policies = []
    for one in spec.policies:
        rule = one.rule
        if isinstance(rule, Spread) and rng.random() < 0.5:
            rule = replace(rule, max_per_domain=None, max_skew=rng.choice((0, 1)))
        policies.append(replace(one, rule=rule, enforcement=Enforcement("hard")))
    return replace(spec, policies=tuple(policies))


def test_the_skew_guard_knows_the_emptiest_domain() -> None:
    spec = make_spec(
        [node(f"n{i}", 4) for i in range(4)],
        [workload("w", 9, gpus=1), workload("x", 1)],
        [policy("even", Spread(over="node", max_skew=1), workloads=WorkloadSelector(names=("w",)))],
    )
    guard = spec.policies[0].rule.guard(context_of(spec).scopes["even"])
    assert isinstance(guard, SkewGuard)
    work, other = spec.by_id["w"], spec.by_id["x"]
    held: Counter[str] = Counter()
    rng, opened, least = Random(1), guard.opened(work), 0
    for _ in range(400):
        there = rng.choice(spec.cluster.nodes)
        count = rng.choice((1, 2, -1)) if held[there.name] else rng.choice((1, 2))
        held[there.name] += count
        guard.add(work, work.roles[0], there, None, count)
        guard.add(other, other.roles[0], there, None, 1)
        now = min(held[n.name] for n in spec.cluster.nodes)
        assert (guard.opened(work) > opened) == (now > least)
        opened, least = guard.opened(work), now
        for n in spec.cluster.nodes:
            assert guard.blocks(work, work.roles[0], n, None) == (held[n.name] + 1 - least > 1)
            assert not guard.blocks(other, other.roles[0], n, None)


# ---------------------------------------------------------------------- gangs


def test_each_role_of_a_gang_finds_its_own_accelerator() -> None:
    gang = workload(
        "g",
        type="gang",
        mix="perRole",
        roles=[
            role("x", 2, request(gpus=1), accelerators=(CARD,)),
            role("y", 2, request(gpus=1), accelerators=("L4",)),
            role("z", 1, request()),
        ],
    )
    found = constructed(compiled(make_spec([node("a", 2), node("b", 2, accelerator="L4")], [gang])))
    assert {str(r): p.node for r, p in found.items() if r.role != "z"} == {
        "g.x#0": "a", "g.x#1": "a", "g.y#0": "b", "g.y#1": "b",
    }  # fmt: skip
    assert len(found) == 5


def test_the_role_with_least_choice_goes_first() -> None:
    gang = workload(
        "g",
        type="gang",
        mix="perRole",
        roles=[role("any", 2, request(gpus=1)), role("picky", 2, request(gpus=1), accelerators=("A100-40GB",))],
    )
    spec = make_spec([node("a", 2, accelerator="A100-40GB"), node("h", 2)], [gang])
    found = constructed(compiled(spec))
    assert Counter((r.role, p.node) for r, p in found.items()) == {("any", "h"): 2, ("picky", "a"): 2}


def test_a_gang_that_is_only_half_placed_leaves_nothing() -> None:
    gang = workload(
        "g",
        type="gang",
        mix="perRole",
        roles=[role("x", 2, request(gpus=1), accelerators=(CARD,)), role("y", 3, request(gpus=1))],
    )
    spec = make_spec([node("a", 4), node("b", 2, accelerator="L4")], [gang, workload("w", 9, gpus=1)])
    assert Counter(r.workload for r in constructed(compiled(spec))) == {"w": 6}


def test_a_role_that_lost_replicas_stays_on_its_accelerator() -> None:
    gang = workload("g", type="gang", mix="perRole", movable=True, roles=[role("x", 2, request(gpus=1))])
    spec = make_spec(
        [node("a", 4, accelerator="A100-40GB"), node("b", 4, accelerator="L4")],
        [gang],
        running={"g.x#0": place("b", 0)},
    )
    assert {p.node for p in constructed(compiled(spec)).values()} == {"b"}


def test_a_role_without_gpu_says_nothing_of_the_accelerator() -> None:
    gang = workload(
        "g", type="gang", movable=True, roles=[role("cpu", 1, request()), role("gpu", 2, request(gpus=1))]
    )
    spec = make_spec([node("a", 4), node("b", 1, accelerator="L4")], [gang], running={"g.cpu#0": place("b")})
    assert {str(r): p.node for r, p in constructed(compiled(spec)).items()} == {
        "g.cpu#0": "b", "g.gpu#0": "a", "g.gpu#1": "a",
    }  # fmt: skip


def test_no_instance_is_taken_on_a_failed_gpu_of_a_node_that_is_cut_as_a_whole() -> None:
    product, profile = "A100-40GB", "1g.5gb"
    cut = tuple(Instance(profile, start) for start in range(2))
    work = workload("w", roles=[role("", 5, mig_request(product, profile))])
    running = {"w#0": Place("a", (1,), f"{profile}@0")}
    spec = make_spec([node("a", 2, accelerator=product, failed_gpus=frozenset({0}))], [work], running=running)
    spec = replace(
        spec,
        accelerators={**spec.accelerators, product: card(product)},
        cluster=replace(spec.cluster, reconfiguration="node"),
        current=replace(spec.current, gpus={"a/0": cut, "a/1": cut}),
    )
    assert {where.gpus for where in constructed(compiled(spec)).values()} == {(1,)}
    plan = solve(spec, Limits(work=1.0))
    assert plan.outcome.status == "optimal"
    assert verify(spec, plan).ok


# ---------------------------------------------------------------------- hints, immovable work


@pytest.mark.parametrize("gpus", [(-1, 0), (0, 2), (0, 9), (1, 1), (0,), (0, 1, 2), ()])
def test_a_hint_with_gpus_that_are_not_there_is_ignored(gpus: tuple[int, ...]) -> None:
    problem = compiled(make_spec([node("a", 2), node("b", 4)], [workload("w", 1, gpus=2)]))
    field = Field(problem, State())
    module._follow(field, replica("w#0"), place("a", *gpus))
    assert not field.fills


def test_a_sound_hint_is_followed() -> None:
    problem = compiled(make_spec([node("a", 2), node("b", 2)], [workload("w", 1, share=500)]))
    for gpus in ((-1,), (5,)):
        assert constructed(problem, hint=places({"w#0": place("b", *gpus)})) == places({"w#0": place("a", 0)})
    assert constructed(problem, hint=places({"w#0": place("b", 1)})) == places({"w#0": place("b", 0)})


def test_evicted_work_that_may_not_move_is_not_restarted_elsewhere() -> None:
    spec = make_spec(
        [node("a", 1), node("b", 2)],
        [workload("low", 2, gpus=1, preemptible=True, movable=False)],
        running={"low#0": place("a", 0)},
    )
    problem = compiled(spec)
    assert constructed(problem, State()) == {}
    assert constructed(problem, State(), places({"low#1": place("b", 0)})) == {}
    assert constructed(problem) == places({"low#0": place("a", 0), "low#1": place("b", 0)})
