"""Tests of policies as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.documents import Document
from dovetail.testing.model import Name
from dovetail.whatif import Scenario, Spot, scenario_at


@dataclass(frozen=True, slots=True)
class Case:
    """One case: changes and expectations as of a scenario, a date, and places that are given.

    Parameters
    ----------
    as_of : the date as written, None for that of the command.
    placements : rows as of a Placement document, None where the case is planned.
    """

    name: Name
    scenario: Scenario
    spot: Spot
    as_of: str | None = None
    placements: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PolicyTest:
    """A document of kind PolicyTest.

    Parameters
    ----------
    policies : the policies under test; None for all that apply to the project.
    given : patterns of files that hold documents of the world.
    """

    document: Document
    cases: tuple[Case, ...]
    policies: frozenset[str] | None = None
    given: tuple[str, ...] = ()

    @property
    def spot(self) -> Spot:
        """Where its contents stand."""
        return Spot(self.document, ("spec",))


def read_test(document: Document) -> PolicyTest:
    """Return the test of a document that follows its schema."""
    spec = document.spec
    named = spec.get("policies")
    spot = Spot(document, ("spec",)) / "cases"
    return PolicyTest(
        document=document,
        cases=tuple(_case(document, spot / index, row) for index, row in enumerate(spec["cases"])),
        policies=None if named is None else frozenset(named),
        given=tuple(spec.get("given", ())),
    )


def _case(document: Document, spot: Spot, row: Mapping[str, Any]) -> Case:
    return Case(
        name=Name("PolicyTest", document.identity, row["name"], (spot / "name").position),
        scenario=scenario_at(spot, row, row["name"]),
        spot=spot,
        as_of=row.get("asOf"),
        placements=row.get("placements"),
    )
