"""What is run and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from dovetail.faults import Position
from dovetail.plan import Status
from dovetail.whatif import Check, Solve

Verdict = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True, slots=True)
class Name:
    """Which case it is: the kind and name of its document, what the case is called, and where it is written."""

    kind: str
    test: str
    case: str
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How the expectations of a case fare.

    Parameters
    ----------
    status : how the search ended; None where places were given, so that there was none.
    checks : the expectations in order, each with what was found.
    conflict : the hard policies that cannot hold together, where there is no plan and they are known (S6.6).
    """

    name: Name
    status: Status | None
    checks: tuple[Check, ...]
    conflict: tuple[str, ...] = ()

    @property
    def missed(self) -> tuple[Check, ...]:
        """The expectations that do not hold."""
        return tuple(check for check in self.checks if not check.ok)

    @property
    def verdict(self) -> Verdict:
        """Tell whether all holds; where the search had no answer, what does not hold is undecided (S6.4)."""
        if not self.missed:
            return "pass"
        return "undecided" if self.status == "unknown" else "fail"


class Trial(Protocol):
    """A case that fits its world, before anything is planned or judged."""

    @property
    def name(self) -> Name:
        """Which case it is."""

    @property
    def planned(self) -> bool:
        """Whether it takes a search."""

    def run(self, solve: Solve) -> CaseResult:
        """Plan what has to be planned, and judge what is expected."""
