"""Waste of a layout is named, with the swap that mends it."""

import pytest

from dovetail.catalogue import geometries
from dovetail.mig import Instance, arrange, fits, maximal, parse_instance
from dovetail.mig.waste import Need, Waste, wasted

H100 = geometries()["H100-80GB"]


def of(*texts: str, **needs: tuple[int, int]) -> tuple[Waste, ...]:
    asked = {parse_instance(texts[int(key[1:])]): Need(*need) for key, need in needs.items()}
    return wasted(H100, [parse_instance(text) for text in texts], asked)


def test_seven_small_instances_leave_a_memory_slice_that_a_double_one_would_use() -> None:
    (found,) = of(*(f"1g.10gb@{start}" for start in range(7)))
    assert (found.kind, found.slices) == ("memory", 1)
    assert [swap.profile for swap in found.swaps] == ["1g.20gb"]
    assert str(found) == "1 memory slice that no instance can use; 1g.10gb@0 -> 1g.20gb would use it"


def test_two_3g_lose_a_compute_slice_that_a_4g_would_use() -> None:
    (found,) = of("3g.40gb@0", "3g.40gb@4")
    assert (found.kind, found.slices) == ("compute", 1)
    assert [str(swap) for swap in found.swaps] == ["3g.40gb@0 -> 4g.40gb"]


def test_four_double_instances_lose_three_compute_slices() -> None:
    (found,) = of("1g.20gb@0", "1g.20gb@2", "1g.20gb@4", "1g.20gb@6")
    assert (found.kind, found.slices) == ("compute", 3)
    assert [swap.profile for swap in found.swaps] == ["2g.20gb"] * 3


def test_a_layout_that_takes_more_instances_loses_nothing() -> None:
    assert of("3g.40gb@4") == ()
    assert of() == ()


def test_an_instance_larger_than_asked_could_be_smaller() -> None:
    (found,) = of("4g.40gb@0", "3g.40gb@4", i1=(120, 9000))
    assert found.kind == "larger"
    assert str(found) == "3g.40gb@4 is larger than asked; 3g.40gb@4 -> 1g.10gb would do"


def test_an_instance_that_is_needed_is_no_waste() -> None:
    assert of("4g.40gb@0", "3g.40gb@4", i1=(450, 9000)) == ()
    assert of("4g.40gb@0", "3g.40gb@4", i1=(100, 40000)) == ()


@pytest.mark.parametrize("product", ["A30-24GB", "A100-80GB", "RTXPRO6000-96GB"])
def test_every_swap_gives_a_layout_that_exists_and_leaves_less(product: str) -> None:
    geometry = geometries()[product]
    wasteful = 0
    for counts in maximal(geometry):
        layout = arrange(geometry, counts) or ()
        for waste in wasted(geometry, layout, {}):
            changed = [one.profile for one in layout]
            for swap in waste.swaps:
                changed[layout.index(swap.instance)] = swap.profile
            assert fits(geometry, {name: changed.count(name) for name in changed})
            wasteful += 1
    assert bool(wasteful) == (product == "A100-80GB")


def test_the_layouts_that_public_tables_call_wasteful_are_those_found() -> None:
    """Slice 7 is left by 7x1g, 2+5x1, 2x2+3x1, 3x2+1, 4+2+1 and 4+3x1."""
    found = set()
    for counts in maximal(H100):
        if any("+" in name or name == "1g.20gb" for name in counts):
            continue
        if any(waste.kind == "memory" for waste in wasted(H100, arrange(H100, counts) or (), {})):
            found.add("+".join(f"{number}x{name[0]}" for name, number in counts.items()))
    assert found == {"7x1", "1x2+5x1", "2x2+3x1", "3x2+1x1", "1x4+1x2+1x1", "1x4+3x1"}


def test_instances_are_named_as_documents_name_them() -> None:
    assert str(Waste("memory", 2)) == "2 memory slices that no instance can use"
    assert str(Instance("1g.10gb", 6)) == "1g.10gb@6"
