"""The best plan of a search as plain data, small enough to be sent whenever it gets better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dovetail.model.score import view_of
from dovetail.model.state import Fill, Slot, State
from dovetail.objectives import Tier, limit_given
from dovetail.plan import finish
from dovetail.plan.model import Outcome, Plan, TierResult
from dovetail.problem import Present, compile_problem
from dovetail.rules import Context, context_of
from dovetail.spec import Spec

Keep = Callable[[State, Sequence[TierResult]], None]
"""Takes a state that is a plan, and what is known of its tiers: nothing while that is being worked out."""

Contents = tuple[tuple[tuple[Slot, int], ...], tuple[tuple[Present, int], ...]]
"""What a node holds: every slot with its count; what stays in place, and how many of it."""

_EMPTY: Contents = ((), ())


def forget(state: State, tiers: Sequence[TierResult]) -> None:
    """Keep nothing."""


class Changes:
    """Tells state after state which nodes hold something else than in the one before."""

    def __init__(self) -> None:
        self._told: Mapping[int, Fill] = {}

    def since(self, state: State) -> dict[int, Contents]:
        """Return what changed since the last call, at first everything."""
        told = self._told
        # A node that did not change has the very same object.
        found = {node: _contents(fill) for node, fill in state.fills.items() if told.get(node) is not fill}
        found.update((node, _EMPTY) for node in told.keys() - state.fills.keys())
        self._told = state.fills
        return found


def _contents(fill: Fill) -> Contents:
    slots = tuple((slot, count) for slot, count in fill.slots.items() if count)
    kept = tuple((place, count) for place, count in fill.kept.items() if count)
    return slots, kept


def _fill(contents: Contents) -> Fill:
    slots, kept = contents
    return Fill(
        Counter(dict(slots)),
        Counter(dict(kept)),
    )


def plan_of(spec: Spec, table: Mapping[int, Contents], known: Sequence[TierResult], outcome: Outcome) -> Plan:
    """Return the plan that a search would have ended with, had it stopped at a state that it told.

    Parameters
    ----------
    table : what every node holds.
    known : the latest word on the tiers; bounds count as far as the state has the values that they assume.
    """
    context = context_of(spec)
    problem = compile_problem(context)
    view = view_of(problem, State({node: _fill(contents) for node, contents in sorted(table.items())}))
    values = [tier.measure(view, context) for tier in problem.tiers]
    tiers = _results(context, problem.tiers, values, {result.name: result for result in known})
    if all(tier.proved for tier in tiers):
        outcome = replace(outcome, status="optimal", stopped_by=None)
    return finish(context, view.places, tiers, outcome, held=view.held)


def _results(
    context: Context, tiers: Sequence[Tier], values: Sequence[int], known: Mapping[str, TierResult]
) -> tuple[TierResult, ...]:
    found: list[TierResult] = []
    given: dict[str, int] = {}
    for tier, value in zip(tiers, values, strict=True):
        limit = limit_given(tier, context, given)
        bare = TierResult(tier.name, value, limit, tier.unit, tier.sense, "trivial", dict(given))
        heard = known.get(tier.name)
        usable = heard is not None and heard.bound is not None and dict(heard.given) == given and limit != value
        found.append(_bounded(bare, heard) if usable and heard is not None else bare)
        given[tier.name] = value
    return tuple(found)


def _bounded(result: TierResult, heard: TierResult) -> TierResult:
    """Take over a bound; what a certificate would have shown rests on the solver's word without it."""
    proof = "solver" if heard.proof == "certificate" else heard.proof
    return replace(result, bound=heard.bound, proof=proof, relaxed=heard.relaxed)
