"""What the built-in tables allow, enumerated: the counts of NVIDIA's figures and of public studies."""

import dataclasses
from collections import Counter

import pytest

from dovetail.catalogue import geometries
from dovetail.mig import (
    Counts,
    Geometry,
    Profile,
    affordable,
    arrange,
    fits,
    layouts,
    legal,
    maximal,
    multisets,
    positional,
)
from dovetail.model.partitions import counted

SEVEN = [name for name, one in geometries().items() if one.axis == 8]
KNOWN = [name for name, one in geometries().items() if one.known]
REPRESENTATIVES = ["A30-24GB", "A100-40GB", "H100-80GB", "RTXPRO6000-96GB"]


def only(geometry: Geometry, *, double: bool = True, variants: bool = True) -> Geometry:
    """Return a geometry without the double-memory 1g, or without variants such as `+me`."""
    kept = [
        profile
        for profile in geometry.profiles
        if (double or (profile.compute, profile.size) != (1, 2)) and (variants or not set("+-") & set(profile.name))
    ]
    return dataclasses.replace(geometry, profiles=tuple(kept))


def numbers(geometry: Geometry) -> tuple[int, int, int]:
    return sum(1 for _ in layouts(geometry)), len(multisets(geometry)), len(maximal(geometry))


def compact(counts: Counts) -> frozenset[tuple[str, int]]:
    return frozenset(counts.items())


@pytest.mark.parametrize("product", ["A100-40GB", "H100-80GB", "B200-180GB"])
def test_the_seven_slice_family_has_the_known_layouts(product: str) -> None:
    geometry = geometries()[product]
    assert numbers(only(geometry, double=False, variants=False)) == (298, 38, 12)
    assert numbers(only(geometry, variants=False)) == (723, 78, 28)
    assert numbers(geometry) == (2319, 128, 44)


def test_the_whole_family_shares_one_table_of_slices() -> None:
    tables = {
        tuple((p.compute, p.size, p.starts, p.maximum, "+me" in p.name) for p in geometries()[product].profiles)
        for product in SEVEN
    }
    assert len(SEVEN) == 16
    assert len(tables) == 1


def test_an_a100_has_the_nineteen_combinations_of_nvidias_figure() -> None:
    geometry = only(geometries()["A100-40GB"], double=False, variants=False)
    everything = list(layouts(geometry))
    sets = [frozenset(layout) for layout in everything]
    largest = [one for one in sets if not any(one < other for other in sets)]
    assert len(largest) == 19


def test_the_a30_and_the_rtx_pro_6000_have_the_known_layouts() -> None:
    small, large = geometries()["A30-24GB"], geometries()["RTXPRO6000-96GB"]
    assert numbers(only(small, variants=False)) == (26, 10, 4)
    assert numbers(small) == (76, 20, 8)
    assert numbers(only(large, variants=False)) == (26, 10, 4)
    assert numbers(large) == (717, 115, 64)


@pytest.mark.parametrize("product", REPRESENTATIVES)
def test_layouts_by_position_are_as_many_counted_as_listed(product: str) -> None:
    geometry = geometries()[product]
    assert positional(geometry) == sum(1 for _ in layouts(geometry))


def test_layouts_of_many_positions_are_counted_at_once() -> None:
    table = observed(*(profile(f"1g.2gb+{letter}", 1, range(16), 16) for letter in "abc"), slices=16)
    assert positional(table) == 4**16
    assert len(multisets(table)) == len(list(affordable(table))) == 969


def test_instances_that_never_all_find_a_start_are_told_at_once() -> None:
    table = observed(*(profile(f"1g.2gb+{letter}", 1, range(15), 16) for letter in "abc"), slices=16)
    assert fits(table, {"1g.2gb+a": 5, "1g.2gb+b": 5, "1g.2gb+c": 5})
    assert not fits(table, {"1g.2gb+a": 6, "1g.2gb+b": 5, "1g.2gb+c": 5})


def test_large_maxima_take_no_longer_to_count_with() -> None:
    names = [f"1g.2gb+{letter}" for letter in "abcdef"]
    table = observed(*(profile(name, 1, range(4), 64) for name in names), slices=4)
    assert counted(table, frozenset(names))
    short = observed(*(profile(name, 1, range(3), 64) for name in names), slices=4)
    assert not counted(short, frozenset(names))


def profile(name: str, size: int, starts: range, maximum: int) -> Profile:
    return Profile(name, 1, size, 1_024, 50, tuple(starts), maximum)


def observed(*profiles: Profile, slices: int) -> Geometry:
    return Geometry("observed", slices, slices, {}, profiles)


@pytest.mark.parametrize("product", REPRESENTATIVES)
def test_counts_that_hold_every_budget_have_a_layout_and_the_other_way_round(product: str) -> None:
    geometry = geometries()[product]
    enumerated = {compact(Counter(one.profile for one in layout)) for layout in layouts(geometry)}
    assert {compact(counts) for counts in multisets(geometry)} == enumerated
    assert enumerated == {compact(counts) for counts in _within_budgets(geometry)}


def _within_budgets(geometry: Geometry) -> list[Counts]:
    """Return the multisets that the two-knapsack rule allows, from its text alone."""
    found: list[dict[str, int]] = [{}]
    for profile in geometry.profiles:
        found = [{**counts, profile.name: n} if n else counts for counts in found for n in range(profile.maximum + 1)]
        found = [counts for counts in found if _holds(geometry, counts)]
    return list(found)


def _holds(geometry: Geometry, counts: Counts) -> bool:
    def total(amounts: dict[str, int]) -> int:
        return sum(amounts[name] * number for name, number in counts.items())

    profiles = geometry.by_name
    budgets = [
        ({name: profiles[name].compute for name in profiles}, geometry.compute),
        ({name: profiles[name].size for name in profiles}, geometry.axis),
        *(
            ({name: profiles[name].engines.get(kind, 0) for name in profiles}, most)
            for kind, most in geometry.engines.items()
        ),
    ]
    return all(total(amounts) <= most for amounts, most in budgets)


def test_engines_alone_exclude_what_the_slices_would_allow() -> None:
    excluded = {}
    for product in ("A30-24GB", "RTXPRO6000-96GB", "H100-80GB"):
        geometry = geometries()[product]
        without = dataclasses.replace(geometry, engines={})
        excluded[product] = len(multisets(without)) - len(multisets(geometry))
    assert excluded == {"A30-24GB": 2, "RTXPRO6000-96GB": 57, "H100-80GB": 0}


@pytest.mark.parametrize("product", REPRESENTATIVES)
def test_arranged_instances_are_legal_beside_the_pinned_ones(product: str) -> None:
    geometry = geometries()[product]
    for counts in multisets(geometry):
        placed = arrange(geometry, counts)
        assert placed is not None
        assert legal(geometry, placed) is None
        assert compact(Counter(one.profile for one in placed)) == compact(counts)


def test_a_third_of_what_fits_by_count_is_blocked_by_position() -> None:
    """34 % of an A100-80GB's pairs of layout and profile, 38.6 % without the double-memory 1g, 11 % of an A30's."""
    large, small = geometries()["A100-80GB"], geometries()["A30-24GB"]
    assert _blocked(only(large, variants=False)) == pytest.approx(0.34, abs=0.005)
    assert _blocked(only(large, double=False, variants=False)) == pytest.approx(0.386, abs=0.0005)
    assert _blocked(only(small, variants=False)) == pytest.approx(0.11, abs=0.005)


def _blocked(geometry: Geometry) -> float:
    fitting = blocked = 0
    for layout in layouts(geometry):
        counts = Counter(one.profile for one in layout)
        for name in geometry.by_name:
            if fits(geometry, counts + Counter({name: 1})):
                fitting += 1
                blocked += arrange(geometry, {name: 1}, layout) is None
    return blocked / fitting


@pytest.mark.parametrize("product", REPRESENTATIVES)
def test_arrangements_block_nothing_that_fits_by_count(product: str) -> None:
    geometry = geometries()[product]
    for counts in multisets(geometry):
        placed = arrange(geometry, counts) or ()
        for name in geometry.by_name:
            fitting = fits(geometry, Counter(counts) + Counter([name]))
            assert (arrange(geometry, {name: 1}, placed) is not None) == fitting, (counts, name)


@pytest.mark.parametrize("product", KNOWN)
def test_equal_questions_have_equal_answers(product: str) -> None:
    geometry = geometries()[product]
    smallest = geometry.profiles[-1].name
    twin = dataclasses.replace(geometry)
    assert arrange(geometry, {smallest: 1}) == arrange(twin, {smallest: 1}) is not None
    assert arrange(geometry, {}) == ()
