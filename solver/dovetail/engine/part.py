"""The exact model of a part of the cluster, everything outside it fixed (E3).

With every node in the part it is the exact model of the whole Problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from dovetail.engine.demands import add_demands
from dovetail.engine.state import Fill, State
from dovetail.engine.variables import Variables
from dovetail.linear import Linear, Literal, Model
from dovetail.objectives import TierPart
from dovetail.problem import Problem
from dovetail.rules import Domain
from dovetail.rules.quota import requested_of
from dovetail.spec import Node, Role, Spec, Workload


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
        self._retained: dict[int, Linear] = {}
        self._moved: dict[int, Linear] = {}
        self.variables = Variables(problem, self.model, self._taken())
        for node in self.free:
            self.variables.add_node(node, state)
        if demands:
            add_demands(self)
        self._add_symmetry()
        self.debt = Linear()
        self.violations: Mapping[str, Mapping[str, Linear]] = self._add_policies(relaxed)

    def outside(self) -> Iterator[tuple[int, Fill]]:
        """Yield the nodes outside the part with what they hold."""
        return ((node, fill) for node, fill in self._state.fills.items() if node not in self._free_set)

    def _taken(self) -> Counter[int]:
        total: Counter[int] = Counter()
        for _, fill in self.outside():
            total.update(fill.counts())
        return total

    def _add_symmetry(self) -> None:
        """Order the shared GPUs of a node, and the interchangeable nodes of the part, by load."""
        for index, flags in self.variables.shared.items():
            if not self.variables.present(index):
                self._descending([self.variables.gpu_load(index, gpu) for gpu in sorted(flags)])
        for node_class in self.problem.classes:
            members = [node for node in node_class.nodes if node in self._free_set]
            if node_class.empty:
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

    # What rules see.

    def domains(self, level: str) -> Iterable[Domain]:
        """Return the domains of a level that hold a node of this part."""
        names = {self.problem.nodes[index].name for index in self.free}
        return [domain for domain in self.problem.domains(level) if not names.isdisjoint(domain.nodes)]

    def all_domains(self, level: str) -> Iterable[Domain]:
        """Return every domain of a level."""
        return self.problem.domains(level)

    def count(self, workloads: Iterable[Workload], domain: Domain, nodes: frozenset[str] | None = None) -> Linear:
        """Return how many replicas of some workloads are in a domain, on `nodes` only where given."""
        shapes = self._shapes_in(workloads)
        total = Linear()
        for name in domain.nodes:
            if nodes is None or name in nodes:
                self._count_node(total, self.problem.node_index[name], shapes, domain.gpu)
        return total

    def _count_node(self, total: Linear, index: int, shapes: frozenset[int], gpu: int | None) -> None:
        if index in self._free_set:
            for slot, variable in self.variables.slots[index].items():
                if slot.shape in shapes and gpu in (None, slot.gpu):
                    total.add_term(variable)
        elif index in self._state.fills:
            for slot, count in self._state.fills[index].slots.items():
                if slot.shape in shapes and gpu in (None, slot.gpu):
                    total.constant += count

    def _shapes_in(self, workloads: Iterable[Workload]) -> frozenset[int]:
        """Return the shapes that workloads make up; a rule that splits a shape has not told what it distinguishes."""
        ids = {workload.id for workload in workloads}
        shapes = {shape for i in ids for shape in self.problem.shapes_of_workload.get(i, ())}
        for shape in shapes:
            if any(member.workload.id not in ids for member in self.problem.shapes[shape].members):
                raise AssertionError("a rule tells workloads apart that its workload_key does not distinguish")
        return frozenset(shapes)

    def admitted_shape(self, shape: int) -> Linear:
        """Return how many replicas of a shape are admitted, in the part and outside."""
        terms = {variable: 1 for _, variable in self.variables.of_shape[shape]}
        return Linear(terms, self.variables.taken[shape])

    def admitted(self, workload: Workload) -> Linear:
        """Return how many replicas of a workload are admitted, in the part and outside."""
        return Linear.total(self.admitted_shape(shape) for shape in sorted(self._shapes_in([workload])))

    def requested(self, workloads: Iterable[Workload], resource: str) -> Linear:
        """Return how much of a resource the admitted replicas request."""
        total = Linear()
        for shape in sorted(self._shapes_in(workloads)):
            amount = requested_of(self.problem.shapes[shape].request, resource)
            if amount:
                total.add(self.admitted_shape(shape), amount)
        return total

    def misplaced(self, workload: Workload, nodes: frozenset[str]) -> Linear:
        """Return how many replicas of a workload are on `nodes`."""
        return self.count([workload], Domain("", tuple(n for n in sorted(nodes) if n in self.problem.node_index)))

    def candidates(self, workload: Workload) -> frozenset[str]:
        """Return the nodes of the whole cluster that may newly host a replica of a workload."""
        shapes = set(self.problem.shapes_of_workload.get(workload.id, ()))
        classes = [c for c in self.problem.classes if not shapes.isdisjoint(self.problem.hosted[c.index])]
        return frozenset(self.problem.nodes[n].name for c in classes for n in c.nodes)

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
        if self.model.range_of(admitted)[0] >= running:
            return Linear(constant=running)
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
            self.model.require(self._moved[shape], lower=0)
        return self._moved[shape]

    def _kept(self, shape: int) -> Linear:
        total = Linear()
        for _, fill in self.outside():
            total.constant += sum(count for place, count in fill.kept.items() if place.shape == shape)
        for keeps in self.variables.keeps.values():
            for place, variable in keeps.items():
                if place.shape == shape:
                    total.add_term(variable)
        return total

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
