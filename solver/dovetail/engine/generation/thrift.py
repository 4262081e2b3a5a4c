"""The plan at hand made cheaper: as much of everything on fewer or cheaper nodes.

Where all that asks finds room, what is left to decide is which nodes are in use. The LP over kinds of nodes tells how
many of each kind and what runs on them; followed from nothing, a few replicas of scarce nodes lose their place to
others. The scarcest of the nodes that these have in the plan at hand are then left as they are, and the rest is
filled anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Final

from dovetail.engine.construction.moving import tidied
from dovetail.engine.construction.tier_order import left_to_decide
from dovetail.engine.contents.patterns import MANY_NODES
from dovetail.engine.fleet.fleet_lp import FleetLp
from dovetail.engine.generation.crews import with_held
from dovetail.engine.generation.guided import guided
from dovetail.model.state import State
from dovetail.objectives import Tier
from dovetail.plan.model import TierResult
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.proof.fleet_models import in_sense
from dovetail.proof.without_today import twins_of

NARROW: Final = 0.005
"""A gap of what is admitted that leaves cost to decide."""

_TURNS = 6
_SCARCE = 0.5  # of the most that one more node would be worth


def roomy(problem: Problem, now: Iterable[TierResult], part: float) -> bool:
    """Tell whether so large a part of what asks, or of what can be, is admitted that its cost is left to decide.

    Nothing may run today, nor have lost its place.
    """
    fits = len(problem.nodes) <= MANY_NODES and problem.fresh
    if not fits or left_to_decide(problem) is None:
        return False
    asked = {tier.name: tier.limit(problem.context) for tier in problem.tiers if tier.sense == "max"}
    told = [tier for tier in now if tier.name in asked]
    return all(tier.within(NARROW) or tier.value >= part * asked[tier.name] for tier in told)


def admitting(lp: FleetLp, tier: Tier, given: Mapping[str, int], state: State, seconds: float | None) -> None:
    """Solve an LP for a tier with just those replicas of each shape that a state admits.

    Of others that are worth as much it would have parts, and whoever lacks one of them is no plan to go on from.

    Parameters
    ----------
    given : what earlier tiers are to reach, in their own sense.
    seconds : a ceiling.
    """
    fleet = lp.fleet
    there, admitted = Counter[int](), state.admitted()
    for shape, twin in twins_of(fleet.original, fleet.problem).items():
        there[twin] += admitted[shape]
    terms = ((next(iter(fleet.admitted_shape(s.index).terms)), there[s.index]) for s in fleet.problem.shapes)
    lp.confine({variable: (count, count) for variable, count in terms})
    known = in_sense(fleet, {name: value for name, value in given.items() if name in fleet.tiers})
    lp.optimise(tier.name, known, seconds=seconds)
    lp.confine({})


def cheaper(lp: FleetLp, state: State, stop: Stop, over: Callable[[], bool]) -> Iterator[State]:
    """Yield states that follow an LP's solution of least cost, the later ones more like the one at hand.

    Until one has all that this admits, or lacks no less of it than the one before.

    Parameters
    ----------
    lp : as it was solved last, for the least cost given all else that the state has.
    state : the one at hand; gangs stay where it has them.
    over : tells when time has run out.
    """
    problem = lp.fleet.original
    joint = {shape.index for shape in problem.shapes if shape.workload.joint}
    kept = {n for n, fill in state.fills.items() if any(slot.shape in joint for slot in fill.slots)}
    worth, before = _worth(lp), inf
    for _ in range(_TURNS):
        base = with_held(lp, State({node: state.fills[node] for node in sorted(kept)}))
        found = tidied(problem, guided(lp, stop, base), stop, over)
        yield found
        lacking = state.admitted() - found.admitted()
        if not lacking or lacking.total() >= before or stop or over():
            return
        before = lacking.total()
        kept |= {node for shape in lacking for node in _scarcest(state, shape, kept, worth)}


def _scarcest(state: State, shape: int, kept: set[int], worth: Mapping[int, float]) -> list[int]:
    """Return nodes of a shape that are not kept so far: those on kinds of which more nodes were worth the most."""
    nodes = [node for node in state.totals().where.get(shape, {}) if node not in kept]
    most = max((worth[node] for node in nodes), default=0.0)
    return [node for node in nodes if worth[node] >= _SCARCE * most]


def _worth(lp: FleetLp) -> Mapping[int, float]:
    """Return per node what one more of its kind would be worth, per GPU."""
    kinds = zip(lp.fleet.kinds, lp.scarcity(), strict=True)
    return {n: value / max(1, len(kind.node.healthy_gpus())) for kind, value in kinds for n in kind.members}
