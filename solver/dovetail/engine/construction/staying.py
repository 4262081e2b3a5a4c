"""Who runs on a node today stays in place, where the node is to hold the like of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from dovetail.model.clients import settings_of
from dovetail.model.state import NO_GPU, Fill, Slot
from dovetail.placement.clients import equal_parts, pool_of
from dovetail.problem import Present, Problem

_Shares = Mapping[int, Counter[int]]  # replicas per shape that take part of a GPU, by its index


def plain(problem: Problem, index: int) -> bool:
    """Tell whether a node's GPUs are all alike to whoever comes: none cut, no islands or sockets."""
    node = problem.nodes[index]
    cut = bool(problem.layouts[index]) or any(place.instance for place in problem.present.get(index, ()))
    return not (cut or node.islands or node.sockets)


def settled_on(problem: Problem, index: int, fill: Fill) -> Fill:
    """Return what a `plain` node is to hold, with who runs there today in place as far as that is the like of it.

    Which GPU is which is no matter to those who come, so shares are put together where most of the like share one
    today, and elsewhere where that drives nobody from whole GPUs, if possible. Who shares a GPU that is set otherwise
    then is in place no longer (S3.5).
    """
    today = problem.present.get(index, {})
    wanted, running = _shares((s.gpu, s.shape, n) for s, n in fill.slots.items()), _shares(_parts(problem, today))
    counts = fill.counts()
    whole = [place for place in sorted(today) if place.gpus and not problem.shapes[place.shape].request.partial]
    staying = {gpu for place in whole if counts[place.shape] for gpu in place.gpus}
    gpu_of = _matched(wanted, running)
    idle = [gpu for gpu in problem.nodes[index].healthy_gpus() if gpu not in gpu_of.values()]
    idle.sort(key=lambda gpu: (gpu in staying, gpu))
    for gpu in wanted:
        if gpu not in gpu_of:
            gpu_of[gpu] = idle.pop(0)
    slots = Counter({Slot(s.shape, gpu_of.get(s.gpu, NO_GPU), s.profile): n for s, n in fill.slots.items()})
    taken, kept = set(gpu_of.values()), Counter[Present]()
    for place in sorted(today):
        own = Slot(place.shape, place.gpus[0] if problem.shapes[place.shape].request.partial else NO_GPU)
        blocked = own.gpu == NO_GPU and not taken.isdisjoint(place.gpus)
        there = slots[own] - sum(n for other, n in kept.items() if other.shape == place.shape and _on(other, own))
        if not blocked and (count := min(today[place], there)) > 0:
            kept[place] = count
    found = Fill(+slots, kept)
    return found if not equal_parts(problem.nodes[index]) else Fill(found.slots, _undisturbed(problem, index, found))


def _undisturbed(problem: Problem, index: int, fill: Fill) -> Counter[Present]:
    """Return who stays in place on a node that shares by equal parts, without clients of GPUs that are set anew."""
    node, today = problem.nodes[index], problem.settings[index]
    now = {pool: setting for pool, (setting, _) in settings_of(problem, index, fill).items()}
    anew = {pool for pool, setting in now.items() if setting != today.get(pool)}
    shares = {place for place in fill.kept if problem.shapes[place.shape].request.partial}
    return Counter({p: n for p, n in fill.kept.items() if p not in shares or pool_of(node, p.gpus[0]) not in anew})


def _on(place: Present, slot: Slot) -> bool:
    """Tell whether a place of a slot's shape is counted in that slot."""
    return slot.gpu == NO_GPU or place.gpus == (slot.gpu,)


def _parts(problem: Problem, today: Mapping[Present, int]) -> Iterable[tuple[int, int, int]]:
    """Yield GPU, shape and number of the shares on a node today."""
    shares = ((place, n) for place, n in today.items() if problem.shapes[place.shape].request.partial)
    return ((place.gpus[0], place.shape, n) for place, n in shares)


def _shares(parts: Iterable[tuple[int, int, int]]) -> _Shares:
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for gpu, shape, count in parts:
        if gpu != NO_GPU:
            found[gpu][shape] += count
    return dict(sorted(found.items()))


def _matched(wanted: _Shares, running: _Shares) -> dict[int, int]:
    """Pair what is to share a GPU with the GPU that most of the like share today; what has no like is left out."""
    alike = {(new, old): (wanted[new] & running[old]).total() for new in wanted for old in running}
    found: dict[int, int] = {}
    for new, old in sorted(alike, key=lambda pair: (-alike[pair], pair)):
        if alike[new, old] and new not in found and old not in found.values():
            found[new] = old
    return found
