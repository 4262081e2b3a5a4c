"""What differs beside workloads: what became of policies, and what plans tell of GPUs, held places and the like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dovetail.diff.model import PolicyChange, SectionChange, SectionName
from dovetail.plan import to_document
from dovetail.plan.model import Plan, PolicyResult

SECTIONS: tuple[SectionName, ...] = ("gpus", "held", "recovery", "promises")
"""Sections of a plan that are maps, and that neither its rows nor its figures tell in full."""


def policy_changes(base: Plan, target: Plan) -> Iterator[PolicyChange]:
    """Yield the policies whose outcome, or whose violation of any subject, differs, by name."""
    for name in sorted(base.policies.keys() | target.policies.keys()):
        before, after = base.policies.get(name), target.policies.get(name)
        found = PolicyChange(
            name,
            before.result if before else None,
            after.result if after else None,
            violation=(before.violation if before else 0, after.violation if after else 0),
            unit=(after or before or _NOWHERE).unit,
            subjects=dict(_subjects(before or _NOWHERE, after or _NOWHERE)),
        )
        if found.before != found.after or found.subjects or found.violation[0] != found.violation[1]:
            yield found


_NOWHERE = PolicyResult("audit", "pass", 0, "")


def _subjects(before: PolicyResult, after: PolicyResult) -> Iterator[tuple[str, tuple[int, int]]]:
    for subject in sorted(before.subjects.keys() | after.subjects.keys()):
        counts = before.subjects.get(subject, 0), after.subjects.get(subject, 0)
        if counts[0] != counts[1]:
            yield subject, counts


def section_changes(base: Plan, target: Plan) -> Iterator[SectionChange]:
    """Yield the entries of the further sections that differ, as plans write them; of recovery the cases that do."""
    before, after = _written(base), _written(target)
    for section in SECTIONS:
        old, new = before.get(section, {}), after.get(section, {})
        for name in sorted(old.keys() | new.keys()):
            sides = old.get(name), new.get(name)
            if sides[0] != sides[1]:
                yield SectionChange(section, name, *(_cases(*sides) if section == "recovery" else sides))


def _written(plan: Plan) -> dict[str, Any]:
    bare = replace(plan, placements={}, admitted={}, policies={})
    found: dict[str, Any] = to_document(bare)["spec"]
    return found


def _cases(before: dict[str, Any] | None, after: dict[str, Any] | None) -> tuple[dict[str, Any] | None, ...]:
    """Return both sides without the failure cases that are told alike."""
    old, new = before or {}, after or {}
    same = {case for case in old.keys() & new.keys() if old[case] == new[case]}
    return tuple(
        None if side is None else {case: rows for case, rows in side.items() if case not in same}
        for side in (before, after)
    )
