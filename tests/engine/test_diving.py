"""Dives go through their nodes as fast as through their time, and the best of their ends counts."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import inf

import pytest
from tests.engine.test_generate import ALL, fleet, master_of, worth

from dovetail.engine.budget import Budget
from dovetail.engine.contents.patterns import Mixture, Whole
from dovetail.engine.generation import diving
from dovetail.engine.generation import master as lp
from dovetail.engine.generation.diving import Chosen, dive
from dovetail.engine.generation.master import Master
from dovetail.engine.generation.pricing import Pricing
from dovetail.progress import Stop

NOTHING = Whole([], -inf, {}, {}, 0, cut=False)
LOSES = 14  # a fleet that loses much where it is settled step by step without new patterns


class ByHand(Pricing):
    """A pricing whose work and seconds are told."""

    def __init__(self, work: float, seconds: float) -> None:
        self.now = work, seconds

    @property
    def left(self) -> tuple[float, float]:
        return self.now


@pytest.mark.parametrize(
    ("work", "seconds", "nodes", "behind"),
    [
        (1.0, 1.0, 1.0, False),  # shares of what there was at first
        (0.5, 1.0, 1.0, True),
        (1.0, 0.5, 1.0, True),
        (0.5, 0.5, 0.5, True),  # of a half, 0.35 is for the end
        (0.5, 1.0, 0.1, False),
        (1.0, 0.5, 0.1, False),
        (0.8, 0.8, 0.5, False),
        (0.3, 1.0, 0.1, True),  # of what is for the end
        (1.0, 0.3, 0.1, True),
        (1.0, 1 - 1e-6, 1.0, False),  # a moment is no delay
        (1.0, 0.9, 1.0, True),
    ],
)
def test_a_dive_is_behind_once_time_or_work_has_gone_faster_than_nodes(
    work: float, seconds: float, nodes: float, behind: bool
) -> None:
    pricing = ByHand(8.0, 60.0)
    pace = diving._Pace(pricing, 30.0)
    pricing.now = 8.0 * work, 60.0 * seconds
    assert pace.behind(30.0 * nodes) is behind


def test_without_a_time_limit_work_alone_sets_the_pace() -> None:
    pricing = ByHand(8.0, sys.float_info.max)
    pace = diving._Pace(pricing, 30.0)
    assert not pace.behind(30.0)
    pricing.now = 4.0, sys.float_info.max
    assert pace.behind(30.0)
    assert not pace.behind(3.0)


def mixed(seed: int) -> tuple[Master, Mixture, Pricing]:
    problem = fleet(seed)
    master = master_of(problem)
    pricing = Pricing(problem, master.rows.lots, Budget(ALL), Stop())
    return master, pricing.settle(master, pricing.solve(master), 30, inf), pricing


def ending(seed: int, monkeypatch: pytest.MonkeyPatch, first: Whole) -> tuple[Chosen, float, int]:
    """Return what a dive settles that is told an end in whole numbers, its worth, and how often it asked for one.

    It finds no new patterns.
    """
    master, mixture, pricing = mixed(seed)
    answers = [first]
    asked = 0

    def whole(*_: object) -> Whole:
        nonlocal asked
        asked += 1
        return answers.pop() if answers else NOTHING

    with monkeypatch.context() as patch:
        patch.setattr(Pricing, "whole", whole)
        patch.setattr(Pricing, "grow", lambda *_: False)
        chosen = dive(master, mixture, pricing)[0]
    return chosen, worth(master, chosen), asked


@pytest.mark.parametrize("seed", range(8))
def test_a_dive_goes_on_step_by_step_where_whole_numbers_give_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, mixture, _ = mixed(seed)
    chosen, value, asked = ending(seed, monkeypatch, NOTHING)
    assert 0.6 * mixture.value <= value <= mixture.value * (1 + 1e-6)
    assert 0 < sum(times for _, times in chosen) <= sum(master.sizes)
    assert 1 <= asked <= 2


def test_a_dive_ends_where_whole_numbers_lose_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    master, mixture, pricing = mixed(LOSES)
    found = pricing.whole(master, mixture).chosen
    chosen, _, asked = ending(LOSES, monkeypatch, Whole(found, mixture.value - 1.0, {}, {}, 0, cut=False))
    assert (chosen, asked) == (found, 1)


def test_of_the_ends_of_a_dive_the_best_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    master, mixture, pricing = mixed(LOSES)
    found = pricing.whole(master, mixture).chosen
    steps, value, _ = ending(LOSES, monkeypatch, NOTHING)
    assert value < mixture.value - 800  # so that both ends told here lose much
    for told, best in ((value - 1, steps), ((value + mixture.value) / 2, found)):
        chosen, _, asked = ending(LOSES, monkeypatch, Whole(found, told, {}, {}, 0, cut=False))
        assert chosen == best != []
        assert asked == 2  # it went on all the same
    assert steps != found


@pytest.mark.parametrize("seed", range(12))
def test_a_dive_taken_again_where_it_lost_most_ends_no_worse(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    worths = []
    monkeypatch.setattr(Pricing, "whole", lambda *_: NOTHING)  # which may have more than is asked for
    for times in (0, diving._AGAIN):
        monkeypatch.setattr(diving, "_AGAIN", times)
        master, mixture, pricing = mixed(seed)
        chosen = dive(master, mixture, pricing, tails=())[0]
        master.reset()
        assert all(column.pattern for column, _ in chosen)
        for column, count in chosen:
            assert master.times(column) >= count  # within nodes and demand, steps taken back left nothing behind
            master.take(column, count)
        worths.append(worth(master, chosen))
    assert worths[0] - 1e-6 <= worths[1]


def test_a_pattern_with_more_than_is_left_is_cut_down_to_that() -> None:
    master, mixture, _ = mixed(1)
    column = next(
        master.columns[index]
        for index in mixture.uses
        if any(n > 1 for n in master.columns[index].counts.values())
        and len(master.rows.lots[master.columns[index].lot].nodes) > 1
    )
    shape = next(s for s, n in column.counts.items() if n > 1)
    master.demand[shape] = 1
    assert master.times(column) == 0
    master.narrow(mixture)
    cut = [other for other in master.columns if other.lot == column.lot and other.counts.get(shape) == 1]
    expected = {s: min(n, 1) if s == shape else n for s, n in column.counts.items()}
    assert any(other.counts == expected and master.times(other) for other in cut)


def thrifty(seed: int) -> tuple[diving._Dive, Mixture]:
    """Return a dive without tails that is still to begin, and the mixture that it begins with."""
    master, mixture, pricing = mixed(seed)
    return diving._Dive(master, pricing, 30, [], goes_back=True), mixture


@pytest.mark.parametrize("seed", range(4))
def test_a_step_that_is_taken_back_has_its_patterns_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dive, mixture = thrifty(seed)
    master, in_use = dive.master, diving._in_use(dive.master, mixture)
    settled = diving._step(master, mixture, first=True, sure=0.7, at_once=0.1)
    assert settled
    monkeypatch.setattr(lp, "_MOST", (0, 0))
    master.forget(replace(mixture, uses={}))
    assert not any(column.counts for column in master.columns)
    dive._undo([diving._Step(settled, 0.0, in_use)])
    assert dive.pricing.solve(master).value == pytest.approx(mixture.value)


@pytest.mark.parametrize("better", [False, True])
def test_the_last_nodes_are_settled_in_whole_numbers_as_well(better: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    dive, mixture = thrifty(LOSES)
    asked: list[tuple[Chosen, float]] = []

    def whole(self: Pricing, master: Master, mixture: Mixture, most: float, known: Chosen, least: float) -> Whole:
        asked.append((known, least))
        return Whole(known[:1], least + (1.0 if better else -1.0), {}, {}, 0, cut=False)

    monkeypatch.setattr(Pricing, "whole", whole)
    dive.down(mixture)
    ((known, least),) = asked
    value, steps = dive.ends[0]
    assert least == value + dive.master.wish.grain
    assert sum(times for _, times in known) >= min(diving._LAST, sum(times for _, times in steps))
    before, last = steps[: -len(known)], steps[-len(known) :]
    assert all(each in known for each in last)
    assert [chosen for _, chosen in dive.ends[1:]] == ([[*before, known[0]]] if better else [])


def test_an_lp_that_lost_for_want_of_time_has_more_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    master, mixture, pricing = mixed(LOSES)
    given = 0

    def more() -> None:
        nonlocal given
        given += 1

    monkeypatch.setattr(Pricing, "over", property(lambda _: True))
    lost = replace(mixture, value=mixture.value + 1000.0)
    assert diving._priced(master, pricing, 5, lost, more).value == pytest.approx(mixture.value)
    assert given == diving._MORE
    assert diving._priced(master, pricing, 5, mixture, more).value == pytest.approx(mixture.value)
    assert given == diving._MORE


@pytest.mark.parametrize("spent", [False, True])
def test_without_work_the_last_nodes_are_not_settled_all_at_once(
    spent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, mixture, pricing = mixed(LOSES)
    asked: list[Mixture] = []

    def whole(self: Pricing, master: Master, mixture: Mixture, most: float) -> Whole:
        asked.append(mixture)
        return NOTHING

    monkeypatch.setattr(Pricing, "whole", whole)
    if spent:
        pricing.budget.work = 0.0
    assert dive(master, mixture, pricing, tails=(1000.0,))
    assert bool(asked) is not spent
