"""Sets of workloads that policies keep together, in the model over classes of domains: a set spans a domain once.

A set is where any of its workloads is. Per class of domains it spans at least as many as each of them, and as many as
their GPUs need in all; so a bound on it binds plans, and with one domain per class it is what a plan has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dovetail.linear import Linear
from dovetail.objectives.violations import Policies
from dovetail.problem import Problem
from dovetail.proof.kinds import least_load
from dovetail.spec import Policy, Workload
from dovetail.spec.cluster import NODE_LEVEL

if TYPE_CHECKING:
    from dovetail.engine.gathering.gatherings import Gatherings


@dataclass(frozen=True, slots=True)
class Joint:
    """The variables of a set.

    Parameters
    ----------
    here : whether any of its workloads is admitted.
    spans : domains per class.
    nodes : nodes per class and kind.
    around : whether it is in an outer domain, by level and path.
    """

    here: int
    spans: Mapping[int, int]
    nodes: Mapping[tuple[int, int], int]
    around: Mapping[tuple[str, str], int]

    def spanned(self, model: Gatherings, level: str) -> Linear:
        """Return how many domains of a level the set spans."""
        if level == NODE_LEVEL:
            return Linear(dict.fromkeys(self.nodes.values(), 1))
        if level == model.levels[-1]:
            return Linear({v: 1 for position, v in self.spans.items() if model.classes[position].counted})
        return Linear({v: 1 for (at, _), v in self.around.items() if at == level})


def gathers(workload: Workload) -> bool:
    """Tell whether a workload counts its domains, or has to keep to some."""
    return workload.gathers or bool(workload.topology and workload.topology.binds)


def gathering_part(problem: Problem) -> float:
    """Return how much of all the GPU that is asked for gathers, from 0 to 1."""
    inside = {name for ids in sets_of(problem) for name in ids}
    asked = [(w, sum(r.replicas * r.request.gpu_milli for r in w.roles)) for w in problem.spec.workloads]
    own = sum(amount for workload, amount in asked if workload.id in inside or gathers(workload))
    return own / max(1, sum(amount for _, amount in asked))


def sets_of(problem: Problem) -> dict[tuple[str, ...], tuple[Workload, ...]]:
    """Return the sets whose workloads share no shape, by the ids of these: of others the model cannot tell."""
    return {
        tuple(workload.id for workload in who): who
        for who in problem.context.sets
        if all(_alone(problem, workload) for workload in who)
    }


def _alone(problem: Problem, workload: Workload) -> bool:
    shapes = problem.shapes_of_workload.get(workload.id, ())
    return all(member.workload.id == workload.id for s in shapes for member in problem.shapes[s].members)


def join(model: Gatherings, who: Sequence[Workload]) -> Joint:
    """Add a set to the model."""
    here = _union(model, [model.here[workload.id] for workload in who], 1)
    spans: dict[int, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    around: dict[tuple[str, str], int] = {}
    for position, each in enumerate(model.classes):
        inside = [v for w in who if (v := model.spans.get((w.id, position))) is not None]
        if inside:
            spans[position] = _union(model, inside, each.size)
            _fill(model, who, position, tuple(each.nodes.items()), spans[position])
        for number, count in each.nodes.items():
            used = [v for w in who if (v := model.nodes.get((w.id, position, number))) is not None]
            if used:
                nodes[position, number] = _union(model, used, each.size * count)
                _fill(model, who, position, ((number, 1),), nodes[position, number])
    places = dict.fromkeys((at, path) for w, at, path in model.around if any(w == each.id for each in who))
    for level, path in places:
        flags = [v for w in who if (v := model.around.get((w.id, level, path))) is not None]
        around[level, path] = _union(model, flags, 1)
    return Joint(here, spans, nodes, around)


def keep_together(model: Gatherings) -> None:
    """Demand what hard policies do of sets."""
    for policy in model.problem.spec.policies:
        for level, who in _together(model, policy) if policy.enforcement.kind == "hard" else ():
            if tuple(workload.id for workload in who) in model.sets and level in (*model.levels, NODE_LEVEL):
                model.model.require(model.sets[tuple(w.id for w in who)].spanned(model, level), upper=1)


def weighed(model: Gatherings, tier: Policies) -> Linear | None:
    """Return the weighted violations of a tier's policies, None where any says more than what is to be together."""
    total = Linear()
    for policy in model.problem.spec.policies:
        if tier.weighs(policy):
            groups = _together(model, policy) if policy.rule.keeps_sets else []
            found = [spanned_less_one(model, who, level) for level, who in groups]
            for each in found:
                if each is None:
                    return None
                total.add(each, policy.enforcement.weight)
            if not found:
                return None
    return total


def spanned_less_one(model: Gatherings, who: Sequence[Workload], level: str) -> Linear | None:
    """Return how many domains of a level workloads span together, less one; None where the model does not know."""
    known = model.sets.get(tuple(workload.id for workload in who))
    if level not in (*model.levels, NODE_LEVEL):
        return None
    if known is not None:
        return known.spanned(model, level).add_term(known.here, -1)
    if len(who) > 1 or who[0].id not in model.here:
        return None
    return model.spanned(who[0], level).add_term(model.here[who[0].id], -1)


def _together(model: Gatherings, policy: Policy) -> list[tuple[str, tuple[Workload, ...]]]:
    claims = policy.rule.claims(model.problem.context.scopes[policy.name])
    return [(each.level, group) for each in claims.together for group in each.groups]


def _union(model: Gatherings, parts: Sequence[int], most: int) -> int:
    """Return a variable that is at least each of some, and at most their sum."""
    found = model.model.integer(0, most)
    for part in parts:
        model.model.require(Linear({found: 1, part: -1}), lower=0)
    model.model.require(Linear({found: 1, **dict.fromkeys(parts, -1)}), upper=0)
    return found


def _fill(
    model: Gatherings, who: Sequence[Workload], position: int, kinds: Sequence[tuple[int, int]], used: int
) -> None:
    """Say that a set has no more GPUs in a class than so many domains, or nodes, of it hold.

    Parameters
    ----------
    kinds : how many nodes of each kind one of them has.
    """
    room, need = 0, Linear()
    for number, count in kinds:
        room += 1000 * count * len(model.kinds[number].node.healthy_gpus())
        for s in (s for workload in who for s in model.problem.shapes_of_workload.get(workload.id, ())):
            variable = model.counts.get((s, position, number))
            if variable is not None:
                need.add_term(variable, least_load(model.problem, s, model.kinds[number].node))
    model.model.require(need.minus(Linear.of(used, room)), upper=0)
