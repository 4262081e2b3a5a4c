"""What every ruin and recreate owes, from any state on: it is better where it says so, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.engine.generation.ruins import Ruins
from dovetail.model.legal import legalise
from dovetail.model.score import hard_policies, owed
from dovetail.model.state import State
from dovetail.problem import Problem


def tried(
    problem: Problem, begun: State, ruins: Ruins, number: int, spoils: Callable[[Problem, State], int], seed: int
) -> bool:
    """Try so often, and tell whether that led to a state that is less spoilt, as it must then be."""
    found = ruins.attempts(number, lambda: False)
    after = ruins.state()
    assert after.admitted() == begun.admitted(), seed
    assert (spoils(problem, after) < spoils(problem, begun)) == found, seed
    hard = hard_policies(problem)
    assert owed(problem, legalise(problem, after), hard) <= owed(problem, begun, hard), seed
    return found
