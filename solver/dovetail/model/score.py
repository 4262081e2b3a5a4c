"""How good a state is, tier by tier, measured on names as the verifier does."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.model.expand import expand
from dovetail.model.state import State
from dovetail.objectives import sign_of
from dovetail.placement import View
from dovetail.placement.nested import groups_missing
from dovetail.problem import Problem
from dovetail.spec import Workload


def view_of(problem: Problem, state: State) -> View:
    """Return the placement that a state expands to, worked out once per state."""
    known = state.known.get("view")
    if not isinstance(known, View):
        known = problem.context.view_of_all(expand(problem, state))
        if any(problem.layouts) and _falls_short(problem, known):
            known = _better(problem, known, problem.context.view_of_all(expand(problem, state, cut_first=True)))
        state.known["view"] = known
    return known


def _falls_short(problem: Problem, view: View) -> bool:
    """Tell whether a policy that searches a placement on its own, and binds, is violated."""
    context = problem.context
    binding = (p for p in problem.spec.policies if p.rule.searches and p.enforcement.kind != "audit")
    return any(policy.rule.check(view, context.scopes[policy.name]) for policy in binding)


def _better(problem: Problem, one: View, other: View) -> View:
    """Return the better one of two placements of the same counts, the first where both are as good."""
    if not sound(problem, other):
        return one
    return other if _compared(problem, other, one, hard_policies(problem)) > 0 else one


def hard_policies(problem: Problem) -> frozenset[str]:
    """Return the names of the hard policies."""
    return frozenset(policy.name for policy in problem.spec.policies if policy.enforcement.kind == "hard")


def sound(problem: Problem, view: View) -> bool:
    """Tell whether a placement keeps what runs today as it must be kept (S5.3), and has groups enough (S2.5)."""
    today = problem.context.today
    stays = all(view.places.get(replica, today.places[replica]) == today.places[replica] for replica in today.fixed)
    return stays and today.protected <= view.places.keys() and not any(short_of_groups(problem, view))


def short_of_groups(problem: Problem, view: View) -> Iterator[Workload]:
    """Yield the workloads of which fewer groups are there than must be; counts do not tell which there are."""
    for workload in problem.in_squads:
        if groups_missing(workload, list(view.admitted(workload))):
            yield workload


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


def owed(problem: Problem, state: State, policies: frozenset[str]) -> frozenset[str]:
    """Return those of some hard policies that a state breaks."""
    view = view_of(problem, state)
    return frozenset(name for name in policies if debt(problem, view, frozenset([name])))


def better(problem: Problem, candidate: State, state: State, unpaid: frozenset[str]) -> bool:
    """Tell whether a candidate is better than a state that owes some policies, and breaks none that it keeps."""
    view = view_of(problem, candidate)
    if not sound(problem, view) or debt(problem, view, hard_policies(problem) - unpaid):
        return False
    return compared(problem, candidate, state, unpaid) > 0


def compared(problem: Problem, one: State, other: State, relaxed: frozenset[str]) -> int:
    """Return a number above 0 where one state is the better plan, below where the other is.

    Tiers after the first that tells are not measured.
    """
    return _compared(problem, view_of(problem, one), view_of(problem, other), relaxed)


def _compared(problem: Problem, one: View, other: View, relaxed: frozenset[str]) -> int:
    scores = zip(_scores(problem, one, relaxed), _scores(problem, other, relaxed), strict=True)
    return next((a - b for a, b in scores if a != b), 0)


def score(problem: Problem, state: State, relaxed: frozenset[str] = frozenset()) -> tuple[int, ...]:
    """Return numbers that compare as plans do, greater is better: less debt first, then the tiers in order."""
    return tuple(_scores(problem, view_of(problem, state), relaxed))


def _scores(problem: Problem, view: View, relaxed: frozenset[str]) -> Iterator[int]:
    yield -debt(problem, view, relaxed)
    for tier in problem.search_tiers:
        yield sign_of(tier.sense) * tier.measure(view, problem.context)
