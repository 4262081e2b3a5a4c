"""What runs where hard policies would not have it put today moves elsewhere, where there is room or room can be made.

Construction never touches what runs. So what a new policy or a failed node has broken stays as it is, replica by
replica, unless somebody goes after it. Who has to leave is told by the same running accounts that keep construction
from such places.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from dovetail.engine.construction.clearing import Clearing
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.gates import closing_of
from dovetail.engine.construction.leavers import Leaver, running_at
from dovetail.model.legal import legalise
from dovetail.model.score import better
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.rules.guards import ApartGuard, ClientsGuard, CrowdGuard, SkewGuard, domain_of

_ROUNDS = 4
_VAIN = 3  # replicas of a shape in a row that found no other place
_ACCOUNTS = ApartGuard, ClientsGuard, CrowdGuard, SkewGuard


def mended(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state that breaks less of what today does (S4.5, S5.1), where that is a better plan.

    Parameters
    ----------
    state : one that breaks no hard policy beyond what is excused.
    over : tells when time has run out.
    """
    broken = broken_today(problem)
    if not broken:
        return state
    many = min(sum(broken.values()), len(problem.context.today.places))  # some rules count amounts

    def ended() -> bool:
        return bool(stop) or over()

    for _ in range(_ROUNDS):  # whoever left has made room for others
        clearing = Clearing.of(problem, state, ended, many)
        _Mending(clearing, ended).run()
        found = legalise(problem, clearing.field.state())
        if not better(problem, found, state, frozenset()):
            break
        state = found
        if ended():
            break
    return state


def misplaced(problem: Problem, state: State) -> frozenset[str]:
    """Return the workloads of which a replica still runs where a hard policy that today breaks would not have it."""
    if not broken_today(problem):
        return frozenset()
    found = Excess(Field(problem, state)).running()
    return frozenset(problem.shapes[leaver.shape].workload.id for leaver in found)


def broken_today(problem: Problem) -> Mapping[str, int]:
    """Return the hard policies that today breaks, and how much."""
    tolerated = problem.context.tolerated
    return {policy: sum(excused.values()) for policy, excused in tolerated.items() if excused}


class Excess:
    """Who is where the hard policies that today breaks would not have them, in a field as it is now."""

    def __init__(self, field: Field) -> None:
        self._problem, self._field = field.problem, field
        broken = broken_today(field.problem)
        guards = [g for g in field.guards if isinstance(g, _ACCOUNTS) and g.scope.policy in broken]
        self.apart = [g for g in guards if isinstance(g, ApartGuard) and g.exact]
        self.skews = [g for g in guards if isinstance(g, SkewGuard)]
        self._guards = guards
        closing = closing_of(field.problem)
        self._closed = [(ids, frozenset(nodes)) for name, (ids, nodes) in closing.items() if name in broken]

    def of(self, leaver: Leaver) -> int:
        """Return how many replicas like one there are too many where it is."""
        node, shape, _ = leaver.put
        form, made, gpu = self._problem.shapes[shape], self._problem.nodes[node], self._gpu(leaver)
        if any(form.workload.id in ids and node in nodes for ids, nodes in self._closed):
            return 1
        return max((guard.excess(form.workload, made, gpu) for guard in self._guards), default=0)

    def running(self) -> list[Leaver]:
        """Return who runs where it is one too many, or with others that it must not be with."""
        everybody = (
            running_at(node, place)
            for node, fill in self._field.fills.items()
            for place, count in fill.kept.items()
            for _ in range(count)
        )
        return [leaver for leaver in everybody if self.any_of(leaver)]

    def any_of(self, leaver: Leaver) -> bool:
        """Tell whether a replica is one too many where it is, or is there with others that it must not be with."""
        spots = ((guard, self.spot(guard, leaver)) for guard in self.apart)
        return self.of(leaver) > 0 or any(spot and len(guard.held[spot[0]]) > 1 for guard, spot in spots)

    def spot(self, guard: ApartGuard, leaver: Leaver) -> tuple[str, Hashable] | None:
        """Return the domain that a replica is in, of those that a guard keeps others apart in, and its key there."""
        node, workload = self._problem.nodes[leaver.put[0]], self._problem.shapes[leaver.shape].workload
        path, key = domain_of(guard.level, guard.scope, node, self._gpu(leaver)), guard.key(workload)
        return None if path is None or key is None else (path, key)

    def _gpu(self, leaver: Leaver) -> int | None:
        """Return the GPU that a replica has a part of."""
        return leaver.put[2][0] if self._problem.shapes[leaver.shape].request.partial else None


class _Mending:
    """Moves what runs off places that it would not be let on, in the field of a clearing."""

    def __init__(self, clearing: Clearing, over: Callable[[], bool]) -> None:
        self._clearing, self._field = clearing, clearing.field
        self._problem = clearing.field.problem
        self._over = over
        self._excess = Excess(self._field)
        self._vain: Counter[int] = Counter()

    def run(self) -> None:
        """Part those first that must not be together, then thin out where there are too many."""
        for group in self._strangers():
            if self._over():
                return
            if self._there(group):
                self._clearing.relocate(group)
        self._thin_out()

    def _everybody(self) -> Iterator[Leaver]:
        for node in sorted(self._field.fills):
            yield from self._clearing.leavers(node)

    def _there(self, group: Sequence[Leaver]) -> bool:
        """Tell whether replicas are where they were: others may have made them leave."""
        nodes = {leaver.put[0] for leaver in group}
        return Counter(group) <= Counter(each for node in nodes for each in self._clearing.leavers(node))

    # Those who must not be together.

    def _strangers(self) -> Iterator[Sequence[Leaver]]:
        """Yield all replicas of one key in a domain that holds several, where all may leave; fewest first."""
        for guard in self._excess.apart:
            mixed = {path for path, held in guard.held.items() if len(held) > 1}
            found = self._by_key(guard, mixed) if mixed else {}
            for path, key in sorted(found, key=lambda each: (len(found[each]), each[0], str(each[1]))):
                if len(guard.held[path]) > 1 and len(found[path, key]) == guard.held[path].get(key):
                    yield found[path, key]

    def _by_key(self, guard: ApartGuard, paths: Container[str]) -> dict[tuple[str, Hashable], list[Leaver]]:
        """Return who may leave some domains, by domain and key."""
        found: dict[tuple[str, Hashable], list[Leaver]] = defaultdict(list)
        for leaver in self._everybody():
            spot = self._excess.spot(guard, leaver)
            if spot is not None and spot[0] in paths:
                found[spot].append(leaver)
        return found

    # Too many of one.

    def _thin_out(self) -> None:
        """Move replicas one by one, from where there are most too many."""
        numbered = enumerate(self._everybody())
        heap = [(-excess, number, each) for number, each in numbered if (excess := self._excess.of(each)) > 0]
        heapify(heap)
        while heap and not self._over():
            recorded, number, leaver = heap[0]
            excess = self._excess.of(leaver) if self._there([leaver]) else 0
            if 0 < excess < -recorded:
                heapreplace(heap, (-excess, number, leaver))
                continue
            heappop(heap)
            if excess > 0 and self._vain[leaver.shape] < _VAIN:
                done = self._clearing.relocate([leaver]) or self._less_ahead(leaver)
                self._vain[leaver.shape] = 0 if done else self._vain[leaver.shape] + 1

    def _less_ahead(self, leaver: Leaver) -> bool:
        """Move a replica to a domain that is too far ahead as well, if less so; tell whether it moved."""
        workload, node = self._problem.shapes[leaver.shape].workload, self._problem.nodes[leaver.put[0]]
        skews = self._excess.skews
        for guard in skews:
            guard.eased[workload.id] = max(0, guard.excess(workload, node, None) - 1)
        moved = any(guard.eased[workload.id] for guard in skews) and self._clearing.relocate([leaver])
        for guard in skews:
            del guard.eased[workload.id]
        return moved
