"""Bounds on every tier of a finished search, each with what it rests on (S5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.engine.bound import Floor, admitted_bound, counted_shapes
from dovetail.engine.exact import TierAnswer
from dovetail.objectives import Tier
from dovetail.objectives.admitted import Admitted
from dovetail.plan.model import Proof, TierResult
from dovetail.problem import Problem
from dovetail.progress import Reporter, Stop


@dataclass(frozen=True, slots=True)
class Bound:
    """A value that no plan passes, what it rests on, and the rules that it ignores."""

    value: int
    proof: Proof
    relaxed: tuple[str, ...] = ()


def tier_results(
    problem: Problem,
    values: Sequence[int],
    answers: Sequence[TierAnswer],
    stop: Stop,
    reporter: Reporter,
) -> tuple[TierResult, ...]:
    """Pair every tier's value with the best bound at hand.

    Parameters
    ----------
    values : the plan's value per tier.
    answers : what an exact search of the whole says of the first tiers; a bound holds only given the earlier tiers'
        values, so answers count as far as the plan has the values that the search held.
    """
    found = []
    given: dict[str, int] = {}
    usable = True
    for position, (tier, value) in enumerate(zip(problem.tiers, values, strict=True)):
        answer = answers[position] if usable and position < len(answers) else None
        bound = _best(problem, tier, value, given, answer, stop)
        held = dict(given)
        found.append(
            TierResult(tier.name, value, bound.value, tier.unit, tier.sense, bound.proof, held, bound.relaxed)
        )
        reporter.tier(tier.name, tier.unit, value, bound.value)
        given[tier.name] = value
        usable = usable and answer is not None and answer.value == value
    return tuple(found)


def _best(
    problem: Problem, tier: Tier, value: int, given: Mapping[str, int], answer: TierAnswer | None, stop: Stop
) -> Bound:
    """Return the tightest bound known, arithmetic on the documents preferred where it is as good."""
    candidates = [Bound(tier.limit(problem.context), "trivial")]
    if candidates[0].value != value and answer is not None and answer.bound is not None:
        candidates.append(Bound(answer.bound, "solver"))
    proved = any(bound.value == value for bound in candidates)
    if not proved and isinstance(tier, Admitted):
        candidates.append(_relaxation(problem, tier, given, stop))
    sign = 1 if tier.sense == "max" else -1
    return min(candidates, key=lambda bound: sign * bound.value)


def _relaxation(problem: Problem, tier: Admitted, given: Mapping[str, int], stop: Stop) -> Bound:
    weights = dict(counted_shapes(problem, tier.band, gpu=tier.gpu))
    floors = [
        Floor(dict(counted_shapes(problem, earlier.band, gpu=earlier.gpu)), given[earlier.name])
        for earlier in problem.tiers
        if isinstance(earlier, Admitted) and earlier.name in given
    ]
    value = admitted_bound(problem, weights, floors, stop)
    return Bound(min(value, tier.limit(problem.context)), "solver", relaxed_rules(problem))


def relaxed_rules(problem: Problem) -> tuple[str, ...]:
    """Return what the pattern bound ignores: node borders, policies that bind, and demands beyond single replicas."""
    spec = problem.spec
    names = [policy.name for policy in spec.policies if policy.enforcement.kind == "hard"]
    built_in = {
        "node borders": True,
        "minReplicas": any(workload.min_replicas > 1 for workload in spec.workloads),
        "mix": any(workload.atomic and workload.mix != "any" for workload in spec.workloads),
        "current state": bool(problem.context.today.places),
        "share memory": any(s.request.share and s.request.share.memory is not None for s in problem.shapes),
    }
    return (*sorted(name for name, applies in built_in.items() if applies), *sorted(names))
