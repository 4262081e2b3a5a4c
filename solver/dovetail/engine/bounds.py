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
from dovetail.progress import Stop


@dataclass(frozen=True, slots=True)
class Bound:
    """A value that no plan passes, what it rests on, and the rules that it ignores."""

    value: int
    proof: Proof
    relaxed: tuple[str, ...] = ()


class Bounds:
    """The bounds of one Problem, each worked out once for the earlier values that it assumes."""

    def __init__(self, problem: Problem, stop: Stop) -> None:
        self.problem = problem
        self._stop = stop
        self._relaxations: dict[tuple[str, tuple[tuple[str, int], ...]], Bound] = {}

    def results(self, values: Sequence[int], answers: Sequence[TierAnswer]) -> tuple[TierResult, ...]:
        """Pair every tier's value with the best bound at hand.

        Parameters
        ----------
        values : a plan's value per tier.
        answers : what an exact search of the whole says of the first tiers; a bound holds only given the earlier
            tiers' values, so answers count as far as the plan has the values that the search held.
        """
        found = []
        given: dict[str, int] = {}
        usable = True
        for position, (tier, value) in enumerate(zip(self.problem.tiers, values, strict=True)):
            answer = answers[position] if usable and position < len(answers) else None
            best = self._best(tier, value, given, answer)
            found.append(_result(tier, value, best, given))
            given[tier.name] = value
            usable = usable and answer is not None and answer.value == value
        return tuple(found)

    def _best(self, tier: Tier, value: int, given: Mapping[str, int], answer: TierAnswer | None) -> Bound:
        """Return the tightest bound known, arithmetic on the documents preferred where it is as good."""
        candidates = [Bound(tier.limit(self.problem.context), "trivial")]
        if candidates[0].value != value and answer is not None and answer.bound is not None:
            candidates.append(Bound(answer.bound, "solver"))
        proved = any(bound.value == value for bound in candidates)
        if not proved and isinstance(tier, Admitted):
            candidates.append(self._relaxation(tier, given))
        sign = 1 if tier.sense == "max" else -1
        return min(candidates, key=lambda bound: sign * bound.value)

    def _relaxation(self, tier: Admitted, given: Mapping[str, int]) -> Bound:
        earlier = [t for t in self.problem.tiers if isinstance(t, Admitted) and t.name in given]
        key = (tier.name, tuple((t.name, given[t.name]) for t in earlier))
        if key not in self._relaxations:
            weights = dict(counted_shapes(self.problem, tier.band, gpu=tier.gpu))
            floors = [Floor(dict(counted_shapes(self.problem, t.band, gpu=t.gpu)), given[t.name]) for t in earlier]
            value = admitted_bound(self.problem, weights, floors, self._stop)
            self._relaxations[key] = Bound(value, "solver", relaxed_rules(self.problem))
        return self._relaxations[key]


def _result(tier: Tier, value: int, bound: Bound, given: Mapping[str, int]) -> TierResult:
    return TierResult(tier.name, value, bound.value, tier.unit, tier.sense, bound.proof, dict(given), bound.relaxed)


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
