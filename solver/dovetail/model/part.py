"""The exact model of a part of the cluster, everything outside it fixed.

With every node in the part it is the exact model of the whole Problem. Rows are made for what the part can change
only, and what is outside enters as totals of the state, so a part costs what it holds and not what the cluster holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from dovetail.linear import Linear
from dovetail.model.clients import fixed_mode, mode_of, settings_of
from dovetail.model.counting import Counting
from dovetail.model.demands import add_demands, by_host
from dovetail.model.idle import idle_of
from dovetail.model.recovery import not_restarted
from dovetail.model.state import Slot, State
from dovetail.model.variables import Variables
from dovetail.objectives import Idle
from dovetail.placement.clients import WHOLE, equal_parts
from dovetail.problem import Present, Problem
from dovetail.rules import Domain
from dovetail.rules.recovery import Failure, Stakes
from dovetail.spec import Node, ReplicaId, Workload
from dovetail.spec.inside import INNER_LEVELS, Mask, mask_of

_Contents = tuple[tuple[int, ...], Counter[int]]


def _gpus_of(node: Node, slot: Slot) -> Mask:
    """Return the GPUs that tell in which domains inside a node a slot lies."""
    if slot.gpu >= 0:
        return 1 << slot.gpu
    return slot.block or mask_of(range(node.gpus))


class PartModel(Counting):
    """Variables and rows of a part; rules and tiers see it through `TierPart`.

    Parameters
    ----------
    nodes : indices of the free nodes.
    state : a solution of the whole; what it holds outside `nodes` is fixed.
    relaxed : hard policies that may be broken; `debt` adds up their violations.
    demands : whether what is asked for and what is protected binds; off for a node that stands for its class.
    """

    def __init__(
        self,
        problem: Problem,
        nodes: Iterable[int],
        state: State,
        relaxed: frozenset[str] = frozenset(),
        *,
        demands: bool = True,
    ) -> None:
        super().__init__(problem)
        self.free = tuple(sorted(nodes))
        self._free_set = frozenset(self.free)
        self._state = state
        self._totals = state.totals()
        self._turns: dict[tuple[int, Present], list[Linear]] = {}
        self._contents: dict[tuple[Domain, frozenset[str] | None], _Contents] = {}
        self.variables = Variables(problem, self.model, self._taken())
        for node in self.free:
            self.model.section(f"node {problem.nodes[node].name}")
            self.variables.add_node(node, state)
        self._keeps = self._keeps_by_shape()
        if demands:
            self.model.section("demand")
            add_demands(self)
        self.model.section("order")
        self._add_symmetry()
        self.debt = Linear()
        self.violations: Mapping[str, Mapping[str, Linear]] = self._add_policies(relaxed)

    def _taken(self) -> Counter[int]:
        total = Counter(self._totals.admitted)
        for node in self.free:
            total.subtract(self._state.fill(node).counts())
        return total

    def _keeps_by_shape(self) -> Mapping[int, Linear]:
        """Return, per shape that runs on the part's nodes, how many replicas stay on today's place anywhere."""
        found: dict[int, Linear] = {}
        for node, keeps in self.variables.keeps.items():
            for place, variable in keeps.items():
                kept = found.setdefault(place.shape, Linear(constant=self._totals.kept[place.shape]))
                kept.add_term(variable)
                kept.constant -= self._state.fill(node).kept[place]
        return found

    def _add_symmetry(self) -> None:
        """Order the shared GPUs of a node, and the interchangeable nodes of the part, by load."""
        for index in self.free:
            self._descending([self.variables.gpu_load(index, gpu) for gpu in self.variables.gpus_alike(index)])
        for members in self.variables.twins():
            self._descending([self.variables.node_load(node) for node in members])

    def _descending(self, loads: list[Linear]) -> None:
        for heavy, light in pairwise(loads):
            self.model.require(heavy.minus(light), lower=0)

    def _add_policies(self, relaxed: frozenset[str]) -> Mapping[str, Mapping[str, Linear]]:
        found = {}
        for policy in self.spec.policies:
            if policy.enforcement.kind == "audit":
                continue
            self.model.section(f"policy {policy.name}")
            violations = policy.rule.encode(self, self.context.scopes[policy.name])
            found[policy.name] = violations
            if policy.name in relaxed:
                self.debt.add(Linear.total(violations.values()))
            elif policy.enforcement.kind == "hard":
                self._forbid(policy, violations)
        return found

    def refuse(self, state: State) -> None:
        """Leave out what the part's nodes hold in a state, to the replica."""
        counts = self.variables
        held = {v: state.fill(node).slots[slot] for node in self.free for slot, v in counts.slots[node].items()}
        held |= {v: state.fill(node).kept[place] for node in self.free for place, v in counts.keeps[node].items()}
        self.model.exclude(held)

    # What the part can change.

    @cached_property
    def whole(self) -> bool:
        """Whether nothing is outside."""
        return len(self.free) == len(self.problem.nodes)

    @cached_property
    def shapes(self) -> Sequence[int]:
        """The shapes whose replicas the part can change, ascending; all of them where it is the whole."""
        return range(len(self.problem.shapes)) if self.whole else sorted(self.variables.of_shape)

    @cached_property
    def _changing(self) -> frozenset[str]:
        shapes = self.problem.shapes
        return frozenset(member.workload.id for shape in self.shapes for member in shapes[shape].members)

    def changing(self, workloads: Iterable[Workload]) -> Iterable[Workload]:
        """Return those workloads of which the part can change anything; all of them where it is the whole."""
        return workloads if self.whole else [w for w in workloads if w.id in self._changing]

    def held_outside(self, shape: int) -> Iterator[tuple[int, int]]:
        """Yield the nodes outside the part that hold a shape, and how many replicas of it."""
        where = self._totals.where.get(shape, {})
        return ((node, count) for node, count in where.items() if node not in self._free_set)

    # What rules see.

    def domains(self, level: str) -> Iterable[Domain]:
        """Return the domains of a level that hold a node of this part."""
        return self.problem.domains_of(level, [self.problem.nodes[index].name for index in self.free])

    def every_domain(self, level: str) -> Iterable[Domain]:
        """Return the domains of a level."""
        return self.problem.domains(level)

    def count(self, workloads: Collection[Workload], domain: Domain, nodes: frozenset[str] | None = None) -> Linear:
        """Return how many replicas of some workloads are in a domain, on `nodes` only where given."""
        shapes = self._shapes_in(workloads)
        inside, outside = self._contents_of(domain, nodes)
        total = Linear(constant=sum(count for shape, count in outside.items() if shape in shapes))
        for index in inside:
            for slot, variable in self.variables.slots[index].items():
                if slot.shape in shapes and domain.holds(slot.gpu, slot.profile):
                    total.add_term(variable)
        return total

    def shape_in(self, shape: int, domain: Domain) -> Linear:
        """Return how many replicas of a shape are in a domain."""
        inside, outside = self._contents_of(domain, None)
        slots = ((slot, v) for index in inside for slot, v in self.variables.slots[index].items())
        here = {v: 1 for slot, v in slots if slot.shape == shape and domain.holds(slot.gpu, slot.profile)}
        return Linear(here, outside[shape])

    def contents(self, index: int) -> Iterator[tuple[Slot, Linear]]:
        """Yield what a node holds, slot by slot: variables in the part, constants outside."""
        if index in self._free_set:
            yield from ((slot, Linear.of(variable)) for slot, variable in self.variables.slots[index].items())
        elif index in self._state.fills:
            for slot, count in sorted(self._state.fills[index].slots.items()):
                yield slot, Linear(constant=count)

    def not_restarted(self, stakes: Stakes, failures: Sequence[Failure]) -> Mapping[str, Linear] | None:
        """Return per failure case the replicas that do not restart, None where that takes too many rows."""
        return not_restarted(self, stakes, failures)

    def slots_outside(self, shape: int) -> Iterator[tuple[int, Slot, int]]:
        """Yield where the nodes outside the part hold a shape, and how many replicas of it."""
        for node, _ in self.held_outside(shape):
            for slot, count in self._state.fills[node].slots.items():
                if slot.shape == shape and count:
                    yield node, slot, count

    def sharing(self, index: int) -> list[Linear]:
        """Return per pool of a node 1 where clients share GPUs, so that nobody has one as a whole (S3.5)."""
        if index in self._free_set:
            return self.variables.pools.shared(index)
        before = self.problem.settings[index]
        found = settings_of(self.problem, index, self._state.fill(index)).items()
        return [Linear(constant=int({own[0], before.get(pool, WHOLE)} != {WHOLE})) for pool, own in found]

    def _contents_of(self, domain: Domain, nodes: frozenset[str] | None) -> _Contents:
        """Return the part's nodes in a domain, and the replicas per shape on its other nodes."""
        if (domain, nodes) not in self._contents:
            indices = [self.problem.node_index[name] for name in domain.nodes if nodes is None or name in nodes]
            outside: Counter[int] = Counter()
            for index in indices:
                if index not in self._free_set and index in self._state.fills:
                    for slot, count in self._state.fills[index].slots.items():
                        outside[slot.shape] += count if domain.holds(slot.gpu, slot.profile) else 0
            self._contents[domain, nodes] = tuple(i for i in indices if i in self._free_set), outside
        return self._contents[domain, nodes]

    def _placed(self, workload: Workload, role: str | None = None) -> Iterator[tuple[Node, Linear]]:
        """Yield how many replicas of one workload are on nodes, in the part and outside; a node may come again."""
        for shape in self._shapes_of(workload, role):
            for index, variable in self.variables.of_shape.get(shape, ()):
                yield self.problem.nodes[index], Linear.of(variable)
            for index, count in self.held_outside(shape):
                yield self.problem.nodes[index], Linear(constant=count)

    def counts(
        self, workload: Workload, level: str, nodes: frozenset[str] | None = None, *, role: str | None = None
    ) -> Mapping[str, Linear]:
        """Return how many replicas of a workload are in each domain of a level, none where there is no entry."""
        if level in INNER_LEVELS:
            return self._counts_inside(workload, level, nodes, role)
        found = {domain.path: Linear() for domain in self.domains(level)}
        for node, count in self._placed(workload, role):
            path = node.domain(level)
            if path is not None and (nodes is None or node.name in nodes):
                found.setdefault(path, Linear()).add(count)
        return found

    def _slots_of(self, workload: Workload, role: str | None) -> Iterator[tuple[Node, Slot, Linear]]:
        """Yield how many replicas of one workload are in each slot, in the part and outside."""
        for shape in self._shapes_of(workload, role):
            inside = {index for index, _ in self.variables.of_shape.get(shape, ())}
            for index in sorted(inside | {index for index, _ in self.held_outside(shape)}):
                for slot, count in self.contents(index):
                    if slot.shape == shape:
                        yield self.problem.nodes[index], slot, count

    def _counts_inside(
        self, workload: Workload, level: str, nodes: frozenset[str] | None, role: str | None
    ) -> Mapping[str, Linear]:
        """Return how many replicas of a workload are in each island, or at each socket."""
        found: dict[str, Linear] = {}
        for node, slot, count in self._slots_of(workload, role):
            told = nodes is None or node.name in nodes
            if told and (path := node.around(level, _gpus_of(node, slot))) is not None:
                found.setdefault(path, Linear()).add(count)
        return found

    def reaching(self, workload: Workload, level: str) -> Mapping[str, Linear]:
        """Return how many replicas of a workload reach into each domain of a level; some may into several."""
        if level not in INNER_LEVELS:
            return self.counts(workload, level)
        found: dict[str, Linear] = {}
        for node, slot, count in self._slots_of(workload, None):
            if not self.problem.shapes[slot.shape].request.gpu_count:
                continue
            for path in node.domains_inside(level, _gpus_of(node, slot)):
                found.setdefault(path, Linear()).add(count)
        return found

    def astray(self, workload: Workload, level: str, *, role: str | None = None) -> Linear:
        """Return how many replicas of a workload are in no domain of a level, or in several at once."""
        if level not in INNER_LEVELS:
            nodes = self.spec.cluster.homeless(level)
            return self.misplaced(workload, nodes, role=role) if nodes else Linear()
        slots = self._slots_of(workload, role)
        return Linear.total(c for node, s, c in slots if len(node.domains_inside(level, _gpus_of(node, s))) != 1)

    def stays(self, workload: Workload) -> Mapping[ReplicaId, Linear]:
        """Return for each replica whose place stands today 1 where it stays there, else 0; cf. `expand`."""
        found: dict[ReplicaId, Linear] = {}
        for node, place in self.problem.places_of.get(workload.id, ()):
            replicas = self.problem.standing[node, place]
            for replica, stay in zip(replicas, self._in_turn(node, place, len(replicas)), strict=True):
                if replica.workload == workload.id:
                    found[replica] = stay
        return found

    def _in_turn(self, node: int, place: Present, count: int) -> list[Linear]:
        """Return, for replicas that share a place, who of them stays: the first ones do."""
        if node not in self._free_set:
            kept = self._state.fill(node).kept[place]
            return [Linear(constant=int(position < kept)) for position in range(count)]
        keep = Linear.of(self.variables.keeps[node][place])
        if count == 1:
            return [keep]
        if (node, place) not in self._turns:
            flags = [Linear.of(self.model.boolean()) for _ in range(count)]
            self.model.require(keep.minus(Linear.total(flags)), lower=0, upper=0)
            self._descending(flags)
            self._turns[node, place] = flags
        return self._turns[node, place]

    def admitted_shape(self, shape: int) -> Linear:
        """Return how many replicas of a shape are admitted, in the part and outside."""
        terms = {variable: 1 for _, variable in self.variables.of_shape.get(shape, ())}
        return Linear(terms, self.variables.taken[shape])

    def misplaced(self, workload: Workload, nodes: frozenset[str], *, role: str | None = None) -> Linear:
        """Return how many replicas of a workload are on `nodes`."""
        return Linear.total(count for node, count in self._placed(workload, role) if node.name in nodes)

    def in_modes(self, workload: Workload, modes: Collection[str], nodes: frozenset[str] | None = None) -> Linear:
        """Return how many replicas of a workload are on GPUs in some modes (S3.2), on `nodes` only where given."""
        found = Linear()
        for shape in sorted(self._made_up([workload])):
            for index in sorted({index for index, _ in self.variables.of_shape.get(shape, ())}):
                if nodes is None or self.problem.nodes[index].name in nodes:
                    found.add(self._in_modes(index, shape, modes))
            for index, slot, count in self.slots_outside(shape):
                if nodes is None or self.problem.nodes[index].name in nodes:
                    mode = mode_of(self.problem, index, self._state.fill(index), slot)
                    found.constant += count if mode in modes else 0
        return found

    def _in_modes(self, index: int, shape: int, modes: Collection[str]) -> Linear:
        """Return how many replicas of a shape are in some modes on a node of the part."""
        node, slots = self.problem.nodes[index], self.variables.slots[index]
        found = Linear()
        for slot, variable in slots.items():
            if slot.shape == shape and fixed_mode(self.problem, node, slot) in modes:
                found.add_term(variable)
        return found.add(self.variables.pools.in_modes(index, shape, slots, modes)) if equal_parts(node) else found

    def by_host(self, workload: Workload) -> Mapping[str, Linear]:
        """Return how many replicas of a workload are on each host."""
        return by_host(self, workload)

    def _kept(self, shape: int) -> Linear:
        return self._keeps.get(shape) or Linear(constant=self._totals.kept[shape])

    def free_nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the part."""
        return tuple(self.problem.nodes[index] for index in self.free)

    def used(self, node: str) -> Linear:
        """Return 1 where a node of the part hosts anything, else 0; a plain 0 where it cannot."""
        slots = self._working(self.problem.node_index[node])
        held = Linear(dict.fromkeys(slots.values(), 1))
        return Linear.of(self.model.at_least_one(held).variable) if slots else Linear()

    def _working(self, index: int) -> Mapping[Slot, int]:
        """Return the counts of a node's real replicas: what is held free is not in use."""
        slots = self.variables.slots[index]
        return {slot: v for slot, v in slots.items() if not self.problem.shapes[slot.shape].workload.holds}

    def gpus_used(self, node: str) -> Linear:
        """Return how many GPUs of a node of the part are in use."""
        index = self.problem.node_index[node]
        slots = self._working(index)
        requests = {v: self.variables.request(slot) for slot, v in slots.items()}
        total = Linear({v: request.gpus for v, request in requests.items() if request.gpus})
        for gpu, flag in self.variables.shared.get(index, {}).items():
            total.add(self._in_use(index, gpu, flag, cut=False))
        for gpu, flag in self.variables.partitions.flags.get(index, {}).items():
            total.add(self._in_use(index, gpu, flag, cut=True))
        return total

    def recut(self, node: str) -> Linear:
        """Return at most how many GPUs of a node of the part are cut in another way than today."""
        index, variables = self.problem.node_index[node], self.variables
        whole = Linear(
            {v: count for slot, v in variables.slots[index].items() if (count := variables.request(slot).gpus)}
        )
        return variables.partitions.changes(index, variables.slots[index], variables.shared.get(index, {}), whole)

    def _in_use(self, index: int, gpu: int, flag: int, *, cut: bool) -> Linear:
        """Return 1 where real work is on a GPU that is cut, or shared; a flag counts what is held free as well."""
        on = {v for slot, v in self.variables.slots[index].items() if slot.gpu == gpu and bool(slot.profile) == cut}
        here = on & set(self._working(index).values())
        if here == on:
            return Linear.of(flag)
        return (
            Linear.of(self.model.at_least_one(Linear(dict.fromkeys(sorted(here), 1))).variable) if here else Linear()
        )

    def idle(self, node: str) -> Idle:
        """Return what a node of the part has left."""
        return idle_of(self.variables, self.problem.node_index[node])
