"""What every solver backend is given and gives back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a solver says; `unknown` is neither of the others."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """A solver's answer: variable values where there is a solution, a bound in the objective's sense, work used."""

    verdict: Verdict
    values: list[int] | None = None
    bound: int | None = None
    work: float = 0.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard to try: deterministic work, a ceiling in seconds, workers (more than one is not reproducible).

    `around` looks for better solutions around the ones at hand alone, without a proof that there is none.
    """

    work: float
    seconds: float | None = None
    workers: int = 1
    seed: int = 1
    around: bool = False


class BackendTooLarge(Exception):
    """A model has more variables than a backend is asked about; `variables` may be a lower bound on their number."""

    def __init__(self, variables: int, largest: int) -> None:
        super().__init__(
            f"the exact model has at least {variables:,} variables; a second opinion is given up to {largest:,}"
        )
        self.variables = variables
        self.largest = largest

    def __reduce__(self) -> tuple[type[BackendTooLarge], tuple[int, int]]:
        """Let it pass from one process to another."""
        return type(self), (self.variables, self.largest)
