"""Rounds of parts: each has a tier that leads, and keeps what there is of those before."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import cast

import pytest
from tests.support.specs import make_spec, node, place, request, role, workload

from dovetail.engine import improving, ladder, solve
from dovetail.engine.budget import Budget
from dovetail.engine.fleet.losses import Losses
from dovetail.engine.improving import Improving
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.parts.rounds import Round, Task
from dovetail.engine.record import Record, Undecided
from dovetail.engine.solvers.answer import Effort
from dovetail.model.state import State
from dovetail.objectives import Tier
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import context_of

ROUNDS = 400


class FirstLoses:
    """A proof by which the first node alone loses."""

    def of(self, state: State) -> dict[int, float]:
        return {0: 1.0}

    def wanted(self, state: State) -> dict[int, float]:
        return {}


@dataclass
class Best:
    """What a search has come to, with gaps of its admitted tiers."""

    problem: Problem
    gaps: dict[str, float]
    closed: tuple[Tier, ...] = ()
    state: State = field(default_factory=State)
    unpaid: frozenset[str] = frozenset()

    @property
    def undecided(self) -> list[Undecided]:
        told = [tier for tier in self.problem.tiers if tier.name in self.gaps]
        return [Undecided(tier, cast(Losses, FirstLoses()), self.gaps[tier.name]) for tier in told]

    def close_enough(self) -> bool:
        return False


@dataclass
class Rounds:
    """What rounds were asked for; those led by some tiers are better than before."""

    better: frozenset[str] = frozenset()
    lost: bool = False
    tasks: list[Task] = field(default_factory=list)
    parts: list[list[list[int]]] = field(default_factory=list)
    efforts: list[Effort] = field(default_factory=list)

    def improve(self, task: Task, state: State, parts: list[list[int]], effort: Effort, *rest: object) -> Round:
        self.tasks.append(task)
        self.parts.append(parts)
        self.efforts.append(effort)
        return Round(state, (False,) * len(parts), 0.0, self.lead(task) in self.better, self.lost)

    @staticmethod
    def lead(task: Task) -> str:
        """Return the first tier that is sought."""
        return next(tier.name for tier in task.problem.tiers if tier not in task.held)


def _problem() -> Problem:
    nodes = [node(f"n{i}", 2) for i in range(40)]
    asked = [workload(f"t/w{band}", roles=[role("", 9, request(1))], priority=band) for band in (100, 500, 900)]
    spec = make_spec(nodes, asked)
    return compile_problem(context_of(spec))


def _run(monkeypatch: pytest.MonkeyPatch, best: Best, rounds: Rounds, way: str) -> None:
    monkeypatch.setattr(improving, "improve", rounds.improve)
    search = Improving(best.problem, Jobs(), Stop(), cast(Record, best))
    taken = getattr(search, way)(Budget(1e6, None))
    for _ in itertools.islice(taken, ROUNDS):
        pass


@pytest.mark.parametrize("way", ["exactly", "around"])
def test_what_there_is_of_tiers_before_the_one_that_leads_is_kept(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    problem = _problem()
    first, second, third = (tier for tier in problem.tiers if tier.kind == "admitted")
    best, rounds = Best(problem, {first.name: 0.01, third.name: 0.01}, (second,)), Rounds()
    _run(monkeypatch, best, rounds, way)
    held = {task.held for task in rounds.tasks}
    assert held == {(second,), (first, second)}


def test_a_tier_with_a_larger_gap_leads_more_often_and_an_earlier_one_of_two_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = _problem()
    first, second, third = (tier.name for tier in problem.tiers if tier.kind == "admitted")
    rounds = Rounds(frozenset({first, second, third}))  # none is in vain
    _run(monkeypatch, Best(problem, {first: 1e-4, second: 0.01, third: 0.01}), rounds, "around")
    led = [rounds.lead(task) for task in rounds.tasks]
    assert led.count(second) > led.count(third) > led.count(first) > 0


def test_a_tier_of_few_domains_leads_no_more_often_than_an_earlier_one_with_much_to_save(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two domains, one less is half of all."""
    problem = _problem()
    first, second, _ = (tier.name for tier in problem.tiers if tier.kind == "admitted")
    rounds = Rounds(frozenset({first, second}))
    _run(monkeypatch, Best(problem, {first: 0.06, second: 1.0}), rounds, "around")
    led = [rounds.lead(task) for task in rounds.tasks]
    assert led.count(first) > led.count(second) > 0


def test_a_tier_that_nothing_is_found_of_leads_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem()
    first, _, third = (tier.name for tier in problem.tiers if tier.kind == "admitted")
    rounds = Rounds(frozenset({third}))
    _run(monkeypatch, Best(problem, {first: 0.01, third: 0.01}), rounds, "around")
    led = [rounds.lead(task) for task in rounds.tasks]
    assert led.count(third) > led.count(first) > 0


def test_nothing_is_held_after_a_part_had_no_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem()
    first = next(tier for tier in problem.tiers if tier.kind == "admitted")
    rounds = Rounds(lost=True)
    _run(monkeypatch, Best(problem, {}, (first,)), rounds, "around")
    assert [task.held for task in rounds.tasks[:3]] == [(first,), (), ()]


def test_without_a_lead_what_is_proved_after_an_open_tier_is_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem()
    first, second, third = (tier for tier in problem.tiers if tier.kind == "admitted")
    for closed, held in (((first, third), (first,)), ((second, third), ()), ((first, second), (first, second))):
        rounds = Rounds()
        _run(monkeypatch, Best(problem, {}, closed), rounds, "exactly")
        assert {task.held for task in rounds.tasks} == {held}


def test_a_part_moves_who_runs_for_what_waits_although_nobody_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """That nobody moves is proved before, as none can move less; it is no reason to let anything wait."""
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    monkeypatch.setattr(ladder, "_BESIDE", ())
    gang = workload("gang", 2, type="gang", gpus=1, checkpoint_every=0, priority=1)
    asked = [gang, workload("large", gpus=2, priority=1), workload("low", gpus=1)]
    nodes = [node("a", 1), node("b", 2), node("c", 1)]
    spec = make_spec(nodes, asked, running={"gang#0": place("b", 0), "gang#1": place("c", 0)})
    plan = solve(spec, Limits(work=10.0))
    placed = {str(replica): where.node for replica, where in plan.placements.items()}
    assert placed == {"gang#0": "a", "gang#1": "c", "large#0": "b"}


def test_parts_that_are_looked_around_in_hold_a_node_that_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem()
    tier = next(tier for tier in problem.tiers if tier.kind == "admitted")
    rounds = Rounds()
    _run(monkeypatch, Best(problem, {tier.name: 0.01}), rounds, "around")
    assert all(sum(0 in part for part in parts) == 1 for parts in rounds.parts)
    assert all(effort.around for effort in rounds.efforts)
