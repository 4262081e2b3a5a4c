"""Patterns mixed anew on a few nodes at a time: never worse, within the bound, and all rules kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import cast

import pytest
from tests.engine.test_generate import ALL, fleet
from tests.support.specs import make_spec, node, policy, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.fleet.losses import Losses
from dovetail.engine.generation.generate import Generation
from dovetail.engine.generation.remixing import Reached, Remixing, remixed
from dovetail.engine.generation.wanted import Wanted
from dovetail.model.legal import legalise
from dovetail.model.score import debt, hard_policies, owed, view_of
from dovetail.model.state import Fill, Slot, State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.proof.fleet import FleetModel
from dovetail.rules import context_of
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import Workload, WorkloadSelector


def generation(problem: Problem, state: State, *, full: bool = False, priced: bool = False) -> Generation:
    return Generation(problem, state, FleetModel(problem, priced=priced), Stop(), full=full)


def remix(problem: Problem, state: State, work: float = ALL) -> Iterator[State]:
    """Yield what there is to find from a state on, the best by now being the last that was yielded."""
    best = [state]
    for found in remixed(generation(problem, state), (), {}, lambda _: Reached(best[-1], False), Budget(work)):
        if found is not None:
            best.append(found)
            yield found


def apart(seed: int) -> Problem:
    """Return a fleet whose tenants share no node."""
    return fleet(seed, (policy("apart", Separate(by="tenant", at="node")),))


@pytest.mark.parametrize("seed", range(4))
def test_every_state_is_worth_more_than_the_one_before_and_keeps_the_rules(seed: int) -> None:
    problem = apart(seed)
    start = legalise(problem, construct(problem, today_state(problem), Stop()))
    tells = Remixing(generation(problem, start), Budget(ALL))
    worth = tells.worth(start)
    for state in remix(problem, start):
        assert tells.worth(state) > worth
        worth = tells.worth(state)
        assert not owed(problem, state, hard_policies(problem))
        assert all(count <= problem.shapes[shape].demand for shape, count in state.admitted().items())


def scattered() -> tuple[Problem, State]:
    """Return four nodes with half of each in use, and two replicas that need a whole one."""
    spec = make_spec(
        [node(f"n{index}", 4) for index in range(4)],
        [workload("half", 4, gpus=2, value=2), workload("whole", 2, gpus=4, value=5)],
    )
    problem = compile_problem(context_of(spec))
    (half,) = problem.shapes_of_workload["half"]
    return problem, State({index: Fill(Counter({Slot(half): 1})) for index in range(4)})


def test_what_is_scattered_makes_room_for_what_needs_a_node() -> None:
    problem, start = scattered()
    *_, best = remix(problem, start)
    assert best.admitted() == Counter({shape.index: shape.demand for shape in problem.shapes})


def test_a_spread_that_is_kept_stays_kept() -> None:
    even = policy("even", Spread(over="rack", max_skew=1), workloads=WorkloadSelector(names=("s",)))
    spec = make_spec(
        [node(f"{rack}{index}", 4, domains={"rack": rack}) for rack in "ab" for index in range(3)],
        [workload("s", 8, gpus=1, value=9), workload("w", 3, gpus=4, value=7), workload("h", 6, gpus=2, value=3)],
        policies=(even,),
    )
    problem = compile_problem(context_of(spec))
    start = legalise(problem, construct(problem, today_state(problem), Stop()))
    for state in (start, *remix(problem, start)):
        assert not debt(problem, view_of(problem, state), frozenset(["even"]))


def dear_and_cheap(*others: Workload) -> tuple[Problem, State, State]:
    """Return three dear and three cheap nodes for three replicas, which are on those, and a cheaper state."""
    nodes = [node(f"{kind}{i}", 4, price=price) for kind, price in (("d", 90), ("c", 10)) for i in range(3)]
    problem = compile_problem(context_of(make_spec(nodes, [workload("w", 3, gpus=4), *others])))
    dear, cheap = (
        State({problem.node_index[f"{kind}{i}"]: Fill(Counter({Slot(0): 1})) for i in range(3)}) for kind in "dc"
    )
    return problem, dear, cheap


def test_where_all_is_admitted_the_same_is_put_on_cheaper_nodes() -> None:
    problem, dear, cheap = dear_and_cheap()
    begin = generation(problem, dear, priced=True)
    found = remixed(begin, (), {}, lambda _: Reached(dear, False), Budget(ALL))
    *_, best = (state for state in found if state is not None)
    assert best.admitted() == dear.admitted()
    assert best.totals().where[0].keys() == cheap.totals().where[0].keys()


def test_a_cheaper_state_is_one_to_begin_with_unless_it_lacks_much() -> None:
    problem, dear, cheap = dear_and_cheap()
    remixing = Remixing(generation(problem, dear, priced=True), Budget(ALL))
    assert remixing.prefers(cheap)
    assert not remixing.prefers(State())
    remixing.hold(cheap)
    assert not remixing.prefers(dear)


def test_a_fuller_state_is_one_to_begin_with_although_an_earlier_band_lacks() -> None:
    work = [workload(f"w{priority}", 4, gpus=1, priority=priority) for priority in (900, 100)]
    problem = compile_problem(context_of(make_spec(nodes=[node("n0", 2), node("n1", 2)], workloads=work)))
    first, later = (problem.shapes_of_workload[name][0] for name in ("w900", "w100"))
    early = State({0: Fill(Counter({Slot(first): 2}))})
    full = State({0: Fill(Counter({Slot(first): 1, Slot(later): 1})), 1: Fill(Counter({Slot(later): 2}))})
    remixing = Remixing(generation(problem, early), Budget(ALL))
    assert remixing.worth(full) < remixing.worth(early)
    assert remixing.prefers(full)


def test_a_fuller_state_is_gone_on_from_although_an_earlier_band_gains_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the fuller one lacks of an earlier band is little; to be found later, as what it has more is not."""
    work = [workload(f"w{priority}", 4, gpus=1, priority=priority) for priority in (900, 100)]
    problem = compile_problem(context_of(make_spec(nodes=[node(f"n{i}", 2) for i in range(4)], workloads=work)))
    first, later = (problem.shapes_of_workload[name][0] for name in ("w900", "w100"))
    two, three = (State({0: Fill(Counter({Slot(first): 2})), 1: Fill(Counter({Slot(first): n}))}) for n in (0, 1))
    full = State({0: Fill(Counter({Slot(first): 2})), 1: Fill(Counter({Slot(later): 2}))})
    held = []

    def look(remixing: Remixing) -> None:
        held.append(remixing._picture.state)
        remixing._idle = 100 * (len(held) - 1)

    monkeypatch.setattr(Remixing, "next", look)
    list(remixed(generation(problem, two), [full], {}, lambda _: Reached(three, False), Budget(ALL)))
    assert held == [full, full]


class Losing:
    """A proof by which some nodes lose."""

    def __init__(self, *nodes: int) -> None:
        self._nodes = nodes

    def of(self, state: State) -> dict[int, float]:
        return dict.fromkeys(self._nodes, 500.0)


@pytest.mark.parametrize(("number", "led"), [(1200, True), (100, False)])
def test_on_many_nodes_every_other_set_is_half_of_nodes_that_lose_by_a_proof(number: int, led: bool) -> None:
    nodes = [node(f"n{i:04}", 4, accelerator=("A100-40GB", "L4")[i % 2]) for i in range(number)]
    problem = compile_problem(context_of(make_spec(nodes, [workload("w", 5 * number, gpus=1)])))
    remixing = Remixing(generation(problem, State()), Budget(ALL))
    losing = frozenset(range(0, 60, 2))
    remixing.heed({}, [cast(Losses, Losing(*losing))])
    drawn = [remixing._draws.next(remixing._picture).nodes for _ in range(20)][::2]
    assert all(len(nodes & losing) >= len(nodes) / 2 for nodes in drawn) is led
    if led:
        assert {index % 2 for nodes in drawn for index in nodes} == {0}


@pytest.mark.parametrize("full", [False, True])
def test_a_search_for_the_least_cost_is_led_by_no_proof_of_a_band(
    full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where all but a gang is there: what is mixed anew is to be cheaper, while a band is left to decide."""
    problem, dear, _ = dear_and_cheap()
    begin = replace(generation(problem, dear, priced=True), full=full)
    assert begin.spares
    led = []

    def look(remixing: Remixing) -> None:
        led.append(bool(remixing._picture.leads))
        remixing._idle = 100 * (len(led) - 1)

    monkeypatch.setattr(Remixing, "next", look)
    lead = cast(Losses, Losing(0))
    list(remixed(begin, (), {}, lambda _: Reached(dear, full, leads=[lead]), Budget(ALL)))
    assert led == [False, full]


def test_sets_are_larger_where_there_are_more_nodes() -> None:
    sizes = []
    for number in (30, 2500):
        problem = compile_problem(
            context_of(make_spec([node(f"n{i}", 1) for i in range(number)], [workload("w", 9)]))
        )
        remixing = Remixing(generation(problem, State()), Budget(ALL))
        sizes.append(len(remixing._draws.next(remixing._picture).nodes))
    assert sizes == [10, 50]


def test_once_nothing_more_can_be_admitted_a_cheaper_state_at_hand_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, dear, cheap = dear_and_cheap(workload("x", 1, gpus=8))  # larger than any node
    held = []

    def look(remixing: Remixing) -> None:
        held.append(remixing._picture.state)
        remixing._idle = 100 * (len(held) - 1)

    monkeypatch.setattr(Remixing, "next", look)
    begin = generation(problem, dear, priced=True)
    assert not any(remixed(begin, [cheap], {}, lambda _: Reached(dear, True), Budget(ALL)))
    assert held == [dear, cheap]


def test_with_nothing_more_to_admit_what_waits_is_not_asked_for() -> None:
    problem, start = scattered()
    assert sum(generation(problem, start).wish.demand.values()) == 6
    assert sum(generation(problem, start, full=True).wish.demand.values()) == 4


def test_late_it_is_asked_whether_hardly_more_can_be_admitted() -> None:
    problem, start = scattered()
    asked = []

    def best(late: bool) -> Reached:
        asked.append(late)
        return Reached(start, late)

    list(remixed(generation(problem, start), (), {}, best, Budget(0.5)))
    assert asked == sorted(asked)
    assert set(asked) == {False, True}


def test_what_is_looked_for_in_vain_is_looked_for_less_often() -> None:
    work = [
        workload(f"w{i}", 9, gpus=1, cpu=1000 + i, priority=priority)
        for i, priority in enumerate((900, 900, 900, 100))
    ]
    problem = compile_problem(context_of(make_spec(nodes=[node(f"n{i}", 2) for i in range(4)], workloads=work)))
    *early, late = (problem.shapes_of_workload[f"w{i}"][0] for i in range(4))
    wanted = Wanted(problem, generation(problem, State()).wish.worth, {}, Random(1))

    def drawn() -> Counter[int]:
        return Counter(wanted.draw(dict.fromkeys(range(4), 0)) for _ in range(1000))

    before = drawn()
    assert before[late] > 100  # however much less the last band is worth
    wanted.learn(early[0], 3.0, found=False)
    after = drawn()
    assert after[early[0]] < before[early[0]] / 10
    assert after[late] > before[late]
    wanted.learn(early[0], 1e9, found=False)
    assert drawn()[late] == 1000
    wanted.learn(early[0], 0.5, found=True)
    assert drawn()[early[0]] > before[early[0]] / 2


@pytest.mark.parametrize("seed", range(24))
def test_what_runs_stays_where_it_is(seed: int) -> None:
    problem = compile_problem(context_of(tiny(seed)))
    start = legalise(problem, construct(problem, today_state(problem), Stop()))
    before = view_of(problem, start).places
    for state in remix(problem, start, 2.0):
        places = view_of(problem, state).places
        today = problem.context.today.places
        assert all(places[replica] == place for replica, place in today.items() if before.get(replica) == place)


def test_equal_problems_come_to_equal_states() -> None:
    runs = []
    for _ in range(2):
        problem = apart(2)
        start = legalise(problem, construct(problem, today_state(problem), Stop()))
        runs.append([state.fills for state in remix(problem, start)])
    assert runs[0] == runs[1]
    assert runs[0]


def test_without_work_nothing_is_looked_for() -> None:
    problem, start = scattered()
    assert not list(remix(problem, start, 0.0))


def test_what_is_planned_and_lacks_is_looked_for_more_often() -> None:
    work = [workload(f"w{i}", 9, gpus=1, cpu=1000 + i) for i in range(2)]
    problem = compile_problem(context_of(make_spec(nodes=[node("n", 8)], workloads=work)))
    worth = generation(problem, State()).wish.worth
    wanted = Wanted(problem, worth, {0: 5, 1: 5}, Random(1))
    drawn = Counter(wanted.draw({0: 4, 1: 5}) for _ in range(1000))
    assert drawn[0] > 3 * drawn[1] > 0


def test_a_place_that_stands_empty_for_what_is_planned_is_among_the_patterns() -> None:
    """Pricing gives a place no worth where who is there earns as much; what is planned is offered all the same."""
    problem, _ = scattered()
    half, whole = (problem.shapes_of_workload[name][0] for name in ("half", "whole"))
    lone = State({0: Fill(Counter({Slot(half): 1}))})
    remixing = Remixing(generation(problem, lone), Budget(ALL), Counter({half: 4, whole: 2}))
    before = len(remixing._master.columns)
    remixing._settle_all_but([0, 1])
    remixing._add_fuller([0, 1])
    added = {column.pattern for column in remixing._master.columns[before:]}
    assert ((Slot(half), 2),) in added
    assert ((Slot(whole), 1),) in added
    assert all(sum(n for _, n in pattern) <= 2 for pattern in added)


def test_what_no_plan_has_more_of_is_not_looked_for() -> None:
    problem, start = scattered()
    (whole,) = problem.shapes_of_workload["whole"]
    remixing = Remixing(generation(problem, start), Budget(ALL))
    (band,) = problem.spec.bands
    there = sum(problem.shapes[s].role.value * n for s, n in start.admitted().items())
    remixing.heed({band: there + 1}, ())
    assert remixing._picture.waiting == {whole: 0}
    remixing.heed({band: there}, ())
    assert remixing._picture.waiting == {}


def test_what_is_worth_nothing_is_not_looked_for() -> None:
    """Nothing could be drawn where all that waits were worth nothing."""
    nodes = [node(f"n{index}", 1) for index in range(4)]
    work = [workload("free", 9, gpus=1, value=0), workload("light", 5, gpus=0, cpu=1000)]
    problem = compile_problem(context_of(make_spec(nodes, work)))
    (free,) = problem.shapes_of_workload["free"]
    start = State({0: Fill(Counter({Slot(free): 1}))})
    remixing = Remixing(generation(problem, start), Budget(ALL))
    assert remixing._picture.waiting == {}
    assert [remixing.next() for _ in range(4)].count(None) >= 3


def test_what_is_planned_is_not_offered_where_rules_keep_it_off() -> None:
    spec = make_spec(
        [node(f"n{index}", 4) for index in range(2)],
        [
            workload("mine", 1, gpus=1, tenant="a"),
            workload("theirs", 2, gpus=1, tenant="b"),
            workload("parts", 2, share=250, tenant="b"),
        ],
        policies=(policy("apart", Separate(by="tenant", at="node")),),
    )
    problem = compile_problem(context_of(spec))
    mine, theirs, parts = (problem.shapes_of_workload[name][0] for name in ("mine", "theirs", "parts"))
    start = State({0: Fill(Counter({Slot(mine): 1})), 1: Fill(Counter({Slot(theirs): 1}))})
    remixing = Remixing(generation(problem, start), Budget(ALL), {mine: 1, theirs: 2, parts: 2})
    remixing._settle_all_but([0, 1])
    remixing._add_fuller([0, 1])
    offered = {frozenset(column.counts) for column in remixing._master.columns}
    assert frozenset({mine, theirs}) not in offered
    assert frozenset({mine, parts}) not in offered
    assert frozenset({theirs, parts}) in offered


def test_it_is_asked_as_late_for_good_once_several_sets_were_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, start = scattered()
    asked: list[bool] = []

    def look(remixing: Remixing) -> None:
        remixing._idle += 1
        if len(asked) == 8:
            remixing._idle = 0  # anything found
        elif len(asked) == 12:
            remixing._idle = 100

    def best(settled: bool) -> Reached:
        asked.append(settled)
        return Reached(start, False)

    monkeypatch.setattr(Remixing, "next", look)
    list(remixed(generation(problem, start), (), {}, best, Budget(ALL)))
    assert asked == [False] * 5 + [True] * 8


def test_a_more_promising_state_from_elsewhere_is_taken_after_a_set_that_found_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the cheapest one, which is looked for once a set has found room for what was lacking."""
    problem, start = scattered()
    *_, full = remix(problem, start)
    held = []

    def look(remixing: Remixing) -> State:
        held.append(remixing._picture.state)
        remixing._idle = 100 * (len(held) - 1)
        return start

    monkeypatch.setattr(Remixing, "next", look)
    list(remixed(generation(problem, start), (), {}, lambda _: Reached(full, False), Budget(ALL)))
    assert held == [start, full]
