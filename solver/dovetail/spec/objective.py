"""Objectives: ordered tiers and priority bands (S5.1)."""

from __future__ import annotations

from dataclasses import dataclass

DISRUPTION_MEASURES = ("evicted", "gpuTimeLost", "moves")
DEFAULT_TIERS = ("mend", "admitted", "policies", "disruption", "cost", "topology")


@dataclass(frozen=True, slots=True)
class Objective:
    """What a plan is judged by, most important first.

    Parameters
    ----------
    bands : lowest priority of each band, highest first; empty makes each distinct priority a band.
    tiers : names out of `DEFAULT_TIERS`, in order; `admitted` stands for one tier per band.
    disruption : the order of the disruption measures (S5.3).
    """

    name: str = "default"
    bands: tuple[int, ...] = ()
    tiers: tuple[str, ...] = DEFAULT_TIERS
    disruption: tuple[str, ...] = DISRUPTION_MEASURES
