"""Where a search starts: names keep all that the state counts, nothing is left that cannot stand, and it is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest
from tests.support.specs import make_spec, node, place, places, policy, request, workload
from tests.support.tiny_gangs import tiny_gangs
from tests.support.tiny_specs import tiny

from dovetail.engine import ladder, solve
from dovetail.engine.construction.construct import construct
from dovetail.engine.hinted import hinted
from dovetail.engine.start import start
from dovetail.model.legal import legalise
from dovetail.model.score import score, view_of
from dovetail.model.state import Fill, Slot, State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Reporter, Stop
from dovetail.rules import context_of
from dovetail.rules.require import Forbid
from dovetail.rules.reserve import Reserve
from dovetail.spec import NodeSelector, Policy, Spec, WorkloadSelector


def compiled(spec: Spec) -> Problem:
    return compile_problem(context_of(spec))


def named(problem: Problem, state: State) -> Mapping[int, int]:
    """Return how many replicas and held places of each shape the plan of a state has."""
    view, shapes = view_of(problem, state), problem.shapes_of_role
    found = Counter(shapes[name.workload, name.role] for name in view.places)
    return found + Counter(shapes[name.workload, name.role] for name, _ in view.placeholders)


def _holding(spec: Spec, rng: Random) -> Spec:
    """Return a Spec that wishes for places, on some nodes or within one domain."""
    names = [node.name for node in spec.cluster.nodes]
    some = NodeSelector(names=tuple(rng.sample(names, -(-len(names) // 2))))
    rule = Reserve(rng.choice((1, 2, 4)), request(rng.choice((0, 1))), within=rng.choice(spec.cluster.levels))
    room = policy("room", rule, nodes=rng.choice((None, some)), enforcement=rng.choice((1, 3000)))
    return replace(spec, policies=(*spec.policies, room))


def test_names_keep_all_that_a_start_counts() -> None:
    held = 0
    for seed in range(100):
        for drawn in (tiny, tiny_gangs):
            problem = compiled(_holding(drawn(seed), Random(seed)))
            state, _ = start(problem, None, Stop())
            assert named(problem, state) == state.admitted(), f"{drawn.__name__} {seed}"
            held += any(view_of(problem, state).placeholders)
    assert held >= 50


def test_places_that_do_not_count_are_taken_off() -> None:
    nodes = [node(name, 2, domains={"rack": rack}) for name, rack in (("a", "r"), ("b", "s"), ("c", "s"))]
    room = policy("room", Reserve(3, request(1), within="rack"), enforcement=1)
    problem = compiled(make_spec(nodes, [workload("w", 1, gpus=1)], [room], levels=("rack", "node")))
    work, place = (Slot(problem.shapes_of_role[name, ""]) for name in ("w", "hold:room"))
    spread = State({i: Fill(Counter({place: 1})) for i in range(3)})
    spread.fills[0].slots[work] = 1
    found = legalise(problem, spread)
    assert [dict(found.fill(i).slots) for i in range(3)] == [{work: 1}, {place: 1}, {place: 1}]
    assert legalise(problem, found) is found


def test_who_can_never_be_admitted_is_not_put_back_where_others_were_taken_off() -> None:
    problem = compiled(make_spec([node("n", 4)], [workload("few", 1, gpus=1, min_replicas=2), workload("w", gpus=1)]))
    assert construct(problem, today_state(problem), Stop()).admitted()[0] == 1
    state, _ = start(problem, None, Stop())
    assert state.admitted() == {1: 1}


class Told(Reporter):
    """Keeps what it hears, in order: phases, and per tier its value and bound."""

    def __init__(self) -> None:
        self.heard: list[str | tuple[str, int | None, int | None]] = []

    def phase(self, name: str, detail: str = "") -> None:
        self.heard.append(name)

    def tier(self, name: str, unit: str, value: int | None, bound: int | None) -> None:
        self.heard.append((name, value, bound))


def test_the_first_plan_of_a_large_project_is_told_before_any_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of large fleets take longer than a first plan does; nobody waits for them to see that there is one."""
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    told = Told()
    plan = solve(make_spec([node("a", 2)], [workload("w", 3, gpus=1)]), Limits(work=0.05), reporter=told)
    values = [(tier.name, tier.value, None) for tier in plan.tiers]
    assert told.heard[: 3 + len(values)] == ["compile", "construct", "bound", *values]
    assert (plan.tiers[0].name, 2000, 2000) in told.heard[3 + len(values) :]


# ---------------------------------------------------------------------- a plan to start from


def one_must_move(*policies: Policy) -> Problem:
    """Two workloads run, a GPU each; a third one needs a whole node, so that one of them must move."""
    work = [workload("a", gpus=1), workload("b", gpus=1), workload("wide", gpus=2)]
    nodes = [node(name, 2) for name in "mn"]
    return compiled(make_spec(nodes, work, policies, running={"a#0": place("m", 0), "b#0": place("n", 0)}))


PLANNED = places({"a#0": place("m", 0), "b#0": place("m", 1), "wide#0": place("n", 0, 1)})


def test_what_a_plan_moves_is_where_it_has_it() -> None:
    problem = one_must_move()
    told = hinted(problem, PLANNED)
    assert told is not None
    assert dict(view_of(problem, told).places) == PLANNED
    assert told.kept().total() == 1
    state, unpaid = start(problem, PLANNED, Stop())
    assert not unpaid
    assert dict(view_of(problem, state).places) == PLANNED


def test_what_a_plan_has_where_nothing_may_be_is_elsewhere() -> None:
    ban = policy("ban", Forbid(), workloads=WorkloadSelector(names=("b",)), nodes=NodeSelector(names=("m",)))
    problem = one_must_move(ban)
    told = hinted(problem, PLANNED)
    assert told is not None
    assert {r.workload for r in view_of(problem, told).places} == {"a", "wide"}
    gone = places({"a#0": place("gone", 0), "b#0": place("n", 0), "other#0": place("n", 1)})
    assert dict(view_of(problem, hinted(problem, gone) or State()).places) == places({"b#0": place("n", 0)})


@pytest.mark.parametrize("gpus", [(-1, 0), (0, 2), (0, 9), (1, 1), (0,), (0, 1, 2), ()])
def test_gpus_of_a_plan_that_are_not_there_are_left_out(gpus: tuple[int, ...]) -> None:
    problem = one_must_move()
    told = hinted(problem, {**PLANNED, **places({"wide#0": place("n", *gpus)})})
    assert told is not None
    assert {r.workload for r in view_of(problem, told).places} == {"a", "b"}


@pytest.mark.parametrize("gpus", [(-1,), (2,), (0, 1), ()])
def test_the_gpu_of_a_share_that_is_not_there_is_left_out(gpus: tuple[int, ...]) -> None:
    problem = compiled(make_spec([node("m", 2)], [workload("s", 2, share=500, atomic=True)]))
    told = hinted(problem, places({"s#0": place("m", *gpus), "s#1": place("m", 1)}))
    assert told is not None
    assert told.admitted().total() == 1


def test_what_a_plan_has_of_work_that_belongs_together_is_there() -> None:
    nodes = [node(name, 2) for name in "mno"]
    problem = compiled(make_spec(nodes, [workload("gang", 2, gpus=1, atomic=True)]))
    plan = places({"gang#0": place("o", 0), "gang#1": place("o", 1)})
    told = hinted(problem, plan)
    assert told is not None
    assert dict(view_of(problem, told).places) == plan


def test_a_plan_that_moves_for_nothing_is_not_gone_on_from() -> None:
    problem = compiled(
        make_spec([node("m", 2), node("n", 2)], [workload("a", gpus=1)], running={"a#0": place("m", 0)})
    )
    state, _ = start(problem, places({"a#0": place("n", 0)}), Stop())
    assert state.kept() == {0: 1}


def test_a_plan_that_tells_of_nothing_but_work_that_waits_by_itself_is_no_other_state() -> None:
    problem = compiled(
        make_spec([node("m", 2)], [workload("a", gpus=1), workload("b", gpus=1)], running={"a#0": place("m", 0)})
    )
    assert hinted(problem, places({"a#0": place("m", 0), "b#0": place("m", 1)})) is None


def test_a_start_from_a_plan_is_never_worse_than_without_and_mostly_as_good_as_that() -> None:
    told = as_good = 0
    for seed in range(40):
        for drawn in (tiny, tiny_gangs):
            problem = compiled(drawn(seed))
            plan = solve(problem.spec, Limits(work=1.0))
            bare, owing = start(problem, None, Stop())
            state, unpaid = start(problem, plan.placements, Stop())
            assert unpaid <= owing
            assert score(problem, state, owing) >= score(problem, bare, owing)
            if plan.tiers and hinted(problem, plan.placements) is not None:
                told += 1
                view, of_tier = view_of(problem, state), {tier.name: tier.value for tier in plan.tiers}
                as_good += not unpaid and all(
                    t.measure(view, problem.context) == of_tier[t.name] for t in problem.tiers
                )
    assert told >= 30
    assert as_good >= 0.9 * told
