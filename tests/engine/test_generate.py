"""Column generation: what is priced is legal and near the best, no plan passes the LP, and rules are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import floor, inf
from random import Random
from typing import Any

import pytest
from tests.support.specs import make_spec, node, policy, request, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.contents.knapsack import Knapsack
from dovetail.engine.contents.patterns import Pattern, Wish, counts_of
from dovetail.engine.fleet.fleet_lp import FleetLp
from dovetail.engine.generation import master as lp
from dovetail.engine.generation.diving import Chosen, dive
from dovetail.engine.generation.fleet_rows import fleet_rows
from dovetail.engine.generation.generate import Generation
from dovetail.engine.generation.guided import guided, lead
from dovetail.engine.generation.master import Master
from dovetail.engine.generation.pricing import Pricing
from dovetail.engine.solvers.answer import Effort, Verdict
from dovetail.engine.solvers.cpsat import CpSat
from dovetail.linear import Linear
from dovetail.model.legal import legalise
from dovetail.model.part import PartModel
from dovetail.model.score import debt, view_of
from dovetail.model.state import NO_GPU, Fill, Slot, State, today_state
from dovetail.placement import Room
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.proof import fleet as fleet_proof
from dovetail.proof.fleet import FleetModel
from dovetail.proof.kinds import kinds_of
from dovetail.rules import context_of
from dovetail.rules.quota import Quota
from dovetail.rules.reserve import Reserve
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import Policy

ALMOST = 1e-6
ALL = 10.0  # units of work, more than any of these needs


def fleet(seed: int, policies: tuple[Policy, ...] = ()) -> Problem:
    """Return a small fleet that is asked for more than it has, CPU and GPUs both scarce."""
    rng = Random(seed)
    nodes = [
        node(f"{make}{index}", gpus, cpu=cpu, memory=200_000)
        for make, gpus, cpu in (("a", 4, 40_000), ("b", 2, 26_000), ("c", 1, 9_000))
        for index in range(rng.choice((2, 4, 6)))
    ]
    work = []
    for index in range(14):
        kind = rng.choice(("share", "share", "whole", "cpu"))
        asked: dict[str, Any] = {"cpu": rng.randrange(500, 12_000, 500), "memory": rng.randrange(1000, 30_000, 1000)}
        if kind == "share":
            asked["share"] = rng.choice((100, 250, 330, 400, 500, 650, 800))
        elif kind == "whole":
            asked["gpus"] = rng.choice((1, 1, 2, 4))
        work.append(workload(f"w{index}", rng.randint(1, 9), tenant=rng.choice(("red", "blue")), **asked))
    return compile_problem(context_of(make_spec(nodes=nodes, workloads=work, policies=policies)))


def assert_fits(problem: Problem, index: int, pattern: Pattern) -> None:
    """Check a pattern on a node, replica by replica."""
    room = Room(problem.nodes[index], problem.spec.accelerators)
    shared = {slot.gpu for slot, _ in pattern if slot.gpu != NO_GPU}
    whole = [gpu for gpu in problem.nodes[index].healthy_gpus() if gpu not in shared]
    for slot, count in pattern:
        request = problem.shapes[slot.shape].request
        for _ in range(count):
            gpus = (slot.gpu,) if slot.gpu != NO_GPU else tuple(whole.pop(0) for _ in range(request.gpus))
            assert room.lacks(request, gpus) is None
            room.take(request, gpus)


def worth_of(problem: Problem) -> dict[int, float]:
    """Return the value of a replica per shape, work without GPU counting little."""
    return {s.index: s.role.value * (1.0 if s.request.gpu_count else 0.01) for s in problem.shapes}


def exact(problem: Problem, index: int, prices: dict[int, float]) -> float:
    """Return the most that an empty node can earn, by an exact engine."""
    part = PartModel(problem, [index], State(), demands=False)
    slots = part.variables.slots[index]
    earned = Linear({v: round(1000 * prices.get(slot.shape, 0.0)) for slot, v in slots.items()})
    for shape, counts in part.variables.of_shape.items():
        part.model.require(Linear(dict.fromkeys((v for _, v in counts), 1)), upper=problem.shapes[shape].demand)
    answer = CpSat(part.model).solve(earned, "max", Effort(20.0), None, Stop())
    assert answer.verdict is Verdict.OPTIMAL
    assert answer.values is not None
    return earned.value(answer.values) / 1000


@pytest.mark.parametrize("seed", range(6))
def test_priced_patterns_fit_their_nodes_and_earn_almost_as_much_as_the_exact_best(seed: int) -> None:
    problem = fleet(seed)
    rng = Random(seed)
    prices = {s: value * rng.uniform(0.3, 1.0) for s, value in worth_of(problem).items()}
    for kind in kinds_of(problem, {}):
        found = Knapsack(problem, kind, kind.sides[0]).price(prices)
        for value, pattern in found:
            assert_fits(problem, kind.members[0], pattern)
            counts = counts_of(pattern)
            assert value == pytest.approx(sum(prices[s] * n for s, n in counts.items()))
            assert all(n <= problem.shapes[s].demand for s, n in counts.items())
        best = exact(problem, kind.members[0], prices)
        assert 0.97 * best <= found[0][0] <= best + 0.1


def test_pricing_leaves_out_what_nobody_asks_for_any_more() -> None:
    problem = fleet(1)
    kind = kinds_of(problem, {})[0]
    prices = worth_of(problem)
    left = {s.index: s.index % 2 for s in problem.shapes}
    for _, pattern in Knapsack(problem, kind, kind.sides[0]).price(prices, left):
        assert all(n <= left[s] for s, n in counts_of(pattern).items())


def master_of(
    problem: Problem, wish: Wish | None = None, *, state: State | None = None, free: Sequence[int] | None = None
) -> Master:
    """Return a master over all nodes of a problem or those that are `free`, work without GPU worth nothing."""
    nodes = range(len(problem.nodes)) if free is None else free
    rows = fleet_rows(FleetModel(problem), state or State(), nodes)
    demand = {s.index: s.demand for s in problem.shapes}
    values = {s.index: float(s.role.value) if s.request.gpu_count else 0.0 for s in problem.shapes}
    return Master(rows, wish or Wish(demand, values, [0.0] * len(rows.lots), 1.0))


def worth(master: Master, chosen: Chosen) -> float:
    """Return what is admitted once nodes are settled on patterns and nothing else is placed."""
    master.reset()
    for column, times in chosen:
        master.take(column, times)
    master.sizes = [0] * len(master.sizes)
    master.refresh()
    return master.solve().value


@pytest.mark.parametrize("seed", range(4))
def test_no_dive_and_no_mixture_pass_the_bound(seed: int) -> None:
    problem = fleet(seed)
    (tier,) = (tier.name for tier in problem.tiers if tier.name.startswith("admitted["))
    bound = FleetLp(FleetModel(problem), Stop()).optimise(tier, {}) * (1 + 1e-6)
    master = master_of(problem)
    pricing = Pricing(problem, master.rows.lots, Budget(ALL), Stop())
    mixture = pricing.settle(master, pricing.solve(master), 30, inf)
    assert 0.9 * bound <= mixture.value <= bound
    chosen = dive(master, mixture, pricing)[0]
    assert 0.8 * mixture.value <= worth(master, chosen) <= bound
    assert sum(times for _, times in chosen) <= len(problem.nodes)


def test_what_rules_do_not_let_count_leaves_demand_for_others() -> None:
    nodes = [node("a1", 8, domains={"zone": "a"}), node("b1", 1, domains={"zone": "b"})]
    even = policy("even", Spread(over="zone", max_skew=1))
    problem = compile_problem(
        context_of(make_spec(nodes=nodes, workloads=[workload("w", 6, gpus=1)], policies=(even,)))
    )
    master = master_of(problem)
    (shape,) = master.demand
    for lot, count in ((0, 5), (1, 1)):
        master.add(lot, ((Slot(shape), count),))
    assert master.solve().value == pytest.approx(3000.0)  # two there and one here: three of the five are surplus
    (five,) = (column for column in master.columns if column.counts.get(shape) == 5)
    master.take(five, 1)
    master.refresh()
    assert master.demand[shape] == 4


def test_a_pattern_with_more_than_is_left_is_not_mixed() -> None:
    problem = fleet(2)
    rows = fleet_rows(FleetModel(problem), State(), range(len(problem.nodes)))
    values = worth_of(problem)
    kind = rows.lots[0].kind
    _, pattern = Knapsack(problem, kind, kind.sides[0]).price(values)[0]
    counts = counts_of(pattern)
    master = master_of(problem, Wish(dict(counts), {s: values[s] for s in counts}, [0.0] * len(rows.lots), 1.0))
    master.add(0, pattern)
    total = sum(values[s] * n for s, n in counts.items())
    assert master.solve().value >= total - 1e-6
    master.take(master.columns[0], 1)
    master.refresh()
    assert master.times(master.columns[0]) == 0
    assert master.solve().value == pytest.approx(total)


def test_what_a_spread_ties_together_is_mixed_as_it_allows() -> None:
    nodes = [node("a1", 8, domains={"zone": "a"}), node("b1", 1, domains={"zone": "b"})]
    even = policy("even", Spread(over="zone", max_skew=1))
    problem = compile_problem(
        context_of(make_spec(nodes=nodes, workloads=[workload("w", 9, gpus=1)], policies=(even,)))
    )
    start = construct(problem, today_state(problem), Stop())
    assert sum(start.admitted().values()) == 3
    master = master_of(problem)
    pricing = Pricing(problem, master.rows.lots, Budget(ALL), Stop())
    assert pricing.settle(master, pricing.solve(master), 30, inf).value == pytest.approx(3000.0)


def test_patterns_are_mixed_with_what_a_gang_at_hand_leaves_of_a_quota() -> None:
    """A single replica is worth more than its part of the gang, which stays all the same, and so does its quota."""
    gang = workload("gang", 2, gpus=8, type="gang")
    few = policy("few", Quota(limits=(("gpus", 24_000),)))
    problem = compile_problem(
        context_of(
            make_spec(
                nodes=[node(f"n{i}", 8) for i in range(4)],
                workloads=[gang, workload("s", 2, gpus=8, value=90_000)],
                policies=(few,),
            )
        )
    )
    (shape,) = problem.shapes_of_workload["gang"]
    base = State({n: Fill(Counter({Slot(shape): 1})) for n in (0, 1)})
    master = master_of(problem, state=base, free=(2, 3))
    pricing = Pricing(problem, master.rows.lots, Budget(ALL), Stop())
    admitted = pricing.settle(master, pricing.solve(master), 30, inf).admitted
    (single,) = problem.shapes_of_workload["s"]
    assert (round(admitted[shape]), round(admitted[single])) == (2, 1)


@pytest.mark.parametrize("seed", range(60))
def test_generated_states_break_no_hard_rule_and_keep_what_runs(seed: int) -> None:
    problem = compile_problem(context_of(tiny(seed)))
    start = legalise(problem, construct(problem, today_state(problem), Stop()))
    hard = frozenset(
        p.name for p in problem.spec.policies if p.enforcement.kind == "hard" and p.rule.kind != "admission"
    )
    before = debt(problem, view_of(problem, start), hard)
    for state in Generation(problem, start, FleetModel(problem), Stop()).run(Budget(ALL)):
        view = view_of(problem, state)
        assert debt(problem, view, hard) <= before
        assert all(
            view.places[replica] == place
            for replica, place in problem.context.today.places.items()
            if view_of(problem, start).places.get(replica) == place
        )
        for shape, count in state.admitted().items():
            assert count <= problem.shapes[shape].demand


def test_tenants_that_are_kept_apart_share_no_node() -> None:
    apart = policy("apart", Separate(by="tenant", at="node"))
    problem = fleet(3, (apart,))
    states = list(Generation(problem, today_state(problem), FleetModel(problem), Stop()).run(Budget(ALL)))
    assert states
    for state in states:
        assert not debt(problem, view_of(problem, state), frozenset(["apart"]))


def test_the_same_problem_gives_the_same_states() -> None:
    runs = []
    for _ in range(2):
        problem = fleet(4)
        states = Generation(problem, today_state(problem), FleetModel(problem), Stop()).run(Budget(ALL))
        runs.append([state.fills for state in states])
    assert runs[0] == runs[1]


def test_without_work_left_there_is_a_state_from_the_patterns_at_hand() -> None:
    problem = fleet(5)
    start = construct(problem, today_state(problem), Stop())
    states = list(Generation(problem, start, FleetModel(problem), Stop()).run(Budget(0.0)))
    assert states
    assert sum(states[-1].admitted().values()) > 0


def test_patterns_that_a_dive_drops_are_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lp, "_MOST", (1, 1))
    problem = fleet(2)
    states = list(Generation(problem, today_state(problem), FleetModel(problem), Stop()).run(Budget(ALL)))
    assert len(states) > 1
    assert all(not debt(problem, view_of(problem, state), frozenset()) for state in states)


@pytest.mark.parametrize("seed", range(4))
def test_a_state_that_follows_the_lp_over_kinds_is_legal_and_worth_half_its_value(seed: int) -> None:
    problem = fleet(seed)
    lp = FleetLp(FleetModel(problem), Stop())
    bound = lp.optimise(problem.tiers[0].name, {})
    state = guided(lp, Stop(), State())
    assert legalise(problem, state) == state
    assert 0.5 * bound <= problem.tiers[0].measure(view_of(problem, state), problem.context) <= bound + ALMOST


def test_the_lp_wanders_to_other_solutions_that_are_worth_as_much() -> None:
    problem = fleet(1)
    lp = FleetLp(FleetModel(problem), Stop())
    (first, second) = list(lp.fleet.tiers)[:2]
    best = floor(lp.optimise(first, {}) - ALMOST)
    lp.optimise(second, {first: best})
    terms = [lp.fleet.tiers[name].terms for name in (first, second)]

    def worth() -> list[float]:
        return [sum(c * lp.values()[v] for v, c in each.items()) for each in terms]

    before, solutions, source = worth(), {tuple(lp.values())}, Random(1)
    for _ in range(3):
        lp.wander(source)
        solutions.add(tuple(lp.values()))
        assert worth()[0] >= best - 1
        assert worth()[1] == pytest.approx(before[1], rel=1e-5)
    assert len(solutions) == 4
    assert lp.optimise(first, {}) >= best


@pytest.mark.parametrize("seed", range(3))
def test_all_ways_to_follow_an_lp_keep_hard_rules(seed: int) -> None:
    problem = fleet(seed, (policy("even", Spread(over="zone", max_skew=1)),))
    lp = FleetLp(FleetModel(problem), Stop())
    lp.optimise(next(iter(lp.fleet.tiers)), {})
    states = list(lead(lp, State(), Stop(), 4, Budget(ALL)).states)
    assert len(states) == 4
    assert len(list(lead(lp, State(), Stop(), 4, Budget(ALL, deadline=0.0)).states)) == 1
    assert all(legalise(problem, state) == state for state in states)
    assert all(not debt(problem, view_of(problem, state), frozenset()) for state in states)


def test_a_fleet_with_prices_is_planned_beside_places_held_free() -> None:
    held = policy("room", Reserve(replicas=1, request=request(1)))
    spec = make_spec([node(f"n{i}", 4, price=5) for i in range(3)], [workload("x", 9, gpus=1)], [held])
    problem = compile_problem(context_of(spec))
    (own,) = (shape.index for shape in problem.shapes if shape.workload.id == "x")
    model = FleetModel(problem, priced=True)
    assert [lot.kind.shapes for lot in fleet_rows(model, State(), range(3)).lots] == [(own,)]
    assert list(Generation(problem, today_state(problem), model, Stop()).run(Budget(ALL)))


def test_how_many_nodes_are_in_use_is_no_row_of_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """They pay for their nodes themselves; every set of nodes solves all rows."""
    nodes = [node(f"n{i}", 4, price=price) for i, price in enumerate((9, 9, 5, 5))]
    problem = compile_problem(context_of(make_spec(nodes, [workload("x", 8, gpus=1)])))
    told = FleetModel(problem, priced=True)
    monkeypatch.setattr(fleet_proof, "FEW_NODES", 0)
    untold = FleetModel(problem, priced=True)
    assert told.in_use
    assert not untold.in_use
    assert fleet_rows(told, State(), range(4)) == fleet_rows(untold, State(), range(4))


def test_what_is_all_admitted_is_wished_for_on_cheaper_nodes() -> None:
    nodes = [node(f"n{i}", 4, price=price) for i, price in enumerate((9, 9, 5, 5))]
    problem = compile_problem(context_of(make_spec(nodes=nodes, workloads=[workload("x", 8, gpus=1)])))
    model = FleetModel(problem, priced=True)
    dear = State({0: Fill(Counter({Slot(0, NO_GPU): 4})), 1: Fill(Counter({Slot(0, NO_GPU): 4}))})
    asks = Generation(problem, State(), model, Stop())
    spares = Generation(problem, State(), model, Stop(), dear)
    assert max(asks.wish.cost) < min(asks.wish.worth.values())
    assert sorted(set(spares.wish.cost)) == pytest.approx([500 / 9, 100])  # whatever the currency
    assert min(spares.wish.worth.values()) > 100
    *_, last = spares.run(Budget(ALL))
    assert sorted(last.fills) == [2, 3]


def priced_fleet(singles: int) -> Problem:
    """Return a fleet whose first shape is worth so much that what nodes cost is no matter beside it."""
    prices = {"a": (4, 20), "b": (4, 10), "c": (2, 9)}
    nodes = [node(f"{make}{i}", gpus, price=price) for make, (gpus, price) in prices.items() for i in range(3)]
    work = [
        workload("pair", 3, gpus=2, value=10**7),
        workload("single", singles, gpus=1, value=1),
        workload("part", 5, share=400, value=1),
    ]
    return compile_problem(context_of(make_spec(nodes=nodes, workloads=work)))


def bill(problem: Problem, state: State) -> float:
    return sum(problem.nodes[index].price for index, fill in state.fills.items() if fill.slots)


def test_what_finds_room_in_the_mixture_is_wished_for_on_cheaper_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = priced_fleet(singles=2)
    one = State({0: Fill(Counter({Slot(problem.shapes_of_workload["single"][0]): 1}))})
    spares = Generation(problem, one, FleetModel(problem, priced=True), Stop())
    assert max(spares.wish.cost) < 1  # not all is there: it is asked for, and nodes cost less than any of it
    states = list(spares.run(Budget(ALL)))
    assert sorted(set(spares.wish.cost)) == pytest.approx([45, 50, 100])
    assert all(sum(state.admitted().values()) == 10 for state in states)
    monkeypatch.setattr(Generation, "_saves", lambda *_: False)
    *_, asked = Generation(problem, one, FleetModel(problem, priced=True), Stop()).run(Budget(ALL))
    assert bill(problem, states[-1]) == 30 < bill(problem, asked)  # 11 GPUs: three nodes of the cheapest make


def test_a_few_that_can_never_be_there_leave_the_cost_to_decide() -> None:
    nodes = [node(f"n{i}", 4, price=price) for i, price in enumerate((9, 9, 5, 5, 5, 5))]
    work = [workload("x", 12, gpus=1), workload("large", 1, gpus=8)]
    crowd = workload("none", 300, cpu=1)
    problem = compile_problem(context_of(make_spec(nodes=nodes, workloads=[*work, crowd])))
    asks = Generation(problem, State(), FleetModel(problem, priced=True), Stop())
    *_, last = asks.run(Budget(ALL))
    assert sorted(set(asks.wish.cost)) == pytest.approx([500 / 9, 100])  # no node has eight GPUs
    assert sum(asks.wish.demand.values()) == 312
    assert bill(problem, last) == 15


def test_what_has_no_room_in_the_mixture_is_asked_for_to_the_end() -> None:
    problem = priced_fleet(singles=30)
    asks = Generation(problem, State(), FleetModel(problem, priced=True), Stop())
    wish = asks.wish
    assert list(asks.run(Budget(ALL)))
    assert asks.wish == wish


def test_where_there_seems_to_be_room_the_least_cost_is_wished_for_at_once() -> None:
    problem = priced_fleet(singles=2)
    spares = Generation(problem, State(), FleetModel(problem, priced=True), Stop(), roomy=True)
    assert max(spares.wish.cost) == 100
    *_, last = spares.run(Budget(ALL))
    assert bill(problem, last) == 30


def test_where_there_is_no_room_after_all_what_is_worth_most_is_asked_for() -> None:
    problem = priced_fleet(singles=30)
    model = FleetModel(problem, priced=True)
    asks, seems = (Generation(problem, State(), model, Stop(), roomy=roomy) for roomy in (False, True))
    assert max(seems.wish.cost) == 100
    *_, last = asks.run(Budget(ALL))
    *_, other = seems.run(Budget(ALL))
    assert seems.wish == asks.wish
    assert other.admitted() == last.admitted()
    pair = problem.shapes_of_workload["pair"][0]
    assert other.admitted()[pair] == 3


@pytest.mark.parametrize("singles", [2, 30])
def test_in_brief_nothing_is_found_where_only_the_least_cost_is_left_to_wish_for(singles: int) -> None:
    problem = priced_fleet(singles=singles)
    brief = Generation(problem, State(), FleetModel(problem, priced=True), Stop(), brief=True)
    assert bool(list(brief.run(Budget(ALL)))) == (singles == 30)
