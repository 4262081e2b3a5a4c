"""A fleet of which a part of the work has ended, to be planned for fewer nodes."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.synthetic.replan import WORKLOADS

_ONE_IN = 3  # workloads that have ended
_SEPARATOR = "---\n"
_COST = "cost"
_DISRUPTION = "disruption"


def ended(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Return the files of a fleet without one workload in three, and with cost before disruption."""
    kept = [one for number, one in enumerate(texts[WORKLOADS].split(_SEPARATOR)) if number % _ONE_IN]
    return {**texts, WORKLOADS: _SEPARATOR.join(kept), "objective.yaml": _cost_first(texts["objective.yaml"])}


def _cost_first(objective: str) -> str:
    """Return an objective with the tier of cost right before those of disruption."""
    head, _, rest = objective.partition("  tiers: [")
    tiers, _, tail = rest.partition("]")
    names = [name for name in tiers.split(", ") if name != _COST]
    names.insert(names.index(_DISRUPTION), _COST)
    return f"{head}  tiers: [{', '.join(names)}]{tail}"
