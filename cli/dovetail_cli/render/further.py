"""What differs beside workloads, in words, whatever the format: GPUs, held places, recovery, promises, policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dovetail.diff import PlanDiff, PolicyChange, SectionChange
from dovetail.quantities import counted
from dovetail_cli.render.words import amount, gpus, plural

_MOST = 5


@dataclass(frozen=True, slots=True)
class Further:
    """A line: a mark, what it is about, with a name where it has one, and what differs."""

    mark: str
    about: str
    name: str
    words: str


def further(diff: PlanDiff) -> list[Further]:
    """Return a line for each thing that differs beside workloads; GPUs that differ alike share one."""
    entries = [_entry(each) for each in diff.sections if each.section != "gpus"]
    return [*_gpus(diff), *entries, *(_policy(policy) for policy in diff.policies)]


def _gpus(diff: PlanDiff) -> Iterator[Further]:
    alike: dict[str, list[str]] = {}
    for each in diff.sections:
        if each.section == "gpus":
            alike.setdefault(f"{_mode(each.before)} -> {_mode(each.after)}", []).append(each.name)
    for words, names in alike.items():
        yield Further("~", "GPU" if len(names) == 1 else "GPUs", _listed(names), words)


def _mode(row: dict[str, Any] | None) -> str:
    """Return how a GPU is cut or shared."""
    if row is None:
        return "whole"
    if row["mode"] == "mig":
        return " ".join(row["instances"]) or "mig"
    return f"{row['mode']} {plural(row['clients'], 'client')}"


def _entry(each: SectionChange) -> Further:
    if each.section == "held":
        return Further("~", "held by", each.name, f"{_held(each.before)} -> {_held(each.after)}")
    if each.section == "recovery":
        cases = len({*(each.before or ()), *(each.after or ())})
        return Further("~", "recovery of", each.name, f"otherwise in {plural(cases, 'failure case')}")
    sides = [0 if side is None else side["missing"] for side in (each.before, each.after)]
    return Further("~", "promise to", each.name, f"{amount(sides[0])} -> {amount(sides[1])} thousandths missing")


def _held(rows: list[dict[str, Any]] | None) -> str:
    return _listed([_place(row) for row in rows]) if rows else "nothing"


def _place(row: dict[str, Any]) -> str:
    if "domain" in row:
        return str(row["domain"])
    return " ".join(filter(None, (row["node"], gpus(row.get("gpus", ())), row.get("instance"))))


def _policy(policy: PolicyChange) -> Further:
    """Return how the result of a policy differs: its outcome, how much it is broken, and by whom."""
    before, after = policy.violation
    if policy.before is None:
        broken = f", {counted(after, policy.unit)}: {_listed(_counts(policy))}" if after else ""
        return Further("+", "policy", policy.name, f"new, {policy.after}{broken}")
    if policy.after is None:
        return Further("-", "policy", policy.name, f"applies no longer, was {policy.before}")
    said = [f"{policy.before} -> {policy.after}"] if policy.before != policy.after else []
    if before != after:
        said.append(f"{amount(before)} -> {counted(after, policy.unit)}")
    elif policy.subjects:
        said.append(f"{counted(after, policy.unit)} as before, by others")
    subjects = [f"{name} ({amount(old)} -> {amount(new)})" for name, (old, new) in policy.subjects.items()]
    whom = f": {_listed(subjects)}" if subjects else ""
    return Further("~", "policy", policy.name, ", ".join(said) + whom)


def _counts(policy: PolicyChange) -> list[str]:
    """Return who breaks a policy, and how much."""
    return [f"{name} ({amount(count)})" for name, (_, count) in policy.subjects.items()]


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + rest
