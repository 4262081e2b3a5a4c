"""Bounds on fleets count a workload that stands or falls together as a whole or not at all, with a proof of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.engine.test_gatherings import gangs, problem_of, ragged
from tests.oracle.brute import TooLarge, ascending, brute
from tests.support.fleet_cuts import cuts
from tests.support.specs import make_spec, node, policy, request, role, workload
from tests.support.tiny_gangs import tiny_gangs

from dovetail.engine.bounds import Bounds
from dovetail.engine.fleet.cases import COUNTS, CaseSearch
from dovetail.engine.fleet.fleet_bounds import FleetBounds, proof_of
from dovetail.engine.fleet.homes import amounts_of, settle
from dovetail.engine.generation.crews import crews
from dovetail.progress import Stop
from dovetail.proof import cells, fleet
from dovetail.proof.certificate import Branch
from dovetail.proof.fleet_models import FleetModels
from dovetail.proof.models import Earlier
from dovetail.proof.tree import Question, Unproved, check_tree, next_value
from dovetail.rules.quota import Quota
from dovetail.rules.spread import Spread
from dovetail.spec import Spec, Topology, WorkloadSelector


def half_too_many() -> Spec:
    """Return three nodes and two gangs of two."""
    return make_spec(ragged([3]), gangs(2, 2))


def test_half_a_gang_is_worth_nothing() -> None:
    problem = problem_of(half_too_many())
    tier, bounds = problem.tiers[0], FleetBounds(problem, Stop())
    each = tier.limit(problem.context) // 2
    bounds.prove(tier, {})
    whole = bounds.best(tier, {})
    assert whole is not None
    assert whole[0] == each * 3 // 2
    bounds.prove(tier, {}, reached=each)
    split = bounds.best(tier, {})
    assert split is not None
    assert split[0] == each


def test_who_cannot_be_there_together_has_prices_all_the_same() -> None:
    problem = problem_of(half_too_many())
    name, lp = problem.tiers[0].name, FleetBounds(problem, Stop()).plain
    free = lp.optimise(name, {})
    lp.assume(dict.fromkeys(lp.fleet.flags, 1))
    assert lp.optimise(name, {}) < 0
    assert lp.proof().bound(lp.proof().total(lp.fleet, {}), {}) >= round(free)
    lp.assume(dict.fromkeys(lp.fleet.flags, 0))
    assert lp.optimise(name, {}) == pytest.approx(0)
    lp.assume({})
    assert lp.optimise(name, {}) == pytest.approx(free)


def test_the_cases_are_a_tree_that_the_verifier_follows() -> None:
    problem = problem_of(half_too_many())
    tier, bounds = problem.tiers[0], FleetBounds(problem, Stop())
    bounds.prove(tier, {}, reached=0)
    best = bounds.best(tier, {})
    assert best is not None
    told = FleetModels(fleet.FleetModel(problem)).of_tier(0, {})
    target = next_value(told.objective, best[0])
    check_tree(
        Question(told.objective, target, told.lower, told.upper, told.rows, told.blocks),
        proof_of(tier.name, best[0], {}, best[1]).tree,
    )


def crowded_quota() -> Spec:
    """Return a quota of seven GPUs for replicas of two and of three: three and a half of the first are worth most."""
    limit = policy("limit", Quota(limits=(("gpus", 7000),)))
    work = [workload("two", 9, gpus=2, value=30), workload("three", 9, gpus=3, value=40)]
    return make_spec(nodes=[node(name, 8) for name in "abc"], workloads=work, policies=(limit,))


@pytest.mark.parametrize(("whole", "most"), [(False, 103), (True, 100)])
def test_replicas_are_counted_in_whole_numbers_where_that_is_asked_for(whole: bool, most: int) -> None:
    problem = problem_of(crowded_quota())
    tier, bounds = problem.tiers[0], FleetBounds(problem, Stop())
    cases = bounds.cases(tier, {}, reached=0, priced=True, seconds=None, counts=whole * COUNTS)
    bounds.learn(tier, cases, priced=True)
    best = bounds.best(tier, {})
    assert best is not None
    assert best[0] == most
    told = FleetModels(fleet.FleetModel(problem, priced=True)).of_tier(0, {})
    target = next_value(told.objective, most)
    question = Question(told.objective, target, told.lower, told.upper, told.rows, told.blocks)
    tree = proof_of(tier.name, most, {}, best[1]).tree
    assert any(isinstance(each, Branch) for each in tree) is whole
    check_tree(question, tree)
    with pytest.raises(Unproved):
        check_tree(replace(question, target=most), tree)


def test_where_time_cuts_an_lp_a_case_is_proved_by_what_proved_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(crowded_quota())
    tier, lp = problem.tiers[0], FleetBounds(problem, Stop()).priced
    lp.optimise(tier.name, {})
    known = lp.proof()
    useless = replace(known, rows={}, prices={})
    monkeypatch.setattr(lp, "proof", lambda: useless)
    cases = CaseSearch(lp, tier.name, {}, whole=known).split(0, 0, None, Stop(), 2)
    assert cases.branches
    most = known.bound(known.total(lp.fleet), {})
    assert cases.leaves[cases.best].value <= most < useless.bound(useless.total(lp.fleet), {})


def two_bands() -> Spec:
    """Return three nodes; first two gangs of two, one worth three of the other, and at last single GPUs."""
    dear, cheap = (replace(each, priority=900) for each in gangs(2, 2))
    dear = replace(dear, roles=tuple(replace(role, value=3 * role.value) for role in dear.roles))
    return make_spec(ragged([3]), [dear, cheap, workload("single", 30, gpus=1, priority=100)])


def test_who_cannot_be_there_for_an_earlier_tier_is_not_asked_about_again() -> None:
    problem = problem_of(two_bands())
    tiers = {tier.name: tier for tier in problem.tiers}
    place = list(tiers).index("admitted[100]")
    bounds, unaware = FleetBounds(problem, Stop()), FleetBounds(problem, Stop())
    best = tiers["admitted[900]"].limit(problem.context) * 3 // 4
    given = dict.fromkeys(list(tiers)[:place], 0) | {"admitted[900]": best}
    bounds.prove(tiers["admitted[900]"], {}, reached=best)
    assert bounds.best(tiers["admitted[900]"], {})[0] == best  # type: ignore[index]
    bounds.prove(tiers["admitted[100]"], given, reached=0)
    unaware.prove(tiers["admitted[100]"], given, reached=0)
    found, other = bounds.best(tiers["admitted[100]"], given), unaware.best(tiers["admitted[100]"], given)
    assert found is not None
    assert other is not None
    assert found[0] == other[0] == tiers["admitted[100]"].limit(problem.context) * 8 // 30
    tree = proof_of("admitted[100]", found[0], given, found[1]).tree
    assert tree[0] == Branch(bounds.plain.fleet.flags["g1"], 0)  # no LP is solved with it
    earlier = {name: Earlier(value, None) for name, value in given.items()}
    told = FleetModels(fleet.FleetModel(problem)).of_tier(place, earlier)
    target = next_value(told.objective, found[0])
    check_tree(Question(told.objective, target, told.lower, told.upper, told.rows, told.blocks), tree)


def test_no_case_cuts_a_gang_that_brute_force_places() -> None:
    compared = 0
    for seed in range(16):
        spec = tiny_gangs(seed)
        try:
            optimum = brute(spec)
        except TooLarge:
            continue
        if optimum is not None:
            compared += 1
            assert not list(cuts(spec, ascending(optimum.tiers, optimum.values))), f"seed {seed}"
    assert compared > 4


def test_gangs_that_the_lp_has_are_placed_before_all_else() -> None:
    low = [replace(each, priority=100) for each in gangs(2)]
    single = [workload(f"s{i}", 1, gpus=3, type="job", priority=500) for i in range(2)]
    spec = make_spec(ragged([3]), [*low, *single])
    problem = problem_of(spec)
    lp = FleetBounds(problem, Stop()).target(dict.fromkeys((tier.name for tier in problem.tiers), -1))
    state = crews(lp, Stop())
    assert [state.totals().admitted[s] for w in low for s in problem.shapes_of_workload[w.id]] == [2]
    assert len(state.fills) == 2


@pytest.mark.parametrize(("step", "wide"), [(1, 3), (2, 3), (3, 1)])
def test_an_elastic_gang_is_as_wide_as_the_lp_has_it(step: int, wide: int) -> None:
    """Five nodes, of which work of a higher priority needs two."""
    roles = [role("", 7, request(8), least=1, step=step)]
    elastic = replace(workload("gang", roles=roles, type="gang", priority=100, communicates=True), min_replicas=1)
    single = workload("s", 2, gpus=8, type="job", priority=500)
    problem = problem_of(make_spec(ragged([5]), [elastic, single]))
    lp = FleetBounds(problem, Stop()).target(dict.fromkeys((tier.name for tier in problem.tiers), -1))
    assert len(crews(lp, Stop()).fills) == wide


def test_gangs_that_are_torn_apart_get_a_home_each() -> None:
    each = replace(policy("few", Spread(over="rack", max_per_domain=1)), workloads=WorkloadSelector(names=("s",)))
    inside = [replace(gang, topology=Topology(within="rack")) for gang in gangs(6, 5, 4)]
    spec = make_spec(ragged([7, 6, 5]), [*inside, workload("s", 3, gpus=8, priority=900)], (each,))
    problem = problem_of(spec)
    lp = FleetBounds(problem, Stop()).target(dict.fromkeys((tier.name for tier in problem.tiers), -1), None)
    amounts = [amounts_of(lp, gang) for gang in inside]
    assert [list(map(round, found.values())) for found in amounts] == [[6], [5], [4]]
    places = crews(lp, Stop()).fills
    wide = {problem.nodes[n].domain("rack") for n in places}
    assert (len(places), len(wide)) == (15, 3)


def test_who_is_to_be_there_stays_while_gangs_get_their_homes() -> None:
    inside = [replace(gang, topology=Topology(within="rack")) for gang in gangs(6, 5, 4)]
    late = workload("late", 30, gpus=8, type="gang", value=90_000)  # parts of it are worth more than the others
    problem = problem_of(make_spec(ragged([7, 6, 5]), [*inside, late]))
    lp, tier = FleetBounds(problem, Stop()).plain, problem.tiers[0].name
    there = {**dict.fromkeys((gang.id for gang in inside), 1), late.id: 0}
    lp.assume(there)
    reached = lp.optimise(tier, {})
    torn = [len(amounts_of(lp, gang)) for gang in inside]
    settle(lp, tier, {}, there, int(reached), Stop())
    assert max(torn) > 1
    assert [list(map(round, amounts_of(lp, gang).values())) for gang in (*inside, late)] == [[6], [5], [4], []]


@pytest.mark.parametrize(
    ("racks", "sizes", "domains"),
    [([8, 4, 8], (5, 6), [1, 1]), ([4, 6, 7], (5, 5, 5), [1, 1, 2])],
)
def test_no_gang_gets_a_home_where_it_cannot_be(racks: list[int], sizes: tuple[int, ...], domains: list[int]) -> None:
    """One is torn, mostly in a rack that is too small for it; or for one there is none at all."""
    each = replace(policy("few", Spread(over="rack", max_per_domain=1)), workloads=WorkloadSelector(names=("s",)))
    inside = [replace(gang, topology=Topology(within="rack")) for gang in gangs(*sizes)]
    problem = problem_of(make_spec(ragged(racks), [*inside, workload("s", 3, gpus=8, priority=100)], (each,)))
    lp, tier = FleetBounds(problem, Stop()).plain, problem.tiers[0].name
    there = dict.fromkeys((gang.id for gang in inside), 1)
    lp.assume(there)
    reached = lp.optimise(tier, {})
    assert max(len(amounts_of(lp, gang)) for gang in inside) > 1
    settle(lp, tier, {}, there, int(reached), Stop())
    found = [amounts_of(lp, gang) for gang in inside]
    assert [round(sum(amounts.values())) for amounts in found] == list(sizes)
    assert sorted(map(len, found)) == domains


def test_a_tier_of_too_many_domains_has_no_bound_of_the_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_MOST_CELLS", 3)
    problem = problem_of(make_spec(ragged([2, 2, 2, 2]), gangs(2, 3)))
    bounds = Bounds(problem, Stop())
    assert [tier.name for tier in problem.tiers if not bounds.fleet.knows(tier)] == ["topology[rack]"]
    values = [0 for _ in problem.tiers]
    bounds.sharpen(values, ())
    assert len(bounds.results(values, ()).tiers) == len(values)
