"""Hard rules as masks over all nodes: where a shape may not go, told for every node at once.

A mask is made from what a guard tells of whole domains. A guard of another make than those here is asked place by
place, by whoever has chosen one.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.problem import Problem, Shape
from dovetail.rules import Guard
from dovetail.rules.guards import (
    ApartGuard,
    ClientsGuard,
    CrowdGuard,
    SkewGuard,
    TogetherGuard,
    domain_of,
)
from dovetail.rules.reserve import PlacesGuard
from dovetail.rules.totals import TotalGuard
from dovetail.spec import Workload

FREE, MIXED = -1, -2
_BY_LEVEL = (CrowdGuard, SkewGuard, TogetherGuard)


class _Keys:
    """Numbers for the keys that a guard keeps apart."""

    def __init__(self, guard: ApartGuard) -> None:
        self._guard = guard
        self._numbers: dict[Hashable, int] = {}
        self._seen = 0

    def number(self, workload: Workload) -> int | None:
        """Return the number of a workload's key, None where it has none."""
        key = self._guard.key(workload)
        return None if key is None else self._numbers.setdefault(key, len(self._numbers))

    def news(self) -> Iterable[tuple[str, int]]:
        """Yield the domains that changed since the last call, each with the key that is there, `FREE` or `MIXED`."""
        log = self._guard.changed
        if len(log) == self._seen:
            return
        paths = log[self._seen :]
        self._seen = len(log)
        for path in dict.fromkeys(paths):
            held = self._guard.held[path]
            if len(held) == 1:
                yield path, self._numbers.setdefault(next(iter(held)), len(self._numbers))
            else:
                yield path, MIXED if held else FREE


class ApartGate:
    """Which key the domain of each node holds, for a guard that keeps keys apart."""

    def __init__(self, problem: Problem, guard: ApartGuard) -> None:
        self._keys = _Keys(guard)
        self._members = _members(problem, guard)
        self._holder = np.full(len(problem.nodes), FREE, dtype=np.int32)

    def number(self, shape: Shape) -> int | None:
        """Return what tells shapes apart here, None for one that the rule does not concern."""
        return self._keys.number(shape.workload)

    def close(self, mask: Bools, shape: Shape) -> None:
        """Mark the nodes whose domain holds another key."""
        for path, key in self._keys.news():
            self._holder[self._members[path]] = key
        number = self.number(shape)
        if number is not None:
            mask |= (self._holder != FREE) & (self._holder != number)


class GpuGate:
    """Which key each GPU holds, for a guard that keeps keys apart at GPUs."""

    def __init__(self, problem: Problem, guard: ApartGuard) -> None:
        self._keys = _Keys(guard)
        self._index = problem.node_index
        most = max([node.gpus for node in problem.nodes], default=0)
        self._holder = np.full((len(problem.nodes), most), FREE, dtype=np.int32)

    def number(self, shape: Shape) -> int | None:
        """Return what tells shapes apart here, None for one that the rule does not concern."""
        return self._keys.number(shape.workload) if shape.request.partial else None

    def open_to(self, number: int, nodes: Ints | int) -> Bools:
        """Return for each GPU of a node, or of some nodes, whether it holds no other key."""
        for path, key in self._keys.news():
            name, _, gpu = path.rpartition("/")
            self._holder[self._index[name], int(gpu)] = key
        holder = self._holder[nodes]
        return np.asarray((holder == FREE) | (holder == number))


class CrowdGate:
    """The domains that are full for a workload, for guards that count each workload's replicas."""

    def __init__(self, problem: Problem, guard: CrowdGuard | SkewGuard) -> None:
        self._guard = guard
        self._problem = problem

    @cached_property
    def _members(self) -> dict[str, Ints]:
        return _members(self._problem, self._guard)

    def close(self, mask: Bools, shape: Shape) -> None:
        """Mark the nodes whose domain is full."""
        if isinstance(self._guard, CrowdGuard):
            for path in self._guard.full.get(shape.workload.id, ()):
                mask[self._members[path]] = True
            return
        empty, others = self._guard.full(shape.workload)
        if empty:
            for nodes in self._members.values():
                mask[nodes] = True
        for path in others:
            mask[self._members[path]] = not empty


class TogetherGate:
    """The domains where a value is not that is somewhere, for guards that keep a value together."""

    def __init__(self, problem: Problem, guard: TogetherGuard) -> None:
        self._guard = guard
        self._members = _members(problem, guard)

    def close(self, mask: Bools, shape: Shape) -> None:
        """Mark the nodes of all domains but the one to join."""
        home = self._guard.home(shape.workload)
        if home is not None:
            for path, nodes in self._members.items():
                if path not in self._guard.held[self._guard.value[shape.workload.id]]:
                    mask[nodes] = True


class Gates:
    """The masks of all guards together, shape by shape."""

    def __init__(self, problem: Problem, guards: Iterable[Guard]) -> None:
        self._problem = problem
        self._guards = list(guards)
        self._gates = [_gate(problem, guard) for guard in self._guards]
        self._by_gpu = [gate for gate in self._gates if isinstance(gate, GpuGate)]
        self._of: dict[int, tuple[ApartGate | CrowdGate | TogetherGate, ...]] = {}
        self._concerned: dict[int, tuple[Guard, ...]] = {}
        self._strict: dict[int, tuple[Guard, ...]] = {}
        self._totals: dict[int, tuple[TotalGuard, ...]] = {}

    def guards(self, shape: int) -> tuple[Guard, ...]:
        """Return the guards that keep account of a shape."""
        if shape not in self._concerned:
            form = self._problem.shapes[shape]
            self._concerned[shape] = tuple(guard for guard in self._guards if _concerns(guard, form))
        return self._concerned[shape]

    def strict(self, shape: int) -> tuple[Guard, ...]:
        """Return the guards that a replica of a shape may set against the next one, masks or no masks."""
        if shape not in self._strict:
            self._strict[shape] = tuple(g for g in self.guards(shape) if not isinstance(g, ApartGuard | TotalGuard))
        return self._strict[shape]

    def opened(self, shape: int) -> int:
        """Return a number that changes whenever places that were blocked may have opened, undoing aside."""
        strict = self.strict(shape)
        if not strict:
            return 0
        workload = self._problem.shapes[shape].members[0].workload
        return sum(guard.opened(workload) for guard in strict)

    @cached_property
    def exact(self) -> tuple[SkewGuard, ...]:
        """The guards that allow no difference between domains."""
        return tuple(guard for guard in self._guards if isinstance(guard, SkewGuard) and not guard.skew)

    def even(self, shape: int) -> tuple[SkewGuard, ...]:
        """Return the guards of a shape that keep domains even, the strictest first."""
        skews = [guard for guard in self.strict(shape) if isinstance(guard, SkewGuard)]
        return tuple(sorted(skews, key=lambda guard: guard.skew))

    def ahead(self, shape: int) -> bool:
        """Tell whether domains differ by more of a shape's workload than rules let them."""
        workload = self._problem.shapes[shape].workload
        return any(max(guard.ahead(workload).values(), default=0) > guard.skew for guard in self.even(shape))

    def uneven(self) -> Mapping[tuple[str, str], int]:
        """Return by how much more than policies let them the domains of workloads differ, by policy and workload."""
        skews = [guard for guard in self._guards if isinstance(guard, SkewGuard)]
        return {
            (guard.scope.policy, workload.id): by
            for guard in skews
            for workload in guard.scope.workloads
            if (by := max(guard.ahead(workload).values(), default=0) - guard.skew) > 0
        }

    @contextmanager
    def leeway(self) -> Iterator[None]:
        """Let domains that must be even be ahead for a while: who adds replicas then evens them out (`evening`)."""
        had = [guard.leeway for guard in self.exact]
        for guard in self.exact:
            guard.give_leeway(True)
        try:
            yield
        finally:
            for guard, before in zip(self.exact, had, strict=True):
                guard.give_leeway(before)

    def domains(self, shape: int, node: int, gpu: int | None) -> Hashable:
        """Return what the strict guards of a shape tell apart of places: equal ones are open or closed alike."""
        place = self._problem.nodes[node]
        return tuple(
            domain_of(guard.level, guard.scope, place, gpu) if isinstance(guard, _BY_LEVEL) else (node, gpu)
            for guard in self.strict(shape)
        )

    def most(self, shape: int, wanted: int) -> int:
        """Return how many of so many more replicas of a shape may join as far as that is plain without a place."""
        member = self._problem.shapes[shape].members[0]
        if any(guard.bars(member.workload, member.role) for guard in self.strict(shape)):
            return 0
        room = self.room(shape)
        return wanted if room is None else min(room, wanted)

    def room(self, shape: int) -> int | None:
        """Return how many more replicas of a shape the limits on totals leave room for, None for any number."""
        member = self._problem.shapes[shape].members[0]
        rooms = [guard.room(member.workload, member.role) for guard in self._limits(shape)]
        return min((room for room in rooms if room is not None), default=None)

    @cached_property
    def totals(self) -> tuple[TotalGuard, ...]:
        """The guards that limit totals."""
        return tuple(guard for guard in self._guards if isinstance(guard, TotalGuard))

    def relieves(self, shape: int, other: int, count: int) -> bool:
        """Tell whether limits on totals leave room for more of a shape once so many replicas of another are gone."""
        member, limits = self._problem.shapes[other].members[0], self._limits(shape)
        rooms = []
        for change in (-count, count):
            rooms.append(self.room(shape))
            for guard in limits:
                guard.add(member.workload, member.role, self._problem.nodes[0], None, change)
        before, after = rooms
        return before is not None and (after is None or after > before)

    def _limits(self, shape: int) -> tuple[TotalGuard, ...]:
        if shape not in self._totals:
            self._totals[shape] = tuple(guard for guard in self.guards(shape) if isinstance(guard, TotalGuard))
        return self._totals[shape]

    def shut(self, shape: int) -> Bools | None:
        """Return the nodes that rules of nodes and wider domains close to a shape, None where no such rule is."""
        if shape not in self._of:
            own = {id(guard) for guard in self.guards(shape)}
            pairs = zip(self._guards, self._gates, strict=True)
            self._of[shape] = tuple(
                g for guard, g in pairs if id(guard) in own and isinstance(g, ApartGate | CrowdGate | TogetherGate)
            )
        return self._mask(shape, self._of[shape]) if self._of[shape] else None

    def crowded(self, shape: int) -> Bools:
        """Return the nodes that are closed to a shape by where its own replicas are, whoever else is there."""
        self.shut(shape)
        return self._mask(shape, [gate for gate in self._of[shape] if isinstance(gate, CrowdGate)])

    def _mask(self, shape: int, gates: Iterable[ApartGate | CrowdGate | TogetherGate]) -> Bools:
        mask = np.zeros(len(self._problem.nodes), dtype=bool)
        for gate in gates:
            gate.close(mask, self._problem.shapes[shape])
        return mask

    def apart(self, shape: int) -> tuple[int | None, ...]:
        """Return what rules that keep nodes and wider domains apart distinguish about a shape."""
        form = self._problem.shapes[shape]
        return tuple(gate.number(form) for gate in self._gates if isinstance(gate, ApartGate))

    def keys(self, shape: Shape) -> tuple[int | None, ...]:
        """Return what rules at GPUs distinguish about a shape."""
        return tuple(gate.number(shape) for gate in self._by_gpu)

    def open_gpus(self, keys: tuple[int | None, ...], nodes: Ints | int) -> Bools | None:
        """Return for each GPU of a node, or of some nodes, whether shapes with some keys may use it, None for all."""
        found: Bools | None = None
        for gate, number in zip(self._by_gpu, keys, strict=True):
            if number is not None:
                allowed = gate.open_to(number, nodes)
                found = allowed if found is None else found & allowed
        return found


def as_much_as(form: Shape, other: Shape) -> int:
    """Return how many replicas of another shape request as much GPU as one of a shape."""
    return -(-form.request.gpu_milli // max(1, other.request.gpu_milli))


def _gate(problem: Problem, guard: Guard) -> ApartGate | GpuGate | CrowdGate | TogetherGate | None:
    if isinstance(guard, ApartGuard):
        return GpuGate(problem, guard) if guard.by_gpu else ApartGate(problem, guard)
    if isinstance(guard, TogetherGuard):
        return TogetherGate(problem, guard)
    return CrowdGate(problem, guard) if isinstance(guard, CrowdGuard | SkewGuard) else None


def _concerns(guard: Guard, shape: Shape) -> bool:
    """Tell whether a guard keeps account of a shape at all; one of unknown make may."""
    match guard:
        case ApartGuard() | TogetherGuard() | CrowdGuard() if guard.gpus_alone and not shape.request.gpu_count:
            return False
        case ApartGuard():
            return guard.key(shape.workload) is not None and not (guard.by_gpu and not shape.request.partial)
        case TogetherGuard():
            return guard.value.get(shape.workload.id) is not None
        case CrowdGuard():
            return shape.workload.id in guard.scope.ids
        case SkewGuard():
            return len(guard.eligible.get(shape.workload.id, ())) > 1
        case ClientsGuard():
            return shape.workload.id in guard.scope.ids and shape.request.partial
        case PlacesGuard():
            return shape.workload.holds == guard.scope.policy
        case TotalGuard():
            return guard.counts(shape.workload, shape.role)
    return True


def _members(problem: Problem, guard: ApartGuard | CrowdGuard | SkewGuard | TogetherGuard) -> dict[str, Ints]:
    """Return the node indices of each domain that a guard watches."""
    found: dict[str, list[int]] = {}
    for index, node in enumerate(problem.nodes):
        path = domain_of(guard.level, guard.scope, node, None)
        if path is not None:
            found.setdefault(path, []).append(index)
    return {path: np.array(nodes, dtype=np.int64) for path, nodes in found.items()}


def guards_of(problem: Problem, aside: Collection[str] = ()) -> list[Guard]:
    """Return the guards of the hard policies that have one, and of soft ones that hold places.

    Those of the latter keep nobody off a node but the places themselves, where they would not count.

    Parameters
    ----------
    aside : policies whose guards are left out, as somebody else sees to these.
    """
    holding = {workload.holds for workload in problem.spec.placeholders}
    found = []
    for policy in problem.spec.policies:
        if policy.name not in aside and (policy.enforcement.kind == "hard" or policy.name in holding):
            guard = policy.rule.guard(problem.context.scopes[policy.name])
            if guard is not None:
                found.append(guard)
    return found


def closing_of(problem: Problem) -> dict[str, tuple[frozenset[str], list[int]]]:
    """Return, per hard policy that closes nodes, the workloads that it closes them to, and the nodes."""
    index = problem.node_index
    found = {}
    for policy in problem.spec.policies:
        scope = problem.context.scopes[policy.name]
        if policy.enforcement.kind == "hard" and (closed := policy.rule.closed_nodes(scope)):
            found[policy.name] = scope.ids, sorted(index[name] for name in closed if name in index)
    return found
