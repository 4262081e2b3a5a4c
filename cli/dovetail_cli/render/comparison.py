"""What is told of a scenario beside its base, whatever the format: the words and numbers, not their layout."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from dovetail.diff import TierChange, tier_changes
from dovetail.plan import Figure
from dovetail.plan.summary import with_zeros
from dovetail.whatif import Check, WhatIfResult
from dovetail_cli.render.review import Places, Review
from dovetail_cli.render.words import amount, human_change, human_unit, human_value, short_digest, signed

_ALWAYS = {
    "workloads": "workloads",
    "admittedFull": "admitted in full",
    "admittedPartial": "admitted in part",
    "admittedNone": "not admitted",
    "gpusTotal": "GPUs",
    "gpusAllocated": "GPUs allocated",
    "gpusStranded": "GPUs stranded",
    "nodesUsed": "nodes used",
    "evictedWorkloads": "evicted workloads",
    "evictedReplicas": "evicted replicas",
    "moves": "moves",
    "restarts": "restarts",
    "gpuHoursLost": "GPU hours lost",
}
_WHERE_ANY = {
    "gpusRepartitioned": "GPUs cut anew",
    "gpusHeld": "GPUs held free",
    "gpusFragmented": "GPUs fragmented",
    "gpusUsed": "GPUs used",
    "gpusUsedKnown": "GPUs whose use is known",
    "cpuOnlyReplicas": "CPU-only replicas",
    "costPerHour": "cost per hour",
}
HEAD = ("measure", "base", "scenario", "delta")
TIER_HEAD = ("tier", "base", "scenario", "bound", "delta", "unit")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A result and all that is known beside it; `base` is how the user named the base, empty where it was planned."""

    result: WhatIfResult
    base: str = ""
    places: Places | None = None
    detail: bool = False

    @property
    def review(self) -> Review:
        """The scenario's plan as a reviewer sees it."""
        found = self.result
        return Review(found.result, found.diff, self.base, found.spec, self.places, self.detail)


def versions(comparison: Comparison) -> str:
    """Return which inputs the two plans were made for: `base 3f9c1e -> 9a41d0`."""
    before, after = comparison.result.base, comparison.result.result
    named = f"{comparison.base}@" if comparison.base else ""
    return f"base {named}{short_digest(before.inputs)} -> {short_digest(after.inputs)}"


def measures(result: WhatIfResult) -> list[tuple[str, ...]]:
    """Return the figures of both sides and their difference, `-` for a side without a plan; none without any plan."""
    base, scenario = with_zeros(result.base.summary), with_zeros(result.result.summary)
    if not base and not scenario:
        return []
    labels = _ALWAYS | {key: label for key, label in _WHERE_ANY.items() if base.get(key) or scenario.get(key)}
    return [
        (label, _figure(base.get(key)), _figure(scenario.get(key)), _delta(base.get(key), scenario.get(key)))
        for key, label in labels.items()
    ]


def _figure(figure: Figure | None) -> str:
    return "-" if figure is None else amount(figure)


def _delta(before: Figure | None, after: Figure | None) -> str:
    return "-" if before is None or after is None else signed(Decimal(after) - Decimal(before))


def tiers(result: WhatIfResult) -> list[tuple[str, ...]]:
    """Return the tiers of both sides, the scenario's bound and the difference; `-` where a side has no such tier."""
    bounds = {tier.name: tier.bound for tier in result.result.tiers}
    return [_tier(tier, bounds.get(tier.name)) for tier in tier_changes(result.base, result.result)]


def _tier(tier: TierChange, bound: int | None) -> tuple[str, ...]:
    values = [human_value(value, tier.unit) for value in (tier.before, tier.after, bound)]
    delta = "-"
    if tier.before is not None and tier.after is not None:
        delta = human_change(tier.before, tier.after, tier.unit)
    return (tier.name, *values, delta, human_unit(tier.unit))


def patches(result: WhatIfResult) -> list[str]:
    """Return the changes that make the scenario, in words."""
    return [str(step.patch) for step in result.scenario.steps]


def found(check: Check) -> str:
    """Return what was found where something was expected."""
    if check.actual is None:
        return "nothing known"
    return check.actual if isinstance(check.actual, str) else amount(check.actual)


def expectations(result: WhatIfResult) -> list[tuple[str, ...]]:
    """Return mark, what is expected, how it fares with what was found, and where it is written if it is missed."""
    return [
        ("+", str(check.expectation), f"holds ({found(check)})")
        if check.ok
        else ("!", str(check.expectation), f"MISSED ({found(check)})", str(check.expectation.spot))
        for check in result.checks
    ]


def verdict(result: WhatIfResult) -> str:
    """Return how many expectations hold."""
    held = len(result.checks) - len(result.missed)
    return f"{held} of {len(result.checks)} expectations hold" if result.checks else "nothing is expected"
