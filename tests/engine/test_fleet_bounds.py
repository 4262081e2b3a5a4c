"""The relaxation of whole fleets cuts no optimum: neither its rows do, nor what its LP's multipliers prove."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from tests.oracle.brute import TooLarge, ascending, brute
from tests.support.fleet_cuts import cuts, standing_cuts
from tests.support.specs import CARD, make_spec, node, place, policy, request, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.bounds import Bounds
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.ways import Ways
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.model.state import today_state
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.proof.fleet import FleetModel
from dovetail.proof.standing import StandingModel
from dovetail.rules import Rule, context_of
from dovetail.rules.quota import Quota
from dovetail.rules.reserve import Reserve
from dovetail.rules.separate import Separate
from dovetail.rules.sharing import Sharing
from dovetail.rules.spread import Spread
from dovetail.spec import Objective, Spec, WorkloadSelector

SLICE = 32
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "20000"))
CAMPAIGN_CHUNKS = 5
CHUNK = 300


def faults(first: int, count: int) -> list[str]:
    found = []
    for seed in range(first, first + count):
        try:
            optimum = brute(tiny(seed))
        except TooLarge:
            continue
        if optimum is not None:
            best = ascending(optimum.tiers, optimum.values)
            found += [f"seed {seed}: {cut}" for cut in (*cuts(tiny(seed), best), *standing_cuts(tiny(seed), best))]
    return found


def test_no_bound_cuts_what_brute_force_finds() -> None:
    assert faults(0, SLICE) == []


@pytest.mark.parametrize(("replicas", "enforcement", "best"), [(12, "hard", [10_000]), (10, 1, [10_000, 0])])
def test_places_within_one_node_are_nowhere_impossible(
    replicas: int, enforcement: str | int, best: list[int]
) -> None:
    room = policy("room", Reserve(2, request(1), within="node"), enforcement=enforcement)
    spec = make_spec([node(f"n{i}", 4) for i in range(3)], [workload("w", replicas, gpus=1)], [room])
    assert list(cuts(spec, best)) == []


def test_what_is_spread_evenly_is_whole_in_every_domain() -> None:
    nodes = [node("a", 8, domains={"zone": "a"}), node("b", 3, domains={"zone": "b"})]
    even = policy("even", Spread(over="zone", max_skew=1))
    work = [workload(name, 4, gpus=1) for name in ("v", "w")]
    problem = compile_problem(context_of(make_spec(nodes=nodes, workloads=work, policies=(even,))))
    bounds, tier = FleetBounds(problem, Stop()), problem.tiers[0]
    bounds.prove(tier, {})
    best = bounds.best(tier, {})
    assert best is not None
    assert best[0] == 7000  # of 8000: two and two of each, or one where the other has two


def test_a_quota_counts_whole_gpus() -> None:
    limit = policy("limit", Quota(limits=(("gpus", 3900),)))
    work = [workload("v", 4, gpus=1), workload("w", 1, share=400)]
    problem = compile_problem(context_of(make_spec(nodes=[node("a", 8)], workloads=work, policies=(limit,))))
    bounds, tier = FleetBounds(problem, Stop()), problem.tiers[0]
    bounds.prove(tier, {})
    best = bounds.best(tier, {})
    assert best is not None
    assert best[0] == 3400  # of 3900, which three and the share do not fill


def test_who_finds_no_other_node_is_evicted_and_that_is_proved() -> None:
    """The only node of a kind has failed; a service and a job that ran on it may be nowhere else."""
    nodes = [node("a", 2, down=True), node("b", 2, accelerator="L4")]
    work = [workload("v", 2, gpus=1, accelerators=(CARD,)), workload("w", 1, gpus=1)]
    running = {"v#0": place("a", 0), "v#1": place("a", 1), "w#0": place("b", 0)}
    problem = compile_problem(context_of(make_spec(nodes=nodes, workloads=work, running=running)))
    bounds, tier = FleetBounds(problem, Stop()), next(t for t in problem.tiers if t.name == "disruption.evicted")
    assert bounds.stands(tier)
    bounds.stand(tier, {}, 1, [])
    best = bounds.best(tier, {})
    assert best is not None
    assert best[0] == 1


def test_who_has_no_room_in_a_quota_is_evicted_and_that_is_proved() -> None:
    """Both ran until a node failed; the one that runs on takes all of their quota."""
    limit = policy("limit", Quota(limits=(("gpus", 2000),)))
    nodes, work = [node("a", 2, down=True), node("b", 8)], [workload("v", 2, gpus=1), workload("w", 2, gpus=1)]
    running = {f"{name}#{i}": place(where, i) for name, where in (("v", "a"), ("w", "b")) for i in range(2)}
    spec = make_spec(nodes=nodes, workloads=work, policies=(limit,), running=running)
    problem = compile_problem(context_of(spec))
    bounds, tier = FleetBounds(problem, Stop()), next(t for t in problem.tiers if t.name == "disruption.evicted")
    bounds.stand(tier, {"admitted[0]": 2000}, 1, [])
    best = bounds.best(tier, {"admitted[0]": 2000})
    assert best is not None
    assert best[0] == 1


def proved(spec: Spec, name: str, given: dict[str, int]) -> int:
    """Return the bound on a tier, given earlier ones."""
    problem = compile_problem(context_of(spec))
    bounds, tier = FleetBounds(problem, Stop()), next(t for t in problem.tiers if t.name == name)
    assert bounds.knows(tier)
    bounds.prove(tier, given, priced=True)
    best = bounds.best(tier, given)
    assert best is not None
    return best[0]


def test_who_finds_all_places_taken_is_evicted_and_that_is_proved() -> None:
    """Of three that ran until their node failed, one finds a place beside those that run on."""
    nodes, work = [node("a", 4, down=True), node("b", 3)], [workload("v", 3, gpus=1), workload("w", 2, gpus=1)]
    running = {f"v#{i}": place("a", i) for i in range(3)} | {f"w#{i}": place("b", i) for i in range(2)}
    alone = make_spec(nodes=nodes, workloads=work, running=running)
    assert proved(alone, "disruption.evicted", {"admitted[0]": 3000}) == 1
    work = [*work[1:], *(workload(f"v{i}", 1, gpus=1) for i in range(3))]
    running = {f"v{i}#0": place("a", i) for i in range(3)} | {f"w#{i}": place("b", i) for i in range(2)}
    apart = make_spec(nodes=nodes, workloads=work, running=running)
    assert proved(apart, "disruption.evicted", {"admitted[0]": 3000}) == 2


def test_what_cannot_be_mended_is_proved() -> None:
    """Five run in one of two zones, and one of them finds a place in the other: four and one are two too uneven."""
    nodes = [node("a", 8, domains={"zone": "a"}), node("b", 1, domains={"zone": "b"})]
    even = policy("even", Spread(over="zone", max_skew=1))
    running = {f"w#{i}": place("a", i) for i in range(5)}
    spec = make_spec(nodes=nodes, workloads=[workload("w", 5, gpus=1)], policies=(even,), running=running)
    assert proved(spec, "mend", {}) == 2


def test_what_goes_for_higher_bands_is_proved() -> None:
    """Three of five GPUs are taken by what comes first: two of four stay that may have to go."""
    work = [workload("h", 3, gpus=1, priority=9), workload("w", 4, gpus=1, preemptible=True)]
    running = {f"w#{i}": place("n", i) for i in range(4)}
    spec = make_spec(nodes=[node("n", 5)], workloads=work, running=running)
    assert proved(spec, "retained[0]", {"admitted[9]": 3000}) == 2000


def test_what_work_is_lost_for_higher_bands_is_proved() -> None:
    """Two of four GPUs are taken by what comes first: those go who have lost least, of a gang all or nobody."""
    nodes, high = [node("n", 4)], workload("h", 2, gpus=1, priority=9)
    low = [workload(name, 1, gpus=1, preemptible=True) for name in ("young", "older", "old", "oldest")]
    where = {f"{each.id}#0": place("n", i) for i, each in enumerate(low)}
    spec = make_spec(nodes=nodes, workloads=[high, *low], running=where)
    elapsed = {"young": 10_000, "older": 20_000, "old": 40_000, "oldest": 80_000}
    spec = replace(spec, current=replace(spec.current, elapsed=elapsed))
    given = {"admitted[9]": 2000, "retained[0]": 2000, "admitted[0]": 2000, "disruption.evicted": 2}
    assert proved(spec, "disruption.gpuTimeLost", given) == 1000 * (10 + 20)
    gang = workload("gang", 2, type="gang", gpus=1, preemptible=True, checkpoint_every=60_000)
    where = {"gang#0": place("n", 0), "gang#1": place("n", 1), "old#0": place("n", 2), "oldest#0": place("n", 3)}
    spec = make_spec(nodes=nodes, workloads=[high, gang, *low[2:]], running=where)
    spec = replace(spec, current=replace(spec.current, elapsed=elapsed))
    assert proved(spec, "disruption.gpuTimeLost", {**given, "disruption.evicted": 1}) == 2000 * 30
    assert proved(spec, "disruption.gpuTimeLost", given) == 2000 * 30


def moves_for(spec: Spec, workload: str, admitted: int) -> int:
    """Return how many must move for all of a workload to be there, as far as that is proved beside what runs."""
    problem = compile_problem(context_of(spec))
    bounds, tier = FleetBounds(problem, Stop()), next(t for t in problem.tiers if t.name == "disruption.moves")
    routes = Ways(Outlooks(Field(problem, today_state(problem))), frozenset())
    given = {"admitted[0]": admitted}
    bounds.stand(tier, given, 1, problem.shapes_of_workload[workload], None, routes)
    best = bounds.best(tier, given)
    assert best is not None
    return best[0]


@pytest.mark.parametrize("size", [1, 2])
def test_who_must_leave_a_zone_for_what_is_spread_evenly_is_proved(size: int) -> None:
    """What lost its node has to be in a zone that is full, though there is room in the other."""
    nodes = [node("a", 8, domains={"zone": "a"}), node("b", 3, domains={"zone": "b"})]
    lost = node("c", 2, domains={"zone": "b"}, down=True)
    even = policy("even", Spread(over="zone", max_skew=1), workloads=WorkloadSelector(names=("w",)))
    work = [workload("w", 4, gpus=1), workload("v", 2 // size, gpus=size)]
    running = {"w#0": place("a", 0), "w#1": place("a", 1), "w#2": place("b", 0), "w#3": place("c", 0)}
    running |= {f"v#{i}": place("b", *range(1 + i * size, 1 + (i + 1) * size)) for i in range(2 // size)}
    assert moves_for(make_spec([*nodes, lost], work, (even,), running=running), "w", 6000) == 1


def test_who_must_leave_one_of_two_full_zones_is_proved() -> None:
    """What lost its node may be in either of two zones, both full, though there is room in the other two."""
    nodes = [node(zone, 4 if zone in "cd" else 2, domains={"zone": zone}) for zone in "abcd"]
    lost = node("e", 1, domains={"zone": "a"}, down=True)
    even = policy("even", Spread(over="zone", max_skew=1), workloads=WorkloadSelector(names=("w",)))
    work = [workload("w", 7, gpus=1), workload("v", 2, gpus=1)]
    places = (place("a", 0), place("b", 0), place("c", 0), place("c", 1), place("d", 0), place("d", 1), place("e", 0))
    running = {f"w#{i}": each for i, each in enumerate(places)}
    running |= {"v#0": place("a", 1), "v#1": place("b", 1)}
    assert moves_for(make_spec([*nodes, lost], work, (even,), running=running), "w", 9000) == 1


@pytest.mark.parametrize("second", [(0, 1), (2, 3), (0, 3)])
def test_nodes_are_told_once_where_the_same_runs_on_whichever_gpus(second: tuple[int, int]) -> None:
    nodes = [node(name, 4) for name in "abcd"]
    work = [workload("s", 3, share=500), workload("w", 2, gpus=1)]
    running = {"w#0": place("a", 0), "s#0": place("a", 1), "w#1": place("b", second[0]), "s#1": place("b", second[1])}
    running |= {"s#2": place("c", 0)}
    problem = compile_problem(context_of(make_spec(nodes=nodes, workloads=work, running=running)))
    (lot,) = StandingModel(problem).lots_of[0]
    assert sorted(contents.times for contents in lot.contents) == [1, 2]
    assert (lot.bare, lot.nodes) == (1, 4)
    assert sorted(lot.protected.values()) == [2, 3]


@pytest.mark.campaign
@pytest.mark.parametrize("chunk", range(CAMPAIGN_CHUNKS))
def test_no_bound_cuts_an_optimum_of_thousands(chunk: int) -> None:
    first = CAMPAIGN_FIRST + chunk * CHUNK
    print(f"seeds {first} to {first + CHUNK - 1}")
    assert faults(first, CHUNK) == []


@pytest.mark.parametrize(("rule", "told"), [(Sharing(1), True), (Separate("workload", "gpu"), False)])
def test_a_bound_says_that_it_ignores_what_it_counts_in_part(rule: Rule, told: bool) -> None:
    """How many clients a GPU has is no row of nodes, only how many of one workload they hold."""
    work = [workload("a", 2, share=400), workload("b", 2, share=300)]
    spec = make_spec([node("n", 2, mechanism="fraction")], work, [policy("few", rule)])
    assert ("few" in FleetModel(compile_problem(context_of(spec))).relaxed) == told


@pytest.mark.parametrize(("enforcement", "told"), [("hard", True), (1, True), ("audit", False)])
def test_a_bound_beside_what_runs_ignores_no_policy_that_is_only_reported(enforcement: str | int, told: bool) -> None:
    work = [workload("a", 2, share=400), workload("b", 2, share=300)]
    apart = policy("apart", Separate("workload", "gpu"), enforcement=enforcement)
    spec = make_spec([node("n", 2, mechanism="fraction")], work, [apart], running={"a#0": place("n", 0)})
    assert ("apart" in StandingModel(compile_problem(context_of(spec))).relaxed) == told


def test_a_tier_that_counts_nodes_has_a_bound_of_its_own_once_time_is_up() -> None:
    """Whoever looks for closer ones meanwhile may not have come to it."""
    nodes = [replace(node(name, 4), price=1_000_000) for name in "abc"]
    objective = Objective(tiers=("admitted", "disruption", "cost"))
    problem = compile_problem(context_of(make_spec(nodes, [workload("w", 3, gpus=2)], objective=objective)))
    bounds = Bounds(problem, Stop())
    bounds.until = 0.0
    values = [{"cost": 2_000_000}.get(tier.name, tier.limit(problem.context)) for tier in problem.tiers]
    bounds.sharpen(values, ())
    cost = next(tier for tier in bounds.results(values, ()).tiers if tier.name == "cost")
    assert (cost.bound, cost.proof) == (1_500_000, "certificate")  # a node and a half
