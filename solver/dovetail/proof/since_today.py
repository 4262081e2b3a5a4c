"""What tiers say of today, told by counts of shapes: what is mended, who is evicted, what of preemptible work stays.

Where anything is, is no matter here. What is protected is admitted in every plan, and of what is one shape without
today all count together; so the values are no worse than those of any plan with the same counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from dovetail.linear import Linear
from dovetail.model.counting import Counting
from dovetail.objectives import Tier
from dovetail.objectives.admitted import Retained
from dovetail.objectives.disruption import Evicted
from dovetail.objectives.violations import Mend
from dovetail.problem import Problem
from dovetail.proof.without_today import protected
from dovetail.spec import ReplicaId, Spec

_COUNTED: Final = Mend, Evicted, Retained


def told_by_counts(tier: Tier, spec: Spec) -> bool:
    """Tell whether counts without today tell a tier."""
    return counts_since_today(tier) or not tier.needs_current(spec)


def counts_since_today(tier: Tier) -> bool:
    """Tell whether a tier counts from today and counts tell it all the same."""
    return isinstance(tier, _COUNTED)


class SinceToday:
    """The tiers that count from today, as far as counts of admitted replicas tell them.

    Parameters
    ----------
    original : the Problem with what runs today.
    counts : a model of that Problem without what runs today.
    """

    def __init__(self, original: Problem, counts: Counting) -> None:
        self._original, self._counts = original, counts
        self._today = original.context.today

    def encode(self, tier: Tier) -> Linear | None:
        """Return a tier, None where counts do not tell it."""
        if isinstance(tier, Mend):
            return tier.encode(self._counts)
        if isinstance(tier, Evicted):
            return self._evicted()
        return self._retained(tier.band) if isinstance(tier, Retained) else None

    def _evicted(self) -> Linear:
        """Return how many workloads lose a replica at the least: those of which not all are admitted that ran."""
        model, flags = self._counts.model, dict[str, int]()
        ran, rows = Counter[int](), dict[int, Linear]()
        for (workload, shape), (present, kept) in self._ran.items():
            ran[shape] += present
            row = rows.setdefault(shape, Linear().add(self._counts.admitted_shape(shape)))
            if present > kept:
                flags[workload] = flag = flags[workload] if workload in flags else model.integer(0, 1)
                row.add_term(flag, present - kept)
        for shape, row in rows.items():
            if model.range_of(row)[0] < ran[shape]:
                model.require(row, lower=ran[shape])
        return Linear(dict.fromkeys(flags.values(), 1))

    @cached_property
    def _ran(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Per workload and shape, how many of its replicas run or ran until their place went, and are protected."""
        found: dict[tuple[str, int], tuple[int, int]] = {}
        for replica in sorted(self._today.present()):
            key = replica.workload, self._shape(replica)
            present, kept = found.get(key, (0, 0))
            found[key] = present + 1, kept + (replica in self._today.protected)
        return found

    def _retained(self, band: int) -> Linear:
        """Return what running preemptible replicas of a band are worth at the most that stay admitted."""
        spec, model = self._original.spec, self._counts.model
        running, worth = Counter[int](), dict[int, int]()
        for replica in sorted(self._today.preemptible):
            workload = spec.by_id[replica.workload]
            if spec.band_of(workload) == band:
                running[self._shape(replica)] += 1
                worth[self._shape(replica)] = max(1, workload.by_role[replica.role].value)
        owed, total = protected(self._original, self._counts.problem), Linear()
        for shape, most in running.items():
            stay = model.integer(0, most)
            model.require(self._counts.admitted_shape(shape).minus(Linear.of(stay)), lower=owed[shape])
            total.add_term(stay, worth[shape])
        return total

    def _shape(self, replica: ReplicaId) -> int:
        return self._counts.problem.shapes_of_role[replica.workload, replica.role]
