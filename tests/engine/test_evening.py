"""No difference between domains: replicas come in rounds, what found no match goes, and what runs stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, places, policy, request, role, workload

from dovetail.engine import solve
from dovetail.engine.construction.evening import even_out
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.engine.start import start
from dovetail.model.legal import legalise
from dovetail.model.score import hard_policies, owed, sound, view_of
from dovetail.model.state import State, today_state
from dovetail.placement import Place
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import context_of
from dovetail.rules.spread import Spread
from dovetail.rules.topology import policy_of
from dovetail.spec import Group, Node, Policy, Spec, Topology, Workload, WorkloadSelector
from dovetail.verify import verify

MATCHED = WorkloadSelector(types=("service", "gang"))
EVEN = policy("even", Spread(over="zone", max_skew=0), workloads=MATCHED)


def zones(*gpus: Sequence[int]) -> list[Node]:
    """Return zones of nodes that have so many GPUs each."""
    return [
        node(f"{zone}{i}", count, domains={"zone": zone})
        for zone, counts in zip("abc", gpus, strict=False)
        for i, count in enumerate(counts)
    ]


def spec_of(
    nodes: Sequence[Node],
    work: Sequence[Workload],
    *more: Policy,
    running: Mapping[str, Place] | None = None,
) -> Spec:
    held = policy_of(work)
    return make_spec(nodes, work, [EVEN, *more, *([held] if held else [])], running=running, levels=("zone", "node"))


def compiled(spec: Spec) -> Problem:
    return compile_problem(context_of(spec))


def begun(spec: Spec) -> dict[str, list[int]]:
    """Return the replicas by zone of each workload where a search starts, which breaks no more than today."""
    problem = compiled(spec)
    state, unpaid = start(problem, None, Stop())
    before = legalise(problem, today_state(problem))
    assert unpaid <= owed(problem, before, hard_policies(problem))
    view = view_of(problem, state)
    assert sound(problem, view) or not sound(problem, view_of(problem, before))
    found = Counter(
        (replica.workload, spec.cluster.by_name[at.node].domain("zone")) for replica, at in view.places.items()
    )
    paths = sorted({path for n in spec.cluster.nodes if (path := n.domain("zone")) is not None})
    return {w.id: [found[w.id, path] for path in paths] for w in spec.workloads}


@pytest.mark.parametrize(
    ("replicas", "room", "each"),
    [(12, 4, 4), (13, 8, 4), (14, 8, 4), (2, 8, 0), (12, 3, 3)],
)
def test_services_come_in_rounds(replicas: int, room: int, each: int) -> None:
    nodes = zones([4, 4], [4, 4], [room])
    assert begun(spec_of(nodes, [workload("s", replicas, type="service", gpus=1)])) == {"s": [each] * 3}


def test_what_goes_leaves_room_to_others() -> None:
    work = [workload("s", 4, type="service", gpus=1), workload("j", 6, gpus=1)]
    found = begun(spec_of(zones([4], [4]), work))
    assert found["s"][0] == found["s"][1]
    assert sum(map(sum, found.values())) == 8
    odd = begun(
        spec_of(zones([2], [1]), [workload("s", 3, type="service", gpus=1), workload("j", 3, gpus=1, priority=-1)])
    )
    assert odd == {"s": [1, 1], "j": [1, 0]}


@pytest.mark.parametrize(("least", "each"), [(2, 2), (4, 2), (5, 0)])
def test_too_few_rounds_are_none(least: int, each: int) -> None:
    nodes = zones([4], [2])
    work = [workload("s", 7, type="service", gpus=1, min_replicas=least), workload("z", 2, gpus=1, priority=-1)]
    assert begun(spec_of(nodes, work))["s"] == [each, each]


@pytest.mark.parametrize("topology", [None, Topology(prefer="zone"), Topology(groups=(Group("node", 2),))])
@pytest.mark.parametrize(("replicas", "each"), [(8, 4), (6, 3)])
def test_gangs_have_an_equal_share_in_each_domain(topology: Topology | None, replicas: int, each: int) -> None:
    gang = workload("g", replicas, type="gang", gpus=1, topology=topology)
    odd = topology is not None and topology.groups and each % 2
    each = 0 if odd else each
    assert begun(spec_of(zones([4, 4], [4, 4]), [gang]))["g"] == [each, each]


def test_a_gang_that_cannot_be_even_takes_no_room() -> None:
    work = [workload("g", 7, type="gang", gpus=1), workload("j", 8, gpus=1)]
    assert sum(begun(spec_of(zones([4], [4]), work))["j"]) == 8


@pytest.mark.parametrize(
    ("least", "step", "topology", "each"),
    [
        (2, 2, None, 3),
        (2, 1, None, 3),
        (2, 2, Topology(prefer="zone"), 3),
        (8, 1, Topology(prefer="zone"), 0),
    ],
)
def test_elastic_gangs_are_even_at_whole_steps(least: int, step: int, topology: Topology | None, each: int) -> None:
    elastic = role("", 12, request(1), least=least, step=step)
    gang = replace(workload("g", type="gang", roles=[elastic], topology=topology), min_replicas=least)
    assert begun(spec_of(zones([4, 4], [3]), [gang]))["g"] == [each, each]


def test_roles_make_rounds_together() -> None:
    service = workload("s", type="service", roles=[role("lead", 1, request(1)), role("work", 5, request(1))])
    assert begun(spec_of(zones([4], [4], [4]), [service])) == {"s": [2, 2, 2]}


@pytest.mark.parametrize(
    ("today", "room", "expected"),
    [
        ({"s#0": "a0", "s#1": "b0"}, 4, [3, 3]),
        ({"s#0": "a0", "s#1": "a0"}, 4, [3, 3]),  # uneven, and evened by what comes
        ({"s#0": "a0", "s#1": "a0", "s#2": "a0"}, 2, [3, 2]),  # excused, as far as it is
        ({"s#0": "a0", "s#1": "b0"}, 2, [2, 2]),
    ],
)
def test_what_runs_stays(today: Mapping[str, str], room: int, expected: list[int]) -> None:
    running = {name: place(at, i) for i, (name, at) in enumerate(today.items())}
    spec = spec_of(zones([4], [room]), [workload("s", 6, type="service", gpus=1)], running=running)
    assert begun(spec) == {"s": expected}


def test_two_policies_are_kept_together() -> None:
    work = [workload("s", 7, type="service", gpus=1)]
    nodes = policy("nodes", Spread(over="node", max_skew=0), workloads=MATCHED)
    assert begun(spec_of(zones([4, 4], [4, 4]), work, nodes)) == {"s": [2, 2]}
    assert begun(spec_of(zones([4, 4], [4]), work, nodes)) == {"s": [0, 0]}


def test_what_is_left_uneven_beyond_what_came_last_stays() -> None:
    problem = compiled(spec_of(zones([4], [4]), [workload("s", 6, type="service", gpus=1)]))
    outlooks = Outlooks(Field(problem, State()))
    service = problem.spec.workloads[0]
    assert not outlooks.place(0, 6)  # without leeway none comes
    with outlooks.field.gates.leeway():
        first, last = outlooks.place(0, 1), outlooks.place(0, 2)
        assert not even_out(outlooks, service, [])
        puts = last[-1:]
        assert even_out(outlooks, service, puts) != bool(puts)
    assert first
    assert outlooks.field.admitted[0] == 2
    assert not outlooks.place(0, 6)


def _drawn(name: str, rng: Random) -> Workload:
    size, kind = rng.choice((1, 2, 3, 4, 6, 7, 12)), rng.choice(("service", "gang", "job"))
    made = workload(name, size, type=kind, gpus=1)
    return replace(made, min_replicas=rng.randint(1, size)) if kind == "service" else made


def test_random_starts_break_nothing() -> None:
    admitted = 0
    for seed in range(150):
        rng = Random(seed)
        nodes = zones(
            *([rng.choice((1, 2, 4)) for _ in range(rng.choice((1, 2, 3)))] for _ in range(rng.choice((2, 3))))
        )
        work = [_drawn(f"w{i}", rng) for i in range(3)]
        free = [(n.name, gpu) for n in nodes for gpu in range(n.gpus)]
        rng.shuffle(free)
        names = [str(r) for w in work if w.type != "gang" for r in list(w.replica_ids())[: rng.randint(0, 3)]]
        running = {name: place(*at) for name, at in zip(names, free, strict=False)} if rng.random() < 0.5 else {}
        other = [policy("nodes", Spread(over="node", max_skew=rng.choice((0, 1))))] if rng.random() < 0.3 else []
        admitted += sum(map(sum, begun(spec_of(nodes, work, *other, running=running)).values()))
    assert admitted > 900


def test_bounds_know_that_counts_are_equal() -> None:
    for replicas, room, bound in ((13, 8, 12), (2, 8, 0), (12, 3, 9)):
        problem = compiled(spec_of(zones([8], [8], [room]), [workload("s", replicas, type="service", gpus=1)]))
        bounds, tier = FleetBounds(problem, Stop()), problem.tiers[0]
        bounds.prove(tier, {})
        best = bounds.best(tier, {})
        assert best is not None
        assert best[0] == 1000 * bound


def test_a_large_fleet_admits_all_rounds_and_tells_why_no_more() -> None:
    nodes = [node(f"n{i:04}", 4, domains={"zone": f"z{i % 3}"}) for i in range(3000)]
    spec = spec_of(nodes, [workload(f"s{i}", 12 + i % 3, type="service", gpus=1) for i in range(6)])
    plan = solve(spec, Limits(work=50, jobs=1))
    assert plan.outcome.status == "optimal"
    assert len(plan.placements) == 6 * 12
    assert not [finding for check in verify(spec, plan).checks for finding in check.findings]
    assert {name: result.reasons for name, result in plan.admitted.items()} == dict.fromkeys(
        ("s1", "s2", "s4", "s5"), ("DT4106",)
    )


def test_it_is_not_told_that_a_policy_forbids_what_a_round_would_do() -> None:
    spec = spec_of(zones([4], [4]), [workload("s", 6, type="service", gpus=1)])
    assert reasons(spec, {}) == ("DT4100",)
    assert reasons(spec, {f"s#{i}": place("ab"[i % 2] + "0", i // 2) for i in range(4)}) == ("DT4100",)
    odd = spec_of(zones([4], [4]), [workload("s", 5, type="service", gpus=1)])
    assert reasons(odd, {f"s#{i}": place("ab"[i % 2] + "0", i // 2) for i in range(4)}) == ("DT4106",)
    full = spec_of(zones([4], [2]), [workload("s", 6, type="service", gpus=1)])
    assert reasons(full, {f"s#{i}": place("ab"[i % 2] + "0", i // 2) for i in range(4)}) == ("DT4106",)
    gang = spec_of(zones([4], [4]), [workload("s", 5, type="gang", gpus=1)])
    assert reasons(gang, {}) == ("DT4106",)


def reasons(spec: Spec, rows: Mapping[str, Place]) -> tuple[str, ...]:
    return plan_for(spec, places(rows)).admitted["s"].reasons
