"""The difference of two plans."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from dovetail.diff.changes import Question, changes_of
from dovetail.diff.cost import cost_of_start, cost_without_documents
from dovetail.diff.further import policy_changes, section_changes
from dovetail.diff.model import Change, Cost, PlanDiff, TierChange
from dovetail.diff.passage import Passage, passage_from
from dovetail.diff.sides import NOTHING, sides
from dovetail.diff.start import starts_from
from dovetail.plan.finish import WITHOUT_PLACES
from dovetail.plan.model import Figure, Plan, TierResult
from dovetail.plan.options import as_planned
from dovetail.plan.plain import SUMMARY
from dovetail.plan.summary import with_zeros
from dovetail.spec import Spec

_STRICTNESS = ("hard", "soft", "audit")


def comparable(base: Plan, target: Plan) -> bool:
    """Tell whether both sides have a plan, hence whether there is a difference."""
    return not {base.outcome.status, target.outcome.status} & set(WITHOUT_PLACES)


def diff(base: Plan, target: Plan, spec: Spec | None = None, *, stated: bool = False) -> PlanDiff:
    """Return what changes from one plan to another.

    Where the target starts from another state than the base, nothing of the difference happens to what runs: two
    plans differ, and the cost is that of the target from where it starts. Both are to be `comparable`.

    Parameters
    ----------
    spec
        What the target's documents mean. With it the difference knows accelerators, checkpoints, and places that
        are gone; without it the plans' own rows must do.
    stated
        Whether the target's documents tell what runs, though it be that nothing does.
    """
    if spec is not None:
        spec = as_planned(spec, target)
    happens = starts_from(base, target, spec, stated=stated)
    passage = passage_from(base, target, spec) if spec is not None and happens else None
    before, after = sides(base), sides(target)
    names = sorted(before.keys() | after.keys())
    asked = (Question(n, before.get(n, NOTHING), after.get(n, NOTHING), spec, passage, happens) for n in names)
    changes = tuple(chain.from_iterable(map(changes_of, asked)))
    touched = {change.workload for change in changes}
    return PlanDiff(
        base=base,
        target=target,
        delta=_delta(base, target),
        tiers=tuple(tier_changes(base, target)),
        changes=changes,
        policies=tuple(policy_changes(base, target)),
        failures=failures_of(target),
        cost=_cost(base, target, changes, passage) if happens else cost_of_start(target, spec),
        unchanged=sum(workload not in touched for workload in after),
        starts_from_base=happens,
        sections=tuple(section_changes(base, target)),
    )


def _cost(base: Plan, target: Plan, changes: tuple[Change, ...], passage: Passage | None) -> Cost:
    return cost_without_documents(changes, base, target) if passage is None else passage.cost()


def _delta(base: Plan, target: Plan) -> dict[str, Figure]:
    before, after = with_zeros(base.summary), with_zeros(target.summary)
    told = [key for key in SUMMARY if key in before and key in after]
    return {key: after[key] - before[key] for key in told if after[key] != before[key]}


def tier_changes(base: Plan, target: Plan) -> Iterator[TierChange]:
    """Yield all tiers of either side, in the target's order; of a side without a plan there are none."""
    before = {tier.name: tier for tier in base.tiers}
    after = {tier.name: tier for tier in target.tiers}
    for tier in (*target.tiers, *(tier for tier in base.tiers if tier.name not in after)):
        yield TierChange(tier.name, tier.unit, tier.sense, _value(before, tier.name), _value(after, tier.name))


def _value(tiers: dict[str, TierResult], name: str) -> int | None:
    return tiers[name].value if name in tiers else None


def failures_of(plan: Plan) -> tuple[str, ...]:
    """Return the names of the policies that fail on a plan, hard ones first, then by name."""
    failed = [name for name, result in plan.policies.items() if result.result == "fail"]
    return tuple(sorted(failed, key=lambda name: (_STRICTNESS.index(plan.policies[name].enforcement), name)))
