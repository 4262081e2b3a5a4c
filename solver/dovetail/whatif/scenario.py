"""Scenarios as values: patches in order, and expectations (S7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dovetail.documents import Document, DocumentSet
from dovetail.faults import FaultLog, Refused
from dovetail.spec import Spec
from dovetail.whatif.base import Patch
from dovetail.whatif.expect import Expectation, examine
from dovetail.whatif.patches import TABLE, Set
from dovetail.whatif.spot import Spot, Unfit

UNNAMED: Final = "whatif"
"""The name of a scenario that is made of options alone."""


@dataclass(frozen=True, slots=True)
class Step:
    """One patch, as it was written (`row`) and where."""

    patch: Patch
    row: Mapping[str, Any]
    spot: Spot


@dataclass(frozen=True, slots=True)
class Scenario:
    """A what-if: changes in order, and what is expected of the result."""

    name: str = UNNAMED
    description: str = ""
    steps: tuple[Step, ...] = ()
    expectations: tuple[Expectation, ...] = ()


def read_scenario(document: Document) -> Scenario:
    """Return the scenario of a document that follows its schema."""
    return scenario_at(Spot(document, ("spec",)), document.spec, document.identity)


def scenario_at(spot: Spot, row: Mapping[str, Any], name: str) -> Scenario:
    """Return the patches and expectations that stand at `spot` in a document, under a name."""
    patches, expected = row.get("patches", ()), row.get("expect", ())
    return Scenario(
        name=name,
        description=row.get("description", ""),
        steps=tuple(step(row, spot / "patches" / index) for index, row in enumerate(patches)),
        expectations=tuple(Expectation(row, spot / "expect" / index) for index, row in enumerate(expected)),
    )


def step(row: Mapping[str, Any], spot: Spot) -> Step:
    """Return a patch from its row, `{KIND: value}`, which stands at `spot`."""
    ((kind, value),) = row.items()
    here = spot / kind
    return Step(TABLE[kind](value, here), row, here)


def redeclared(documents: DocumentSet, steps: Iterable[Step], log: FaultLog) -> DocumentSet:
    """Return the documents that a scenario starts from: those of its `set` patches, whatever stands before them.

    A `set` that would undo an earlier change of the same document is a fault, so that order means what it says.
    """
    changed = set()
    for each in steps:
        if not isinstance(each.patch, Set):
            changed.add(each.patch.subject)
        elif each.patch.subject in changed:
            message = "an earlier patch changes this document, and 'set' replaces it"
            log.append(each.spot.fault(Unfit("DT1809", message, hint="move 'set' before it", of_key=True)))
        documents = each.patch.redeclared(documents)
    return documents


def applied(spec: Spec, scenario: Scenario, documents: DocumentSet, log: FaultLog) -> Spec:
    """Return a Spec with a scenario's changes; a patch that does not fit leaves a fault and changes nothing.

    Parameters
    ----------
    documents : those that the Spec was made of.
    """
    for each in scenario.steps:
        try:
            spec = each.patch.beside(documents).applied(spec)
        except Unfit as unfit:
            log.append(each.spot.fault(unfit))
        except Refused as refused:
            log.extend(refused.faults)
    if not log.errors:
        _settle(spec, scenario, log)
    return spec


def _settle(spec: Spec, scenario: Scenario, log: FaultLog) -> None:
    """Add faults for what does not fit when all is changed, each at the last patch of its subject."""
    last = {each.patch.subject: each for each in scenario.steps}
    for each in last.values():
        try:
            each.patch.settled(spec)
        except Unfit as unfit:
            log.append(each.spot.fault(unfit))


def examined(scenario: Scenario, spec: Spec, log: FaultLog) -> None:
    """Add faults for expectations that cannot be judged of any plan for a Spec."""
    for expectation in scenario.expectations:
        try:
            examine(expectation, spec)
        except Unfit as unfit:
            log.append(expectation.spot.fault(unfit))
