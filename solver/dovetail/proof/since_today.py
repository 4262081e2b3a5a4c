"""What tiers say of today, told by counts of shapes: what is mended or lost, who is evicted, who of others stays.

Where anything is, is no matter here. What is protected is admitted in every plan, and of what is one shape without
today all count together; so the values are no worse than those of any plan with the same counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from dovetail.linear import Linear
from dovetail.model.counting import Counting
from dovetail.objectives import Tier
from dovetail.objectives.admitted import Retained
from dovetail.objectives.disruption import Evicted, GpuTimeLost, at_stake, lost_seconds, lost_with_all
from dovetail.objectives.violations import Mend
from dovetail.placement import Today
from dovetail.problem import Problem
from dovetail.spec import ReplicaId, Spec

_COUNTED: Final = Mend, Evicted, Retained, GpuTimeLost


def told_by_counts(tier: Tier, spec: Spec) -> bool:
    """Tell whether counts without today tell a tier."""
    return counts_since_today(tier) or not tier.needs_current(spec)


def counts_since_today(tier: Tier) -> bool:
    """Tell whether a tier counts from today and counts tell it all the same."""
    return isinstance(tier, _COUNTED)


def since_today_of(tier: Tier, original: Problem, counts: Counting, protected: Counter[int]) -> Linear | None:
    """Return a tier that counts from today, as far as counts of admitted replicas tell it; None where they do not.

    Parameters
    ----------
    original : the Problem with what runs today.
    counts : a model of that Problem without what runs today.
    protected : by shape of that, how many replicas are admitted in every plan.
    """
    if isinstance(tier, Mend):
        return tier.encode(counts)
    if isinstance(tier, Evicted):
        return _evicted(original.context.today, counts)
    if isinstance(tier, GpuTimeLost):
        preemptible = original.context.today.preemptible  # without any, what is lost is lost already, or by moves
        return _lost(tier, original, counts) if preemptible else Linear(constant=tier.limit(original.context))
    return _retained(tier.band, original, counts, protected) if isinstance(tier, Retained) else None


def _evicted(today: Today, counts: Counting) -> Linear:
    """Return how many workloads lose a replica at the least: those of which not all are admitted that ran."""
    model, flags = counts.model, dict[str, int]()

    def leaving(workload: str, shape: int, free: int) -> Iterator[tuple[int, int]]:
        flag = flags[workload] = flags[workload] if workload in flags else model.integer(0, 1)
        yield flag, free

    _tell_who_leaves(today, counts, leaving)
    return Linear(dict.fromkeys(flags.values(), 1))


def _lost(tier: GpuTimeLost, original: Problem, counts: Counting) -> Linear:
    """Return the milli-GPU seconds lost at the least, by those who are not admitted any more; moves are not counted.

    Who ran until its place went has lost that work already. Of an atomic workload the work of all is lost with any.
    """
    context, spec, model = original.context, original.spec, counts.model
    stakes = {workload.id: running for workload, running in at_stake(context, spec.workloads)}
    gone = Counter((replica.workload, _shape(counts, replica)) for replica in context.today.lost)
    total, flags = Linear(constant=tier.limit(context)), dict[str, int]()

    def leaving(name: str, shape: int, free: int) -> Iterator[tuple[int, int]]:
        workload = spec.by_id[name]
        lost = free if workload.atomic and name not in stakes else min(gone[name, shape], free)
        left = free - lost
        if lost:
            yield model.integer(0, lost), 1
        if left and workload.atomic:
            flag = flags[name] = flags[name] if name in flags else model.integer(0, 1)
            total.terms[flag] = lost_with_all(spec, workload, stakes[name])
            yield flag, left
        elif left:
            some = model.integer(0, left)
            milli = counts.problem.shapes[shape].request.gpu_milli
            total.add_term(some, milli * lost_seconds(spec, workload, moved=False))
            yield some, 1

    _tell_who_leaves(context.today, counts, leaving)
    return total


def _tell_who_leaves(
    today: Today, counts: Counting, leaving: Callable[[str, int, int], Iterable[tuple[int, int]]]
) -> None:
    """Require of every shape that those admitted, and those who leave, are as many as ran.

    Parameters
    ----------
    leaving : yields, by workload and shape, variables by which some of so many leave, each with how many that are.
    """
    ran, rows = Counter[int](), dict[int, Linear]()
    for (workload, shape), (present, kept) in _ran(today, counts).items():
        ran[shape] += present
        row = rows.setdefault(shape, Linear().add(counts.admitted_shape(shape)))
        for variable, many in leaving(workload, shape, present - kept) if present > kept else ():
            row.add_term(variable, many)
    for shape, row in rows.items():
        if counts.model.range_of(row)[0] < ran[shape]:
            counts.model.require(row, lower=ran[shape])


def _ran(today: Today, counts: Counting) -> Mapping[tuple[str, int], tuple[int, int]]:
    """Per workload and shape, how many of its replicas run or ran until their place went, and are protected."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for replica in sorted(today.present()):
        key = replica.workload, _shape(counts, replica)
        present, kept = found.get(key, (0, 0))
        found[key] = present + 1, kept + (replica in today.protected)
    return found


def _retained(band: int, original: Problem, counts: Counting, protected: Counter[int]) -> Linear:
    """Return what running preemptible replicas of a band are worth at the most that stay admitted."""
    spec, model = original.spec, counts.model
    running, worth = Counter[int](), dict[int, int]()
    for replica in sorted(original.context.today.preemptible):
        workload = spec.by_id[replica.workload]
        if spec.band_of(workload) == band:
            running[_shape(counts, replica)] += 1
            worth[_shape(counts, replica)] = max(1, workload.by_role[replica.role].value)
    total = Linear()
    for shape, most in running.items():
        stay = model.integer(0, most)
        model.require(counts.admitted_shape(shape).minus(Linear.of(stay)), lower=protected[shape])
        total.add_term(stay, worth[shape])
    return total


def _shape(counts: Counting, replica: ReplicaId) -> int:
    return counts.problem.shapes_of_role[replica.workload, replica.role]
