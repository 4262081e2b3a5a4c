"""What runs today goes back to its place where that is free: who was evicted, and who was to move.

A search that ends early may have let others in where something ran, and these may have gone again. Nobody else is
touched for it, no GPU is cut or set in another way, and whoever asks takes the state only if it is a better plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.leavers import Leaver, Leavers, come_back, leave, pinned_gpus, running_at
from dovetail.mig import parse_instance
from dovetail.model.seats import has_blocks, without_kept
from dovetail.model.starts import new_instances
from dovetail.model.state import Fill, Slot, State, away, slot_of
from dovetail.problem import Present, Problem
from dovetail.progress import Stop
from dovetail.spec.workload import MILLI

Spot = tuple[int, Present]


def stayed(problem: Problem, state: State) -> State:
    """Return a state in which who came to the very place that an equal one left is that one, who never left.

    Where it matters who is in which group of a gang, none is taken for another.
    """
    fills: dict[int, Fill] = {}
    for node, place, count in away(problem, state):
        if problem.shapes[place.shape].workload.grouped:
            continue
        fill = fills.get(node) or state.fill(node)
        if same := min(count, _there(problem, node, fill, place)):
            fills[node] = fill = fill.copy()
            fill.kept[place] += same
    return state.with_fills(fills) if fills else state


def _there(problem: Problem, node: int, fill: Fill, place: Present) -> int:
    """Return how many that come to a node anew have, or may have, a place of today."""
    slot = slot_of(problem, node, place)
    rest = without_kept(problem, node, fill).get(slot, 0)
    if rest and place.instance:
        return _on_instance(problem, node, fill, place, slot)
    if rest and not problem.shapes[place.shape].request.partial:
        return 0 if has_blocks(fill) or pinned_gpus(fill) & set(place.gpus) else rest
    return rest


def _on_instance(problem: Problem, node: int, fill: Fill, place: Present, slot: Slot) -> int:
    own = {each: count for each, count in fill.slots.items() if each.gpu == slot.gpu}
    found = new_instances(problem, node, own, fill.kept, slot.gpu)
    as_today = all(each in problem.layouts[node].get(slot.gpu, ()) for starts in found.values() for each in starts)
    if problem.spec.cluster.unit != "instance" and not as_today:  # who stays has all of the GPU stay as it is
        return 0
    return sum(str(each) == place.instance for each in found[slot.profile])


def free_spots(problem: Problem, state: State) -> Mapping[str, list[Spot]]:
    """Return the places of today that a state does not keep, by workload, one entry for each replica."""
    found: dict[str, list[Spot]] = defaultdict(list)
    for node, place, count in away(problem, state):
        found[problem.shapes[place.shape].workload.id] += [(node, place)] * count
    return dict(found)


def returned(
    problem: Problem,
    state: State,
    spots: Mapping[str, Sequence[Spot]],
    stop: Stop,
    aside: Collection[str] = (),
) -> State | None:
    """Return a state with replicas of some workloads back in places of today, None where none has room.

    Of what stands or falls together all go back, or none.

    Parameters
    ----------
    spots : by workload, today's places that the state does not keep.
    aside : see `guards_of`.
    """
    field, came_to = Field(problem, state, aside), _came_to(problem, state)
    leavers = Leavers(field, frozenset())
    any_back = False
    for workload, own in spots.items():
        if stop:
            break
        movers = {s: _anew(leavers, came_to.get(s, ()), s) for s in {place.shape for _, place in own}}
        back = [put for node, place in own if (put := _put(field, node, place, movers[place.shape]))]
        if len(back) < len(own) and problem.spec.by_id[workload].joint:
            for leaver in reversed(back):
                leave(field, leaver)
            back = []
        any_back |= bool(back)
    return field.state() if any_back else None


def _came_to(problem: Problem, state: State) -> Mapping[int, list[int]]:
    """Return the nodes that replicas of each shape came to anew."""
    found = defaultdict[int, list[int]](list)
    for node, fill in sorted(state.fills.items()):
        if fill.slots.total() != fill.kept.total():
            for shape in {slot.shape for slot, n in without_kept(problem, node, fill).items() if n}:
                found[shape].append(node)
    return found


def _anew(leavers: Leavers, nodes: Iterable[int], shape: int) -> list[Leaver]:
    """Return replicas of a shape that came to nodes anew and may leave."""
    return [each for node in nodes for each in leavers.anew(node) if each.shape == shape]


def _put(field: Field, node: int, place: Present, movers: list[Leaver]) -> Leaver | None:
    """Put a replica where one ran: one that waits, else one that came to another node anew; None without room."""
    if found := back_home(field, node, place):
        return found
    other = next((each for each in movers if each.put[0] != node), None)
    if other is None:
        return None
    leave(field, other)
    found = back_home(field, node, place)
    if found is None:
        come_back(field, other)
    else:
        movers.remove(other)
    return found


def back_home(field: Field, node: int, place: Present) -> Leaver | None:
    """Put a replica that waits where one ran, None without room for it."""
    gpus = _room(field, node, place) if field.may_return(place.shape) else None
    if gpus is None:
        return None
    found = running_at(node, place, gpus)
    come_back(field, found)
    return found


def _room(field: Field, node: int, place: Present) -> tuple[int, ...] | None:
    """Return the GPUs that a replica may be counted on where it ran, None where there is no room for it.

    Nodes with GPUs that are set to modes are left alone: what is free there depends on how they are.
    """
    form = field.problem.shapes[place.shape]
    gpu = place.gpus[0] if form.request.partial and place.gpus else None
    if field.crowds.parted[node] or not field.host_fits(form, node) or field.blocked(node, place.shape, gpu):
        return None
    if place.gpus and not field.cuts.stays_as_cut(node):
        return None
    if gpu is None:
        return _whole(field, node, place)
    fits = _instance_fits(field, node, place) if place.instance else field.share_fits(node, form, gpu)
    return place.gpus if fits else None


def _instance_fits(field: Field, node: int, place: Present) -> bool:
    """Tell whether an instance of today is there for who ran on it, as what else is on its GPU is on instances."""
    (gpu,), cuts = place.gpus, field.cuts
    cut = field.gpus[node, gpu] == MILLI or cuts.held(node, gpu) or cuts.closed[node, gpu]
    return bool(cut) and cuts.may_stay(node, gpu, parse_instance(place.instance))


def _whole(field: Field, node: int, place: Present) -> tuple[int, ...] | None:
    """Return the same for one of whole GPUs, or of none; those counted on may be others that are idle as well."""
    row = field.gpus[node].tolist()
    if all(row[each] == MILLI for each in place.gpus):
        return place.gpus
    pinned = pinned_gpus(field.fills.get(node, Fill()))
    idle = [each for each in field.problem.nodes[node].healthy_gpus() if row[each] == MILLI]
    if field.blocks.matter(node) or pinned & set(place.gpus) or len(idle) < len(place.gpus):
        return None
    return tuple(idle[: len(place.gpus)])
