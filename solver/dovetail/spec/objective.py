"""Objectives: ordered tiers and priority bands (S5.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dovetail.spec.workload import Request

DISRUPTION_MEASURES = ("evicted", "gpuTimeLost", "moves")
DEFAULT_TIERS = ("mend", "admitted", "slo", "policies", "disruption", "cost", "topology")


OPTIONAL_TIERS = ("fragmentation",)
LAST_TIER = "occupied"
"""What comes after all tiers of an objective that does not name it."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A request that is expected in the future, how often relative to the others, and what it may run on.

    `accelerators` are ids, none where any will do.
    """

    request: Request
    accelerators: tuple[str, ...]
    weight: int

    def on(self, accelerator: str) -> Expected:
        """Return what is expected of nodes with an accelerator (`Request.on`)."""
        own = self.request.on(accelerator)
        return self if own is self.request else replace(self, request=own)


@dataclass(frozen=True, slots=True)
class Objective:
    """What a plan is judged by, most important first.

    Parameters
    ----------
    bands : lowest priority of each band, highest first; empty makes each distinct priority a band.
    tiers : names out of those above, in order; `admitted` stands for one tier per band.
    disruption : the order of the disruption measures (S5.3).
    future_mix : what fragmentation is judged by (S5.5); empty for the project's own GPU work.
    """

    name: str = "default"
    bands: tuple[int, ...] = ()
    tiers: tuple[str, ...] = DEFAULT_TIERS
    disruption: tuple[str, ...] = DISRUPTION_MEASURES
    future_mix: tuple[Expected, ...] = ()
