"""Nodes filled as they are wished to be, as far as hard rules let them, the rest by construction."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

from dovetail.engine.construction.clearing import make_room
from dovetail.engine.construction.construct import fill_band
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.holding import hold
from dovetail.engine.construction.moving import Mover, ranks
from dovetail.engine.construction.placing import Outlooks, Put
from dovetail.engine.construction.ways import BRIEF
from dovetail.engine.contents.patterns import Pattern
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop


class Wished(NamedTuple):
    """Replicas of a shape that are wished for on a node: on GPUs of all together, on instances of a profile."""

    node: int
    shape: int
    gpus: tuple[int, ...]
    many: int
    profile: str = ""


_TRIES = 300  # nodes that are cleared to see whether what they hold finds another place
_ROUNDS = 5  # in which what is owed waits for rules to open its places
_WAYS = 4  # how often lower bands make way for a band


def filled(
    problem: Problem, state: State, wished: Iterable[tuple[int, Pattern]], planned: Counter[int], stop: Stop
) -> State:
    """Return a state with patterns on some nodes, filled up with what else fits.

    Parameters
    ----------
    state : what is on all other nodes.
    wished : nodes, each with what it is to hold.
    planned : replicas per shape that there may be in all.
    """
    field = Field(problem, state)
    follow(field, [wish for node, pattern in wished for wish in wishes_on(problem, node, pattern)], planned, stop)
    return field.state()


def seat_owed(field: Field, wishes: list[Wished], owed: Mapping[int, int], stop: Stop) -> list[Wished]:
    """Place replicas that are owed, and nothing else, where they are wished for, then wherever there is room.

    Parameters
    ----------
    owed : how many of each shape there must be.

    Returns
    -------
    list[Wished]
        What is left of the wishes.
    """
    left = grant_owed(field, wishes, owed)
    outlooks = Outlooks(field)
    _place(outlooks, short_of(field, owed))
    make_room(outlooks, short_of(field, owed), stop, inf)
    return left


def follow(field: Field, wishes: list[Wished], planned: Counter[int], stop: Stop, owed: Collection[int] = ()) -> None:
    """Put what is wished for where it is, then fill up band by band, what is `planned` before anything else.

    Where something planned found no place, others of its band go elsewhere if they can, nodes of lower bands are
    cleared for it, and who leaves for it need not have stood on a wished place.

    Parameters
    ----------
    owed : shapes that nothing is taken off of.
    """
    problem = field.problem
    granted = _grant(field, wishes, planned, stop)
    outlooks = Outlooks(field)
    rank_of = ranks(problem)
    mover = Mover(outlooks, rank_of, lambda tries: bool(stop) or tries > _TRIES)
    for mine, band in enumerate(problem.spec.bands):
        _place(outlooks, _lacking(field, mine, rank_of, planned))
        mover.make_way(_lacking(field, mine, rank_of, planned), mine, lossless=True)
        for node in mover.cleared:
            granted[node] = mover.contents(node) or []
        for _ in range(_WAYS):
            if stop or not _make_way(outlooks, mine, rank_of, planned, granted, owed):
                break
            _place(outlooks, _lacking(field, mine, rank_of, planned))
        if not problem.present:  # others decide on what runs
            lacking = _lacking(field, mine, rank_of, planned)
            fixed = {s: n for s, n in lacking.items() if s not in field.rates.asked}  # rates are served in other ways
            for node in make_room(outlooks, fixed, stop, work=BRIEF):
                granted[node] = mover.contents(node) or []
        fill_band(outlooks, band, stop)
    hold(outlooks, hard=False)


def _place(outlooks: Outlooks, lacking: Mapping[int, int]) -> None:
    """Place what is planned and found no place yet, wherever there is room."""
    for shape, short in lacking.items():
        outlooks.place(shape, short)


def short_of(field: Field, owed: Mapping[int, int]) -> dict[int, int]:
    """Return how many replicas are owed and have no place, the largest first."""
    shapes = field.problem.shapes
    short = {s: n - field.admitted[s] for s, n in owed.items() if n > field.admitted[s]}
    return {s: short[s] for s in sorted(short, key=lambda s: (-shapes[s].request.gpu_milli, s))}


def wishes_on(problem: Problem, node: int, pattern: Pattern) -> Iterator[Wished]:
    """Yield a node's contents after a pattern; what takes whole GPUs gets those that no share is on.

    The GPUs of a wish are those of all its replicas together.
    """
    healthy = problem.nodes[node].healthy_gpus()
    shared = {slot.gpu for slot, _ in pattern if slot.gpu >= 0}
    free = [gpu for position, gpu in enumerate(healthy) if position not in shared]
    for slot, count in pattern:
        if slot.gpu >= 0:
            yield Wished(node, slot.shape, (healthy[slot.gpu],), count, slot.profile)
        else:
            wanted = count * problem.shapes[slot.shape].request.gpus
            taken, free = free[:wanted], free[wanted:]
            yield Wished(node, slot.shape, tuple(taken), count)


def grant_owed(field: Field, wishes: list[Wished], owed: Mapping[int, int]) -> list[Wished]:
    """Put no more of what is wished for than is owed, where hard rules let it; return the rest of the wishes."""
    for _ in range(_ROUNDS):
        left, more = [], False
        for wish in wishes:
            most = min(wish.many, owed.get(wish.shape, 0) - field.admitted[wish.shape])
            done = _put(field, wish, most) if most > 0 else []
            more = more or bool(done)
            if len(done) < wish.many:
                left.append(_rest(field, wish, done))
        wishes = left
        if not more:
            break
    return wishes


def _rest(field: Field, wish: Wished, done: list[Put]) -> Wished:
    """Return what is left of a wish once some of it was put."""
    used = {gpu for _, _, taken in done for gpu in taken} if not field.partial[wish.shape] else ()
    return wish._replace(gpus=tuple(gpu for gpu in wish.gpus if gpu not in used), many=wish.many - len(done))


def _grant(field: Field, wishes: list[Wished], planned: Counter[int], stop: Stop) -> dict[int, list[Put]]:
    """Put what is wished for where it is; what a hard rule keeps off for now waits until others are placed.

    What is wished for beyond what is planned is left out: it would take the quota of what is missing elsewhere.

    Returns what was put on each node.
    """
    granted: dict[int, list[Put]] = defaultdict(list)
    queues = _Queues(field)
    for wish in wishes:
        queues.add(_grant_one(field, wish, planned, granted))
    more = True
    while more and not stop:
        more = False
        for wish in queues.opened():
            queues.add(_grant_one(field, wish, planned, granted))
            more = True
    return granted


def _grant_one(field: Field, wish: Wished, planned: Counter[int], granted: dict[int, list[Put]]) -> Wished | None:
    """Put what is wished for on a node; return what rules keep off that may open places again."""
    count = min(wish.many, planned[wish.shape] - field.admitted[wish.shape])
    done = _put(field, wish, count)
    granted[wish.node] += done
    if len(done) >= count or not _turned_away(field, wish):
        return None
    return _rest(field, wish._replace(many=count), done)


class _Queues:
    """Wishes that wait for rules to open their places, by shape and by what the rules tell apart of places."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._waiting: dict[int, dict[Hashable, deque[Wished]]] = defaultdict(lambda: defaultdict(deque))
        self._tried: dict[int, int] = {}  # what `opened` told of a shape when what waits of it was tried last

    def add(self, wish: Wished | None) -> None:
        """Let a wish wait, if any is left."""
        if wish is not None:
            domains = self._field.gates.domains(wish.shape, wish.node, _seen(self._field, wish.shape, wish.gpus))
            self._waiting[wish.shape][domains].append(wish)
            self._tried.setdefault(wish.shape, -1)

    def opened(self) -> Iterator[Wished]:
        """Take out wishes for places that have opened to their shape since it was tried last, as long as they do."""
        for shape, queues in self._waiting.items():
            opened = self._field.gates.opened(shape)
            if opened != self._tried[shape]:
                self._tried[shape] = opened
                for queue in queues.values():
                    while queue and not _turned_away(self._field, queue[0]):
                        yield queue.popleft()


def _turned_away(field: Field, wish: Wished) -> bool:
    """Tell whether rules keep a wish off its place for now."""
    return field.turned_away(wish.node, wish.shape, _seen(field, wish.shape, wish.gpus))


def _seen(field: Field, shape: int, gpus: tuple[int, ...]) -> int | None:
    """Return the GPU that rules look at: that of work for a part of one."""
    return gpus[0] if field.partial[shape] else None


def _put(field: Field, wish: Wished, count: int) -> list[Put]:
    """Put as many replicas of a wish as are asked for, fit and keep hard rules; return them."""
    node, shape, gpus, profile = wish.node, wish.shape, wish.gpus, wish.profile
    form, done = field.problem.shapes[shape], list[Put]()
    partial, single = field.partial[shape], bool(field.gates.strict(shape))
    while (left := count - len(done)) > 0:
        if form.request.gpus and field.blocks.matter(node):  # patterns know of no islands
            gpus = field.whole_gpus(node, form)
        if field.blocked(node, shape, _seen(field, shape, gpus)):
            break
        found = field.places_on(node, form, gpus, 1 if single else left)
        if not found:
            break
        taken = gpus if partial else tuple(gpu for place in found for gpu in place)
        field.put(node, shape, taken, len(found), profile)
        done += [(node, shape, place) for place in found]
    return done


def _make_way(
    outlooks: Outlooks,
    mine: int,
    rank: Mapping[int, int],
    planned: Counter[int],
    granted: dict[int, list[Put]],
    owed: Collection[int],
) -> bool:
    """Clear nodes of lower bands for what the target has of a band and found no place; tell whether any was.

    Parameters
    ----------
    mine, rank : the band's place among all, 0 the highest, and that of each shape's.
    owed : the shapes that nothing is taken off of.
    """
    field = outlooks.field
    problem = field.problem
    lacking = _lacking(field, mine, rank, planned)
    if not lacking:
        return False
    lower = {n: [put for put in puts if rank[put[1]] > mine and put[1] not in owed] for n, puts in granted.items()}
    order = sorted((node for node in lower if lower[node]), key=lambda node: _ease(granted[node], rank, mine, node))
    cleared = False
    for s, short in lacking.items():
        may = field.hosts(problem.shapes[s]) & ~field.gates.crowded(s)
        tries = _TRIES
        for node in order:
            if short <= 0 or not tries:
                break
            if may[node] and lower[node] and not field.turned_away(node, s, None):
                tries -= 1
                off = outlooks.undo(list(lacking), lower[node])
                if room := _room_for(field, node, s, short):
                    short -= room
                    granted[node] = [put for put in granted[node] if put not in lower[node]]
                    lower[node], cleared = [], True
                else:
                    outlooks.put_back(lower[node], off)
    return cleared


def _room_for(field: Field, node: int, shape: int, most: int) -> int:
    """Return how many more replicas of a shape a node has room for now, up to some number."""
    form = field.problem.shapes[shape]
    if form.request.partial:
        healthy = field.problem.nodes[node].healthy_gpus()
        return min(most, sum(len(field.places_on(node, form, (gpu,), most)) for gpu in healthy))
    return len(field.places_on(node, form, field.whole_gpus(node, form, most), most))


def _lacking(field: Field, mine: int, rank: Mapping[int, int], planned: Counter[int]) -> dict[int, int]:
    """Return how many replicas of each shape of a band are planned and found no place, those worth most first.

    What stands or falls together is not among them.
    """
    alone = (s for s in field.problem.shapes if not (s.workload.joint or s.workload.atomic or s.workload.holds))
    own = [s for s in alone if rank[s.index] == mine and s.request.gpu_count]
    return {
        s.index: short
        for s in sorted(own, key=lambda shape: -shape.role.value)
        if (short := min(field.wanted(s.index), planned[s.index] - field.admitted[s.index])) > 0
    }


def _ease(puts: list[Put], rank: Mapping[int, int], mine: int, node: int) -> tuple[bool, int, int]:
    """Return the order in which nodes are cleared: those of lower bands alone first, the lowest before others."""
    ranks = [rank[shape] for _, shape, _ in puts]
    return min(ranks) <= mine, -max(ranks), node
