"""Bounds that another process looks for are those found here, and it may be lost at any time."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from math import inf
from typing import Any

import pytest
from tests.engine.test_cases import two_bands
from tests.engine.test_gatherings import problem_of
from tests.engine.test_generate import fleet
from tests.support.specs import make_spec, node, workload

from dovetail.engine import bounds as engine_bounds
from dovetail.engine.bounds import Bounds
from dovetail.engine.fleet import pursuit
from dovetail.engine.fleet.aside import Aside
from dovetail.engine.fleet.cases import COUNTS, Cases
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.engine.fleet.pursuit import Best, Pursuit
from dovetail.objectives import Tier
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.proof.certificate import FLEET, FLEET_PRICED
from dovetail.rules import context_of
from dovetail.spec import Objective

PATIENCE = 60.0


def nothing(problem: Problem, number: int = 1, *, last: bool = False) -> Best:
    """Return what a plan has that admits nothing."""
    return Best(number, (0,) * len(problem.tiers), time.monotonic() + PATIENCE, last)


def kinds(fleet: FleetBounds, tier: Tier) -> list[str]:
    """Return which rows the bounds on a tier are about."""
    return [found.kind for found in fleet._found[tier.name]]


def test_bounds_found_aside_are_those_found_here() -> None:
    problem = fleet(1)
    here, there = FleetBounds(problem, Stop()), FleetBounds(problem, Stop())
    tiers = {tier.name: tier for tier in problem.tiers}
    aside = Aside(problem.spec)
    found = set()
    try:
        aside.tell(nothing(problem, 7, last=True))
        for heard in aside.heard(Stop(), time.monotonic() + PATIENCE):
            if isinstance(heard, int):
                assert heard == 7
                break
            name, cases, _ = heard
            assert aside._process is not None
            assert os.getpriority(os.PRIO_PROCESS, aside._process.pid or 0) > os.getpriority(os.PRIO_PROCESS, 0)
            there.learn(tiers[name], cases, priced=True)
            given = dict.fromkeys(list(tiers)[: list(tiers).index(name)], 0)
            whole = name in found  # once every tier has a bound
            cases = here.cases(tiers[name], given, reached=0, priced=True, seconds=None, counts=whole * COUNTS)
            here.learn(tiers[name], cases, priced=True)
            ours, theirs = here.best(tiers[name], given), there.best(tiers[name], given)
            assert ours is not None
            assert theirs is not None
            assert ours[0] == theirs[0]
            assert list(ours[1].tree(given)) == list(theirs[1].tree(given))
            found.add(name)
    finally:
        aside.close()
    assert {name for name in tiers if name.startswith("admitted")} <= found


def test_a_process_that_is_gone_is_noticed_and_bounds_are_looked_for_here() -> None:
    problem = fleet(1)
    aside = Aside(problem.spec)
    bounds = Bounds(problem, Stop(), aside)
    bounds.until = time.monotonic() + PATIENCE
    aside.tell(nothing(problem))
    aside.close()
    aside.tell(nothing(problem))
    assert list(aside.heard(Stop(), time.monotonic() + PATIENCE)) == []
    assert not bounds.pursued
    values = [0] * len(problem.tiers)
    bounds.sharpen(values, ())
    assert bounds.results(values, ()).tiers[0].proof == "certificate"


def test_there_is_none_where_a_search_is_to_be_reproduced_or_has_one_processor() -> None:
    problem = fleet(1)
    assert Aside.for_limits(problem.spec, Limits(work=1.0, jobs=2)) is None
    assert Aside.for_limits(problem.spec, Limits(time=1.0, jobs=1)) is None


def test_without_one_few_nodes_are_told_apart_by_the_search_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = fleet(1)
    values = [0] * len(problem.tiers)
    alone, led = Bounds(problem, Stop()), Bounds(problem, Stop(), Aside(problem.spec))
    led.until = time.monotonic() + PATIENCE
    for bounds in (alone, led):
        bounds.tell_apart(values, (), inf)
    admitted = [tier for tier in problem.tiers if tier.kind == "admitted" and alone.fleet.knows(tier)]
    assert alone.fleet.asked == {tier.name for tier in admitted}
    told = {kind for tier in admitted for kind in kinds(alone.fleet, tier)}
    assert told == {FLEET, FLEET_PRICED}
    assert not led.fleet.asked
    monkeypatch.setattr(engine_bounds, "FEW_NODES", len(problem.nodes) - 1)
    many = Bounds(problem, Stop())
    assert many.tell_apart(values, (), inf) == 0
    assert not many.fleet.asked


def test_little_work_is_left_for_what_comes_first() -> None:
    problem = fleet(1)
    bounds = Bounds(problem, Stop())
    values = [0] * len(problem.tiers)
    assert bounds.tell_apart(values, (), 0.001) == 0
    assert bounds.tell_apart(values, (), inf) > 0.001


def test_tiers_take_turns_and_are_not_asked_twice_for_the_same() -> None:
    problem = fleet(1)
    search = Pursuit(FleetBounds(problem, Stop()))
    known = [tier.name for tier in problem.tiers]
    asked = []
    while (found := search.next(nothing(problem, last=True))) is not None:
        asked.append(found[0])
    first = list(dict.fromkeys(asked))
    later = asked[len(first) :]
    counted = list(dict.fromkeys(later))
    opened = later[len(counted) :]
    assert asked == [name for turn in (first, counted, opened) for name in known if name in turn]
    assert len(first) > 1
    assert all(name.startswith("admitted") for name in (*counted, *opened))


def test_cost_has_its_turn_while_plans_admit_more_and_more() -> None:
    nodes = [node(f"n{i}", 4, price=1000) for i in range(3)]
    problem = compile_problem(context_of(make_spec(nodes, [workload("w", 9, gpus=2), workload("c", 4, cpu=80_000)])))
    search, asked = Pursuit(FleetBounds(problem, Stop())), list[str]()
    admitted = [tier.name for tier in problem.tiers if tier.kind == "admitted"]
    for _ in range(2 * len(admitted) + 1):
        values = tuple(10_000 * tier.counts_nodes for tier in problem.tiers)
        found = search.next(Best(1, values, time.monotonic() + PATIENCE))
        assert found is not None
        asked.append(found[0])
        search._asked.clear()  # as if what earlier tiers reach were another value for each plan
    assert asked == [*admitted, *admitted, "cost"]


def test_what_is_lost_is_not_guessed_to_be_less_than_a_plan_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be no room for all that is admitted at so little, and then the bounds after it are worth nothing."""
    objective = Objective(tiers=("admitted", "fragmentation", "cost"))
    nodes = [node(f"n{i}", 4, price=1000) for i in range(3)]
    problem = problem_of(make_spec(nodes, [workload("w", 5, gpus=3), workload("v", 2, gpus=1)], objective=objective))
    cases, given = FleetBounds.cases, dict[str, Mapping[str, int]]()

    def noted(self: FleetBounds, tier: Tier, earlier: Mapping[str, int], **more: Any) -> Cases:
        given[tier.name] = dict(earlier)
        return cases(self, tier, earlier, **more)

    monkeypatch.setattr(FleetBounds, "cases", noted)
    search = Pursuit(FleetBounds(problem, Stop()))
    while search.next(Best(1, (11_000, 3000, 3000), time.monotonic() + PATIENCE)) is not None:
        pass
    assert given["cost"]["fragmentation"] == 3000


def test_what_only_idle_processors_are_worth_stands_back_and_comes_last() -> None:
    problem, stood_back = fleet(1), list[int]()
    search, found = Pursuit(FleetBounds(problem, Stop()), lambda: stood_back.append(len(found))), list[str]()
    while (each := search.next(nothing(problem, last=True))) is not None:
        found.append(each[0])
    assert stood_back
    assert set(found[: stood_back[0]]) == set(found)


def test_gangs_are_told_apart_once_every_tier_has_a_bound() -> None:
    problem = problem_of(two_bands())
    search = Pursuit(FleetBounds(problem, Stop()))
    now = Best(1, (1,) * len(problem.tiers), time.monotonic() + PATIENCE)
    found = []
    while (each := search.next(now)) is not None:
        found.append(each)
    first = [each.tier for each in found].index("admitted[100]")
    assert all(not each.cases.branches for each in found[:first])
    assert any(each.cases.branches for each in found[first + 1 :])


def test_nothing_is_looked_for_where_all_that_asks_is_there() -> None:
    problem = fleet(1)
    limits = tuple(tier.limit(problem.context) for tier in problem.tiers)
    assert Pursuit(FleetBounds(problem, Stop())).next(Best(1, limits, time.monotonic() + PATIENCE)) is None


def test_large_fleets_have_bounds_before_there_is_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound for every band with GPUs, what earlier ones have guessed; none of small fleets, or without time."""
    problem = fleet(1)
    assert Pursuit(FleetBounds(problem, Stop())).before_any_plan(nothing(problem)) is None
    monkeypatch.setattr(pursuit, "EXACT_VARIABLES", 0)
    monkeypatch.setattr(FleetBounds, "large", True)
    early = Pursuit(FleetBounds(problem, Stop()))
    found = []
    while (each := early.before_any_plan(nothing(problem))) is not None:
        found.append(each[0])
    asked = [tier.name for tier in problem.tiers if tier.name.startswith("admitted[")]
    assert found[: len(asked)] == asked
    assert not any(name.startswith("admitted-cpu") for name in found)
    late = Best(0, (0,) * len(problem.tiers), time.monotonic() - 1)
    assert Pursuit(FleetBounds(problem, Stop())).before_any_plan(late) is None


def test_bands_of_many_nodes_are_bounded_without_prices_first(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = fleet(1)
    monkeypatch.setattr(pursuit, "FEW_NODES", 0)
    search, found = Pursuit(FleetBounds(problem, Stop())), list[pursuit.Found]()
    while (each := search.next(nothing(problem))) is not None:
        found.append(each)
    bands = list(dict.fromkeys(each.tier for each in found if each.tier.startswith("admitted")))
    assert [(each.tier, each.priced) for each in found[: len(bands)]] == [(name, False) for name in bands]
    assert len(bands) > 1
    assert {each.tier for each in found if each.priced} >= {bands[0]}


def test_what_time_has_cut_is_not_asked_for_again_with_less_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = fleet(1)
    slow = Pursuit(FleetBounds(problem, Stop()))
    monkeypatch.setattr(Pursuit, "_numbered", lambda *_: False)
    monkeypatch.setattr(FleetBounds, "knows_nodes", lambda *_: False)
    monkeypatch.setattr(pursuit, "_CUT", 0.0)  # as if every LP had taken all of its time
    first = slow.next(nothing(problem))
    assert first is not None
    asked = []
    while (each := slow.next(nothing(problem))) is not None:
        asked.append(each[0])
    assert first[0] not in asked
