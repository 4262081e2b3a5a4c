"""The exact model of a part of the cluster, everything outside it fixed (E3).

With every node in the part it is the exact model of the whole Problem. Rows are made for what the part can change
only, and what is outside enters as totals of the state, so a part costs what it holds and not what the cluster holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from dovetail.linear import Linear, Literal, Model
from dovetail.model.demands import add_demands
from dovetail.model.state import State
from dovetail.model.variables import Variables
from dovetail.objectives import TierPart
from dovetail.problem import Problem
from dovetail.rules import Domain
from dovetail.rules.quota import requested_of
from dovetail.spec import Node, Role, Spec, Workload

_Contents = tuple[tuple[int, ...], Counter[int]]


class PartModel(TierPart):
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
        self.problem = problem
        self.spec: Spec = problem.spec
        self.context = problem.context
        self.model = Model()
        self.free = tuple(sorted(nodes))
        self._free_set = frozenset(self.free)
        self._state = state
        self._totals = state.totals()
        self._retained: dict[int, Linear] = {}
        self._moved: dict[int, Linear] = {}
        self._sets: dict[int, tuple[Collection[Workload], frozenset[int]]] = {}
        self._contents: dict[tuple[Domain, frozenset[str] | None], _Contents] = {}
        self.variables = Variables(problem, self.model, self._taken())
        for node in self.free:
            self.variables.add_node(node, state)
        self._keeps = self._keeps_by_shape()
        if demands:
            add_demands(self)
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
        for index, flags in self.variables.shared.items():
            if not self.variables.present(index):
                self._descending([self.variables.gpu_load(index, gpu) for gpu in sorted(flags)])
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
            violations = policy.rule.encode(self, self.context.scopes[policy.name])
            found[policy.name] = violations
            if policy.name in relaxed:
                self.debt.add(Linear.total(violations.values()))
            elif policy.enforcement.kind == "hard":
                excused = self.context.tolerated[policy.name]
                for subject, violation in violations.items():
                    self.model.require(violation, upper=excused.get(subject, 0))
        return found

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

    def count(self, workloads: Collection[Workload], domain: Domain, nodes: frozenset[str] | None = None) -> Linear:
        """Return how many replicas of some workloads are in a domain, on `nodes` only where given."""
        shapes = self._shapes_in(workloads)
        inside, outside = self._contents_of(domain, nodes)
        total = Linear(constant=sum(count for shape, count in outside.items() if shape in shapes))
        for index in inside:
            for slot, variable in self.variables.slots[index].items():
                if slot.shape in shapes and domain.gpu in (None, slot.gpu):
                    total.add_term(variable)
        return total

    def _contents_of(self, domain: Domain, nodes: frozenset[str] | None) -> _Contents:
        """Return the part's nodes in a domain, and the replicas per shape on its other nodes."""
        if (domain, nodes) not in self._contents:
            indices = [self.problem.node_index[name] for name in domain.nodes if nodes is None or name in nodes]
            outside: Counter[int] = Counter()
            for index in indices:
                if index not in self._free_set and index in self._state.fills:
                    for slot, count in self._state.fills[index].slots.items():
                        outside[slot.shape] += count if domain.gpu in (None, slot.gpu) else 0
            self._contents[domain, nodes] = tuple(i for i in indices if i in self._free_set), outside
        return self._contents[domain, nodes]

    def _shapes_in(self, workloads: Collection[Workload]) -> frozenset[int]:
        """Return the shapes that workloads make up, worked out once per collection, as rules ask for each domain."""
        known = self._sets.get(id(workloads))
        if known is None:  # the collection is kept too, so that its id stays its own
            known = self._sets[id(workloads)] = workloads, self._made_up(workloads)
        return known[1]

    def _made_up(self, workloads: Iterable[Workload]) -> frozenset[int]:
        """Return the shapes of workloads; a rule that splits a shape has not told what it distinguishes."""
        ids = {workload.id for workload in workloads}
        shapes = {shape for i in ids for shape in self.problem.shapes_of_workload.get(i, ())}
        for shape in shapes:
            if any(member.workload.id not in ids for member in self.problem.shapes[shape].members):
                raise AssertionError("a rule tells workloads apart that its workload_key does not distinguish")
        return frozenset(shapes)

    def _placed(self, workload: Workload) -> Iterator[tuple[Node, Linear]]:
        """Yield how many replicas of one workload are on nodes, in the part and outside; a node may come again."""
        for shape in sorted(self._made_up([workload])):
            for index, variable in self.variables.of_shape.get(shape, ()):
                yield self.problem.nodes[index], Linear.of(variable)
            for index, count in self.held_outside(shape):
                yield self.problem.nodes[index], Linear(constant=count)

    def counts(self, workload: Workload, level: str, nodes: frozenset[str] | None = None) -> Mapping[str, Linear]:
        """Return how many replicas of a workload are in each domain of a level, none where there is no entry."""
        found = {domain.path: Linear() for domain in self.domains(level)}
        for node, count in self._placed(workload):
            path = node.domain(level)
            if path is not None and (nodes is None or node.name in nodes):
                found.setdefault(path, Linear()).add(count)
        return found

    def admitted_shape(self, shape: int) -> Linear:
        """Return how many replicas of a shape are admitted, in the part and outside."""
        terms = {variable: 1 for _, variable in self.variables.of_shape.get(shape, ())}
        return Linear(terms, self.variables.taken[shape])

    def admitted(self, workload: Workload) -> Linear:
        """Return how many replicas of a workload are admitted, in the part and outside."""
        return Linear.total(self.admitted_shape(shape) for shape in sorted(self._made_up([workload])))

    def requested(self, workloads: Collection[Workload], resource: str) -> Linear:
        """Return how much of a resource the admitted replicas request."""
        total = Linear()
        for shape in sorted(self._shapes_in(workloads)):
            amount = requested_of(self.problem.shapes[shape].request, resource)
            if amount:
                total.add(self.admitted_shape(shape), amount)
        return total

    def misplaced(self, workload: Workload, nodes: frozenset[str]) -> Linear:
        """Return how many replicas of a workload are on `nodes`."""
        return Linear.total(count for node, count in self._placed(workload) if node.name in nodes)

    def moved(self, workload: Workload) -> Linear:
        """Return how many replicas of a workload move."""
        return Linear.total(self.moved_role(workload, role) for role in workload.roles)

    # What tiers see beyond that.

    def worth(self, roles: Iterable[tuple[Workload, Role]]) -> Linear:
        """Return the value of the admitted replicas of some roles."""
        shapes = {self.problem.shapes_of_role[w.id, r.name] for w, r in roles if r.replicas}
        total = Linear()
        for shape in sorted(shapes):
            total.add(self.admitted_shape(shape), self.problem.shapes[shape].role.value)
        return total

    def retained(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role whose place stands today stay admitted: min(running, admitted)."""
        shape = self.problem.shapes_of_role.get((workload.id, role.name), -1)
        running = self.problem.running.get(shape, 0)
        if not running:
            return Linear()
        if shape not in self._retained:
            self._retained[shape] = self._least_of(running, self.admitted_shape(shape))
        return self._retained[shape]

    def _least_of(self, running: int, admitted: Linear) -> Linear:
        if admitted.is_constant or self.model.range_of(admitted)[0] >= running:
            return Linear(constant=min(running, admitted.constant) if admitted.is_constant else running)
        variable = Linear.of(self.model.integer(0, running))
        all_stay = Literal(self.model.boolean())
        self.model.require(variable.minus(admitted), upper=0)
        self.model.require(variable, lower=running, when=all_stay)
        self.model.require(variable.minus(admitted), lower=0, when=~all_stay)
        return variable

    def evicted(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role that run, or ran until their place went, are not admitted."""
        shape = self.problem.shapes_of_role.get((workload.id, role.name), -1)
        ran = self.problem.running.get(shape, 0) + self.problem.lost.get(shape, 0)
        if not ran:
            return Linear()
        return self.model.positive_part(Linear(constant=ran).minus(self.admitted_shape(shape)))

    def moved_role(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role whose place stands today are admitted on another one."""
        shape = self.problem.shapes_of_role.get((workload.id, role.name), -1)
        if not self.problem.running.get(shape, 0):
            return Linear()
        if shape not in self._moved:
            self._moved[shape] = self.retained(workload, role).minus(self._kept(shape))
            if not self._moved[shape].is_constant:
                self.model.require(self._moved[shape], lower=0)
        return self._moved[shape]

    def _kept(self, shape: int) -> Linear:
        return self._keeps.get(shape) or Linear(constant=self._totals.kept[shape])

    def free_nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the part."""
        return tuple(self.problem.nodes[index] for index in self.free)

    def used(self, node: str) -> Literal | None:
        """Return a literal that is true where a node of the part hosts anything; None where it cannot."""
        slots = self.variables.slots[self.problem.node_index[node]]
        return self.model.at_least_one(Linear(dict.fromkeys(slots.values(), 1))) if slots else None

    def gpus_used(self, node: str) -> Linear:
        """Return how many GPUs of a node of the part are in use."""
        index = self.problem.node_index[node]
        requests = {v: self.variables.request(slot) for slot, v in self.variables.slots[index].items()}
        total = Linear({v: request.gpus for v, request in requests.items() if request.gpus})
        for flag in self.variables.shared.get(index, {}).values():
            total.add_term(flag)
        return total
