"""From counts per class of domains to a plan: gangs settle domain by domain, node by node.

In a class, the gang with most replicas goes first. What is left of it goes to the tightest domain that holds all of
it; where none does, to the roomiest. Nodes inside a domain are taken the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.field import Field
from dovetail.engine.gathering.alike import Class
from dovetail.engine.gathering.gatherings import Gatherings, Reached, Solved, climb
from dovetail.engine.gathering.sets import gathering_part
from dovetail.model.state import State
from dovetail.placement.instances import share_memory
from dovetail.placement.nested import every_nest
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.spec.cluster import NODE_LEVEL

_TIME = 0.6  # of what is left, where all gathers
_APART_SHARE = 0.6  # of the work, for solutions that can be laid out; the rest is for bounds
_MOST_SINGLE = 1000  # domains times workloads that gather, where each domain may be told by itself


@dataclass(frozen=True, slots=True)
class Settled:
    """States to choose from, what is known of the tiers in any plan, what those bounds ignore, and the work."""

    states: tuple[State, ...]
    tiers: tuple[Reached, ...]
    relaxed: tuple[str, ...]
    work: float


def settle(problem: Problem, budget: Budget, stop: Stop, workers: int = 1) -> Settled:
    """Place all gangs by the model over classes of domains, and fill up what is left.

    A model whose domains are not shared is asked first, as its solutions can be laid out as they are; then one that
    knows no such border, from the same solution on, whose bounds bind every plan. Where it finds better, and domains
    are few, a third one with each domain by itself tells which of them holds what. All of them have as large a part
    of the budget as what gathers is of what is asked for.
    """
    part = gathering_part(problem)
    budget = budget.part(part * budget.work, part * _TIME)
    apart = Gatherings(problem, apart=True)
    first = climb(apart, budget.part(budget.work * _APART_SHARE), stop, workers=workers)
    whole = Gatherings(problem, apart=False)
    second = climb(whole, budget.part(budget.work - first.work), stop, first.values, workers)
    source, best = (whole, second) if first.values is None or _better(first, second) else (apart, first)
    states = [] if best.values is None else [_laid_out(source, best.values, stop)]
    work, known = first.work + second.work, second.tiers
    if source is whole and _told_apart(whole) and second.values is not None:
        single = Gatherings(problem, apart=False, single=True)
        third = climb(single, budget.part(budget.work - work), stop, None, workers, second.tiers)
        states += [] if third.values is None else [_laid_out(single, third.values, stop)]
        work, known = work + third.work, _tighter(second.tiers, third.tiers)
    return Settled(tuple(states), known, whole.relaxed, work)


def _told_apart(model: Gatherings) -> bool:
    """Tell whether there are classes of several domains, and few enough in all to tell each."""
    domains = sum(each.size for each in model.classes)
    return len(model.classes) < domains and domains * len(model.gathering) <= _MOST_SINGLE


def _tighter(coarse: Sequence[Reached], fine: Sequence[Reached]) -> tuple[Reached, ...]:
    """Return what two models say of the tiers: the better bounds as far as they found the same values before."""
    found: list[Reached] = []
    for one, other in zip(coarse, fine, strict=False):
        bounds = [bound for bound in (one.bound, other.bound) if bound is not None]
        best = (min if one.tier.sense == "max" else max)(bounds, default=None)
        found.append(replace(other, bound=best))
        if one.value != other.value:
            return (*found, *fine[len(found) :])
    return (*found, *max(coarse, fine, key=len)[len(found) :])


def _better(first: Solved, second: Solved) -> bool:
    """Tell whether the second solution is better than the first in the earliest tier in which they differ."""
    for one, other in zip(first.tiers, second.tiers, strict=False):
        if one.value != other.value:
            return (other.value > one.value) == (one.tier.sense == "max")
    return len(second.tiers) > len(first.tiers)


def _laid_out(gatherings: Gatherings, values: list[int], stop: Stop) -> State:
    field = Field(gatherings.problem, State())
    for position, each in enumerate(gatherings.classes):
        wanted = {w.id: gatherings.wanted(w, position, values) for w in gatherings.gathering}
        order = sorted(wanted, key=lambda name: (-sum(wanted[name].values()), name))
        used: dict[str, set[int]] = {}  # domains of the class, by workload
        for name in order:
            near = {index for mate in gatherings.mates(name) for index in used.get(mate, ())}
            used[name] = _into_domains(field, each, wanted[name], _sizes(gatherings, name), near)
    return construct(gatherings.problem, field.state(), stop)


def _sizes(gatherings: Gatherings, workload: str) -> Mapping[str, Mapping[int, int]]:
    """Return, per shape of a workload, what its counts are multiples of: in a node, and (``""``) in a domain."""
    problem = gatherings.problem
    topology = problem.spec.by_id[workload].topology
    found: dict[str, dict[int, int]] = {"": {}, NODE_LEVEL: {}}
    for nest in every_nest(topology.nests if topology else ()):
        at = {NODE_LEVEL: found[NODE_LEVEL], gatherings.levels[-1]: found[""]}.get(nest.group.within, {})
        for s in problem.shapes_of_workload.get(workload, ()):
            at[s] = nest.unit(problem.shapes[s].role.name) or 1
    return found


def _into_domains(
    field: Field,
    each: Class,
    wanted: Mapping[int, int],
    sizes: Mapping[str, Mapping[int, int]],
    near: Collection[int],
) -> set[int]:
    """Put a workload's replicas into domains, first into those near it, and return which."""
    used = set(near)
    domains = [[node for nodes in found.values() for node in nodes] for found in each.members]
    for shape, count in sorted(wanted.items(), key=lambda item: (-item[1], item[0])):
        by_domain = sizes.get("", {}).get(shape, 1)
        by_node = sizes.get(NODE_LEVEL, {}).get(shape, 1)
        room = [sum(_whole(_room(field, node, shape), by_node) for node in nodes) for nodes in domains]
        for index, part in _parts(count, [_whole(free, by_domain) for free in room], used):
            _into_nodes(field, domains[index], shape, part, by_node)
            used.add(index)
    return used


def _into_nodes(field: Field, nodes: Sequence[int], shape: int, count: int, size: int) -> None:
    room = [_whole(_room(field, node, shape), size) for node in nodes]
    for index, part in _parts(count, room):
        for _ in range(part):
            _put(field, nodes[index], shape)


def _put(field: Field, node: int, shape: int) -> None:
    """Put a replica where it fits and no hard rule keeps it off."""
    gpus = _gpus(field, node, shape)
    shared = field.problem.shapes[shape].request.share is not None
    if gpus is not None and not field.blocked(node, shape, gpus[0] if shared else None):
        field.put(node, shape, gpus)


def _parts(count: int, room: list[int], near: Collection[int] = ()) -> Iterator[tuple[int, int]]:
    """Yield where parts of a count go: all of the rest where that is tightest, else as much as the most room has.

    What is near comes first as far as it has any room.
    """
    left = list(room)
    while count > 0 and any(left):
        close = [index for index in near if left[index]] or range(len(left))
        enough = [index for index in close if left[index] >= count]
        index = min(enough, key=lambda i: (left[i], i)) if enough else max(close, key=lambda i: (left[i], -i))
        part = min(count, left[index])
        yield index, part
        left[index], count = 0, count - part


def _whole(count: int, size: int) -> int:
    return count // size * size


def _room(field: Field, node: int, shape: int) -> int:
    """Return how many more replicas of a shape a node could take, hard rules aside."""
    form = field.problem.shapes[shape]
    request = field.problem.request(shape, field.problem.nodes[node])
    if not field.hosts(form)[node]:
        return 0
    asked = {"cpu": request.cpu, "memory": request.memory, **request.resources}
    free = {"cpu": int(field.cpu[node]), "memory": int(field.memory[node])}
    free |= {name: int(left[node]) for name, left in field.resources.items()}
    limits = [free[name] // amount for name, amount in asked.items() if amount]
    if request.share:
        memory = max(1, share_memory(request, int(field.card[node])))
        rows = zip(field.gpus[node].tolist(), field.vram[node].tolist(), strict=True)
        limits.append(sum(max(0, min(g // request.gpu_milli, v // memory)) for g, v in rows))
    elif request.gpus:
        alone = field.blocks.any(request.inside)
        own = (
            int(field.whole_room(form, np.array([node]))[0]) if alone else int(field.untouched[node]) // request.gpus
        )
        limits.append(own)
    return max(0, min([form.demand, *limits]))


def _gpus(field: Field, node: int, shape: int) -> tuple[int, ...] | None:
    """Return the GPUs for a replica: the first untouched ones, for a share the fullest that holds it."""
    form = field.problem.shapes[shape]
    free = field.gpus[node].tolist()
    if form.request.share:
        fits = [gpu for gpu in range(len(free)) if field.room_on(node, form, (gpu,))]
        return (min(fits, key=lambda gpu: (free[gpu], gpu)),) if fits else None
    gpus = field.whole_gpus(node, form)
    return gpus if field.room_on(node, form, gpus) else None
