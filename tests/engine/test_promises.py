"""Mixtures of patterns count what is missing of promises (S2.8, S5.1): fast GPUs go to those who need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from tests.oracle.test_service_levels import promising
from tests.support.mixed_specs import mixed
from tests.support.ruined import tried
from tests.support.specs import CARD, CARDS, make_spec, node, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.moving import tidied
from dovetail.engine.generation.generate import Generation
from dovetail.engine.generation.promise_ruins import PromiseRuins
from dovetail.engine.generation.promises import Promises, promises
from dovetail.engine.generation.remixing import Remixing
from dovetail.model.legal import legalise
from dovetail.model.score import view_of
from dovetail.model.state import Fill, Slot, State, today_state
from dovetail.placement.served import served
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.proof.fleet import FleetModel
from dovetail.rules import context_of
from dovetail.spec import Objective, Spec, Workload
from dovetail.spec.slo import Slo

SLOW, FAST = "A100-40GB", CARD
ALL = 10.0  # units of work, more than any of these needs


def batch(name: str, replicas: int, asked: int) -> Workload:
    """Return a batch that needs so many thousandths of a fast GPU at once; a slow one is half of that."""
    slo = Slo(asked, {SLOW: 500, FAST: 1000}, listed=False)
    return replace(workload(name, replicas, gpus=1, type="job"), slo=slo)


def two_makes(*work: Workload, price: int = 0, objective: Objective | None = None) -> Problem:
    """Return two nodes of slow GPUs and one of fast ones, four of each."""
    makes = (("s0", SLOW, 0), ("s1", SLOW, 0), ("f0", FAST, price))
    nodes = [node(name, 4, accelerator=card, price=dear) for name, card, dear in makes]
    return compile_problem(context_of(make_spec(nodes, work, objective=objective)))


def missing(problem: Problem, state: State) -> int:
    (tier,) = (tier for tier in problem.tiers if tier.name == "slo")
    return tier.measure(view_of(problem, state), problem.context)


def least(problem: Problem) -> int:
    """Return the fewest thousandths that are missing in a mixture of patterns that admits all."""
    states = list(Generation(problem, State(), FleetModel(problem, priced=True), Stop()).run(Budget(ALL)))
    asked = sum(shape.demand for shape in problem.shapes)
    return min(missing(problem, state) for state in states if sum(state.admitted().values()) == asked)


def test_who_needs_fast_gpus_has_them_where_all_are_asked_for() -> None:
    problem = two_makes(batch("hurries", 4, 4000), batch("waits", 4, 1000), workload("any", 4, gpus=1, type="job"))
    assert least(problem) == 0


def test_no_more_replicas_serve_than_there_are() -> None:
    """Eight on slow GPUs would do, and there is room for these; of the six one has a fast GPU at the most."""
    taken = [workload("fixed", 3, gpus=1, type="job", value=9000, accelerators=(FAST,))]
    assert least(two_makes(batch("six", 6, 4000), *taken)) == 125


def test_a_promise_comes_before_what_nodes_cost_where_it_is_the_earlier_tier() -> None:
    late = Objective(tiers=("admitted", "cost", "slo"))
    assert least(two_makes(batch("hurries", 4, 4000), price=1000)) == 0
    assert least(two_makes(batch("hurries", 4, 4000), price=1000, objective=late)) == 500


def on(problem: Problem, **names: str) -> State:
    """Return a state with replicas of workloads on the nodes that are named."""
    fills: dict[int, Counter[Slot]] = {}
    for name, hosts in names.items():
        for host in hosts.split():
            slots = fills.setdefault(problem.node_index[host], Counter())
            slots[Slot(problem.shapes_of_workload[name][0])] += 1
    return State({index: Fill(slots) for index, slots in fills.items()})


def test_sets_of_nodes_change_places_for_a_promise_alone() -> None:
    problem = two_makes(batch("hurries", 4, 4000), batch("waits", 8, 1000))
    state = on(problem, hurries="s0 s0 s0 s0", waits="f0 f0 f0 f0 s1 s1 s1 s1")
    assert missing(problem, state) == 500
    remixing = Remixing(Generation(problem, state, FleetModel(problem), Stop(), state), Budget(ALL))
    found = [state for state in (remixing.next() for _ in range(6)) if state is not None]
    assert missing(problem, found[-1]) == 0


def test_who_serves_less_than_promised_takes_the_place_of_who_does_as_well_elsewhere() -> None:
    problem = two_makes(batch("hurries", 4, 4000), batch("waits", 8, 1000))
    state = on(problem, hurries="s0 s0 s0 s0", waits="f0 f0 f0 f0 s1 s1 s1 s1")
    assert missing(problem, state) == 500
    ruins = PromiseRuins(problem, state, Random(1))
    assert ruins.attempts(200, lambda: False)
    assert ruins.over
    assert missing(problem, ruins.state()) == 0
    assert ruins.state().admitted() == state.admitted()


@pytest.mark.parametrize("frugal", [False, True])
def test_nodes_cost_more_for_a_promise_unless_that_comes_first(*, frugal: bool) -> None:
    problem = two_makes(batch("hurries", 4, 4000), price=1000)
    ruins = PromiseRuins(problem, on(problem, hurries="s0 s0 s0 s0"), Random(1), frugal=frugal)
    assert ruins.attempts(200, lambda: False) is not frugal
    assert missing(problem, ruins.state()) == (500 if frugal else 0)


def hurried(made: Callable[[int], Spec], seed: int) -> Spec:
    """Return a Spec like another one, on nodes of several accelerators, of which some work is promised a rate."""
    draw, spec = Random(f"hurried {seed}"), made(seed)
    nodes = tuple(replace(n, accelerator=draw.choice((SLOW, FAST))) if n.gpus else n for n in spec.cluster.nodes)
    work = tuple(_hurried(draw, w) if draw.random() < 0.7 else w for w in spec.workloads)
    return replace(spec, cluster=replace(spec.cluster, nodes=nodes), workloads=work, accelerators=CARDS)


def _hurried(draw: Random, work: Workload) -> Workload:
    roles = tuple(replace(role, accelerators=()) for role in work.roles)
    slo = Slo(
        1000 * work.replicas * draw.randint(1, 2) // 2, {SLOW: draw.choice((0, 300, 500)), FAST: 1000}, listed=False
    )
    return replace(work, roles=roles, slo=slo)


@pytest.mark.parametrize("made", [tiny, mixed])
def test_less_is_missing_by_what_came_anew_and_all_that_is_admitted_stays_so(made: Callable[[int], Spec]) -> None:
    """From states in which all was placed whatever was promised, some of it where it runs."""
    seen: Counter[bool] = Counter()
    for seed in range(200):
        problem = compile_problem(context_of(hurried(made, seed)))
        begun = legalise(problem, construct(problem, State({}), Stop()))
        if not any(tier.name == "slo" for tier in problem.tiers):
            continue
        ruins = PromiseRuins(problem, begun, Random(seed))
        seen[tried(problem, begun, ruins, 60, missing, seed)] += 1
    assert seen[True] >= 3, seen


def test_a_state_that_keeps_more_is_one_to_begin_with_where_all_is_admitted() -> None:
    problem = two_makes(batch("hurries", 4, 4000), price=1000)
    slow, fast = (on(problem, hurries=" ".join([name] * 4)) for name in ("s0", "f0"))
    remixing = Remixing(Generation(problem, slow, FleetModel(problem, priced=True), Stop(), slow), Budget(ALL))
    assert remixing.prefers(fast)


def test_nodes_are_emptied_onto_cheaper_ones_that_keep_as_much_of_a_promise() -> None:
    late = Objective(tiers=("admitted", "cost", "slo"))
    for tiers, kept in ((None, True), (late, False)):
        problem = two_makes(batch("hurries", 2, 2000), workload("any", 2, gpus=1), price=1000, objective=tiers)
        state = on(problem, hurries="f0 f0", any="s0 s0")
        found = tidied(problem, state, Stop(), lambda: False)
        assert (missing(problem, found) == 0) is kept


@pytest.mark.parametrize("seed", range(40))
def test_what_is_missing_is_what_the_tier_counts_but_for_rounding(seed: int) -> None:
    problem = compile_problem(context_of(promising(seed)))
    state = legalise(problem, construct(problem, today_state(problem), Stop()))
    view, nodes = view_of(problem, state), range(len(problem.nodes))
    own = [w for w in problem.spec.workloads if w.slo is not None and promises(w)]
    told = sum(w.slo.missing(served(view, w), len(view.admitted(w)), w.replicas) for w in own if w.slo)
    for free in (nodes, nodes[::2], ()):
        contents = ((problem.nodes[n], tuple(state.fill(n).slots.items())) for n in free)
        found = Promises(problem, state, free).missing(contents)
        assert told - sum(2 * w.slo.floors.weight for w in own if w.slo) < found <= told or found == told == 0
