"""How good a state is, tier by tier, measured on names as the verifier does."""

from __future__ import annotations

from dovetail.model.expand import expand
from dovetail.model.state import State
from dovetail.placement import View
from dovetail.problem import Problem


def view_of(problem: Problem, state: State) -> View:
    """Return the placement that a state expands to, worked out once per state."""
    known = state.known.get("view")
    if not isinstance(known, View):
        known = state.known["view"] = problem.context.view_of_all(expand(problem, state))
    return known


def hard_policies(problem: Problem) -> frozenset[str]:
    """Return the names of the hard policies."""
    return frozenset(policy.name for policy in problem.spec.policies if policy.enforcement.kind == "hard")


def sound(problem: Problem, view: View) -> bool:
    """Tell whether a placement keeps what runs today as it must be kept (S5.3)."""
    today = problem.context.today
    stays = all(view.places.get(replica, today.places[replica]) == today.places[replica] for replica in today.fixed)
    return stays and today.protected <= view.places.keys()


def debt(problem: Problem, view: View, relaxed: frozenset[str]) -> int:
    """Return the violations of relaxed hard policies beyond what today excuses."""
    context = problem.context
    total = 0
    for policy in problem.spec.policies:
        if policy.name in relaxed:
            found = policy.rule.check(view, context.scopes[policy.name])
            excused = context.tolerated[policy.name]
            total += sum(max(0, amount - excused.get(subject, 0)) for subject, amount in found.items())
    return total


def score(problem: Problem, state: State, relaxed: frozenset[str] = frozenset()) -> tuple[int, ...]:
    """Return numbers that compare as plans do, greater is better: less debt first, then the tiers in order."""
    view = view_of(problem, state)
    tiers = (
        tier.measure(view, problem.context) * (1 if tier.sense == "max" else -1) for tier in problem.search_tiers
    )
    return (-debt(problem, view, relaxed), *tiers)
