"""What became of a plan's policies: which fail and by whom, what today excuses, what is waived, what conflicts."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.faults import Position
from dovetail.plan import Lifted, Plan, PolicyOutcome, PolicyResult
from dovetail.quantities import counted
from dovetail_cli.render.review import Review
from dovetail_cli.render.words import amount

_MOST_SUBJECTS = 5


@dataclass(frozen=True, slots=True)
class Failure:
    """A policy that fails on the plan, or would if today did not excuse what it breaks."""

    name: str
    result: PolicyResult
    position: Position | None

    def words(self) -> str:
        """Return how much it is broken, and by whom."""
        found = sorted(self.result.subjects.items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{name} ({amount(count)})" for name, count in found[:_MOST_SUBJECTS])
        rest = f" and {len(found) - _MOST_SUBJECTS:,} more" if len(found) > _MOST_SUBJECTS else ""
        return f"{counted(self.result.violation, self.result.unit)}{self._as_today()}" + (
            f": {listed}{rest}" if listed else ""
        )

    def _as_today(self) -> str:
        if self.result.excused in (0, self.result.violation):
            return ", as today" if self.result.excused else ""
        return f", {amount(self.result.excused)} of it as today"


def failures(review: Review) -> list[Failure]:
    """Return the policies that fail, hard ones first."""
    from dovetail.diff.compare import failures_of

    return [_failure(review, name) for name in failures_of(review.plan)]


def excused(review: Review) -> list[Failure]:
    """Return the hard policies that are broken no more than today already (S4.5), so that they do not fail."""
    found = review.plan.policies.items()
    return [_failure(review, name) for name, result in sorted(found) if result.excused and result.result != "fail"]


def _failure(review: Review, name: str) -> Failure:
    position = review.places.policy(name) if review.places else None
    return Failure(name, review.plan.policies[name], position)


@dataclass(frozen=True, slots=True)
class Opponent:
    """A hard policy of a conflict, and where it is written, or what it comes from."""

    name: str
    rule: str
    position: Position | None
    origin: str = ""


def opponents(review: Review) -> list[Opponent]:
    """Return the hard policies that cannot hold together where there is no plan, as far as that is known (S6.6)."""
    policies = {policy.name: policy for policy in review.spec.policies} if review.spec else {}
    where_is = review.places.policy if review.places else lambda name: None
    return [
        Opponent(name, policies[name].rule.kind, where_is(name), policies[name].origin)
        if name in policies
        else Opponent(name, "", where_is(name))
        for name in review.plan.conflict
    ]


def conflict(plan: Plan) -> str:
    """Return in words what the conflict of an infeasible outcome is."""
    if not plan.conflict:
        return "there is no plan; which hard policies are in conflict is not known"
    if len(plan.conflict) == 1:
        return "this hard policy cannot hold; without it there is a plan"
    return f"these {len(plan.conflict)} hard policies cannot hold together; without any one of them there is a plan"


POLICY_HEAD = ("policy", "enforcement", "result", "what", "where")
_RESULTS: tuple[PolicyOutcome, ...] = ("fail", "waived", "pass")


def policies(review: Review) -> list[tuple[str, ...]]:
    """Return what became of each policy, what fails first: name, enforcement, result, by whom or for whom, where."""
    found = sorted(review.plan.policies.items(), key=lambda item: (_RESULTS.index(item[1].result), item[0]))
    return [_policy_row(_failure(review, name)) for name, _ in found]


def _policy_row(found: Failure) -> tuple[str, ...]:
    result = found.result
    said = [found.words()] if result.violation else []
    said += [_lifted(name, lifted) for name, lifted in result.waivers.items()]
    where = f"{found.position.file}:{found.position.line}" if found.position else ""
    return found.name, result.enforcement, result.result, "; ".join(said), where


def _lifted(waiver: str, lifted: Lifted) -> str:
    names = ", ".join(lifted.workloads[:_MOST_SUBJECTS])
    rest = f" and {len(lifted.workloads) - _MOST_SUBJECTS:,} more" if len(lifted.workloads) > _MOST_SUBJECTS else ""
    return f"waived for {names}{rest} until {lifted.until} by {waiver} ({lifted.owner})"
