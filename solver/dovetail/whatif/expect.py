"""Expectations: what must hold of a scenario's plan, and what was found instead (S7.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from dovetail.plan import Figure, Plan
from dovetail.plan.finish import WITHOUT_PLACES
from dovetail.plan.summary import with_zeros
from dovetail.quantities import counted
from dovetail.spec import Spec
from dovetail.whatif.spot import Spot, Unfit, unknown

Actual = str | Figure | None
"""What was found; None where the plan does not say, as when there is none."""

_BOUNDS: Final[Mapping[str, Callable[[Figure, Figure], bool]]] = MappingProxyType(
    {
        "atMost": lambda found, bound: found <= bound,
        "atLeast": lambda found, bound: found >= bound,
        "equals": lambda found, bound: found == bound,
    }
)
_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {"summary": "", "atMost": "at most", "atLeast": "at least", "result": "", "subjects": "by"}
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation as written, and where; `row` follows the schema."""

    row: Mapping[str, Any]
    spot: Spot

    def __str__(self) -> str:
        """Return what is expected, in words."""
        return " ".join(f"{_WORDS.get(key, key)} {_said(value)}".lstrip() for key, value in self.row.items())


def _said(value: Any) -> str:
    """Return a value in words: names in a row, subjects with how much each breaks."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({count:,})" for name, count in sorted(value.items())) or "nothing"
    return ", ".join(sorted(value)) if isinstance(value, list | tuple) else str(value)


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation, whether it holds, and what was found."""

    expectation: Expectation
    ok: bool
    actual: Actual


@dataclass(frozen=True, slots=True)
class Subject:
    """What an expectation may be about.

    Parameters
    ----------
    claims : the keys that say what is expected of it; at least one is given, all that are given must hold.
    judge : from the expectation, the Spec and the plan to whether it holds and what was found.
    known : the names there are; None where only the plan can tell, or the schema lists them.
    """

    claims: tuple[str, ...]
    judge: Callable[[Mapping[str, Any], Plan], tuple[bool, Actual]]
    code: str = ""
    known: Callable[[Spec], list[str]] | None = None


def _bounded(row: Mapping[str, Any], found: Figure | None) -> tuple[bool, Actual]:
    if found is None:
        return False, None
    return all(holds(found, row[key]) for key, holds in _BOUNDS.items() if key in row), found


def _workload(row: Mapping[str, Any], plan: Plan) -> tuple[bool, Actual]:
    if plan.outcome.status in WITHOUT_PLACES:
        return False, None
    name = row["workload"]
    result = plan.admitted.get(name)
    state = result.state if result else "full"
    admitted = sum(replica.workload == name for replica in plan.placements)
    ok, _ = _bounded(row, admitted)
    ok = ok and row.get("replicas", admitted) == admitted and row.get("admitted", state) == state
    if "admitted" not in row:
        return ok, admitted
    return ok, state if row.keys() <= {"workload", "admitted"} else f"{state}, {admitted} admitted"


def _summary(row: Mapping[str, Any], plan: Plan) -> tuple[bool, Actual]:
    return _bounded(row, with_zeros(plan.summary).get(row["summary"]))


def _tier(row: Mapping[str, Any], plan: Plan) -> tuple[bool, Actual]:
    return _bounded(row, next((tier.value for tier in plan.tiers if tier.name == row["tier"]), None))


def _status(row: Mapping[str, Any], plan: Plan) -> tuple[bool, Actual]:
    status = plan.outcome.status
    if "conflict" not in row:
        return status == row["status"], status
    ok = status == row["status"] and sorted(row["conflict"]) == sorted(plan.conflict)
    return ok, f"{status}, conflict {_said(plan.conflict)}" if plan.conflict else f"{status}, no conflict known"


def _policy(row: Mapping[str, Any], plan: Plan) -> tuple[bool, Actual]:
    found = plan.policies.get(row["policy"])
    if found is None:
        return False, None
    told = {"result": found.result, "violation": found.violation, "subjects": dict(found.subjects)}
    ok = all(row[key] == value for key, value in told.items() if key in row)
    if not found.violation:
        return ok, found.result
    return ok, f"{found.result}, {counted(found.violation, found.unit)} by {_said(found.subjects)}"


def _policies(spec: Spec) -> list[str]:
    return [policy.name for policy in spec.policies]


SUBJECTS: Final[Mapping[str, Subject]] = MappingProxyType(
    {
        "workload": Subject(
            ("admitted", "replicas", *_BOUNDS), _workload, "DT1806", lambda spec: list(spec.declared)
        ),
        "summary": Subject(tuple(_BOUNDS), _summary),
        "tier": Subject(tuple(_BOUNDS), _tier),
        "status": Subject(("conflict",), _status),
        "policy": Subject(("result", "violation", "subjects"), _policy, "DT1808", _policies),
    }
)
"""What expectations are about, by the key that names it."""


def check(expectation: Expectation, plan: Plan) -> Check:
    """Return whether an expectation holds of a plan."""
    return Check(expectation, *SUBJECTS[_subject(expectation.row)].judge(expectation.row, plan))


def examine(expectation: Expectation, spec: Spec) -> None:
    """Raise `Unfit` where an expectation says nothing, or names what the scenario does not have."""
    name = _subject(expectation.row)
    subject = SUBJECTS[name]
    _examine_claims(expectation.row, name, subject)
    if subject.known and expectation.row[name] not in (known := subject.known(spec)):
        raise unknown(subject.code, name, expectation.row[name], known, name)
    for index, each in enumerate(expectation.row.get("conflict", ())):
        if each not in (policies := _policies(spec)):
            raise unknown("DT1808", "policy", each, policies, "conflict", index)


def _examine_claims(row: Mapping[str, Any], name: str, subject: Subject) -> None:
    """Raise `Unfit` where nothing is said of a subject, or what never holds of it."""
    claims = [key for key in row if key != name]
    for key in claims:
        if key not in subject.claims:
            raise Unfit("DT1810", f"'{key}' says nothing about a {name}", key, of_key=True)
    if "conflict" in claims and row[name] != "infeasible":
        message = f"'conflict' says nothing about the status {row[name]}"
        raise Unfit("DT1810", message, "conflict", hint="expect `status: infeasible`", of_key=True)
    if not claims and name != "status":
        raise Unfit("DT1810", f"nothing is expected of the {name}", hint=f"add one of {', '.join(subject.claims)}")


def _subject(row: Mapping[str, Any]) -> str:
    named = [name for name in SUBJECTS if name in row]
    if not named:
        raise Unfit("DT1810", "the expectation names nothing", hint=f"add one of {', '.join(SUBJECTS)}")
    return named[0]
