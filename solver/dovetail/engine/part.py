"""The exact model of a part of the cluster, everything outside it fixed (E3).

Counts per shape and node (per GPU for shares), never one variable per replica. With every node in the part it is
the exact model of the whole Problem.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise

from dovetail.engine.state import NO_GPU, Fill, Slot, State, slot_of
from dovetail.linear import Linear, Literal, Model
from dovetail.objectives import TierPart
from dovetail.placement.room import share_memory
from dovetail.problem import Present, Problem, Shape
from dovetail.rules import Domain
from dovetail.rules.quota import requested_of
from dovetail.spec import Node, Request, Role, Spec, Workload
from dovetail.spec.workload import MILLI


class PartModel(TierPart):
    """Variables and rows of a part; rules and tiers see it through `TierPart`.

    Parameters
    ----------
    nodes : indices of the free nodes.
    state : a solution of the whole; what it holds outside `nodes` is fixed.
    relaxed : hard policies that may be broken; `debt` adds up their violations.
    """

    def __init__(
        self, problem: Problem, nodes: Iterable[int], state: State, relaxed: frozenset[str] = frozenset()
    ) -> None:
        self.problem = problem
        self.spec: Spec = problem.spec
        self.context = problem.context
        self.model = Model()
        self.free = tuple(sorted(nodes))
        self.slots: dict[int, dict[Slot, int]] = {}
        self.keeps: dict[int, dict[Present, int]] = {}
        self._free_set = frozenset(self.free)
        self._outside = state
        self._terms: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._outside_admitted = Counter(state.admitted())
        for node in self.free:
            self._outside_admitted.subtract(state.fill(node).counts())
        for node in self.free:
            self._add_node(node, self._candidates(node, state))
        self._add_shapes()
        self._add_workloads()
        self._add_symmetry()
        self.debt = Linear()
        self.violations: Mapping[str, Mapping[str, Linear]] = self._add_policies(relaxed)

    # ------------------------------------------------------------------ nodes

    def _candidates(self, node: int, state: State) -> list[int]:
        """Return the shapes a node may hold: what it may take anew, if any is left, and what is here already."""
        new = self.problem.hosted[self.problem.class_of[node]]
        inside = {slot.shape for slot in state.fill(node).slots} | {p.shape for p in self._present(node)}
        open_shapes = [s for s in new if self._outside_admitted[s] < self.problem.shapes[s].demand]
        return sorted(inside | set(open_shapes))

    def _present(self, node: int) -> Mapping[Present, int]:
        return self.problem.present.get(node, {})

    def _add_node(self, index: int, shapes: list[int]) -> None:
        node = self.problem.nodes[index]
        self.keeps[index] = {
            place: self.model.integer(0, count, f"keep:{node.name}:{place.shape}")
            for place, count in self._present(index).items()
        }
        self.slots[index] = {}
        gpus = node.healthy_gpus()
        for shape in shapes:
            shared = self.problem.shapes[shape].request.share is not None
            for gpu in gpus if shared else (NO_GPU,):
                self._add_slot(index, node, Slot(shape, gpu))
        self._add_host_rows(index, node)
        self._add_gpu_rows(index, node)

    def _add_slot(self, index: int, node: Node, slot: Slot) -> None:
        """Add a count of a shape; a node that may take no more of it can only keep what runs there."""
        shape = self.problem.shapes[slot.shape]
        kept = [v for place, v in self.keeps[index].items() if slot_of(self.problem, place) == slot]
        new = slot.shape in self.problem.hosted[self.problem.class_of[index]]
        most = min(shape.demand - self._outside_admitted[slot.shape], _capacity(shape, node))
        running = sum(c for p, c in self._present(index).items() if slot_of(self.problem, p) == slot)
        upper = max(0, most) if new else running
        if upper == 0 and not kept:
            return
        variable = self.model.integer(0, upper, f"x:{node.name}:{slot.shape}:{slot.gpu}")
        self.slots[index][slot] = variable
        self._terms[slot.shape].append((index, variable))
        stay = Linear(dict.fromkeys(kept, 1)).minus(Linear.of(variable))
        if kept:
            self.model.require(stay, upper=0, lower=None if new else 0)

    def _add_host_rows(self, index: int, node: Node) -> None:
        names = sorted({name for slot in self.slots[index] for name in self._request(slot).resources})
        capacities = {"cpu": node.cpu, "memory": node.memory, **{n: node.resources.get(n, 0) for n in names}}
        for name, capacity in capacities.items():
            amounts = {v: requested_of(self._request(slot), name) for slot, v in self.slots[index].items()}
            row = Linear({v: amount for v, amount in amounts.items() if amount})
            if self.model.range_of(row)[1] > capacity:
                self.model.require(row, upper=capacity)

    def _request(self, slot: Slot) -> Request:
        return self.problem.shapes[slot.shape].request

    def _add_gpu_rows(self, index: int, node: Node) -> None:
        """Whole-GPU replicas and shared GPUs fit the healthy GPUs; a shared GPU holds 1000 milli and its memory."""
        gpus = node.healthy_gpus()
        slots = self.slots[index]
        total = Linear({v: self._request(slot).gpus for slot, v in slots.items() if self._request(slot).gpus})
        for gpu in gpus:
            here = {slot: v for slot, v in slots.items() if slot.gpu == gpu}
            if not here:
                continue
            flag = self._add_shared_gpu(index, node, gpu, here)
            total.add_term(flag)
        if total.terms:
            self.model.require(total, upper=len(gpus))

    def _add_shared_gpu(self, index: int, node: Node, gpu: int, here: Mapping[Slot, int]) -> int:
        flag = self.model.boolean(f"shared:{node.name}:{gpu}")
        self.shared_flags.setdefault(index, {})[gpu] = flag
        load = Linear({v: self._request(slot).gpu_milli for slot, v in here.items()})
        self.model.require(load.minus(Linear.of(flag, MILLI)), upper=0)
        if any(share is not None and share.memory is not None for share in (self._request(s).share for s in here)):
            card = self.spec.accelerators[node.accelerator or ""].memory
            vram = Linear({v: share_memory(self._request(slot), card) for slot, v in here.items()})
            self.model.require(vram, upper=MILLI * card)
        blockers = [
            v for p, v in self.keeps[index].items() if gpu in p.gpus and self.problem.shapes[p.shape].request.gpus
        ]
        for blocker in blockers:
            self.model.require(Linear({flag: 1, blocker: 1}), upper=1)
        return flag

    @cached_property
    def shared_flags(self) -> dict[int, dict[int, int]]:
        """Per node and GPU index, the variable that is 1 where shares are on the GPU."""
        return {}

    # ------------------------------------------------------------------ shapes and workloads

    def _add_shapes(self) -> None:
        for shape in self.problem.shapes:
            expression = self.admitted_shape(shape.index)
            if self.model.range_of(expression)[1] > shape.demand:
                self.model.require(expression, upper=shape.demand)

    def _add_workloads(self) -> None:
        protected = Counter((r.workload, r.role) for r in self.context.today.protected)
        touched = [w for w in self.spec.workloads if w.id in self.problem.shapes_of_workload]
        for workload in touched:
            for role in workload.roles:
                if least := protected[workload.id, role.name]:
                    self.model.require(self._admitted_of(workload, role), lower=least)
                if not workload.movable:
                    self.model.require(self.moved_role(workload, role), upper=0)
            if workload.atomic or workload.min_replicas > 1:
                self._add_threshold(workload)
            if workload.atomic and workload.mix != "any":
                self._add_mix(workload)

    def _admitted_of(self, workload: Workload, role: Role) -> Linear:
        return self.admitted_shape(self.problem.shapes_of_role[workload.id, role.name])

    def _add_threshold(self, workload: Workload) -> None:
        """Admit nothing, or at least the least number of replicas; all of every role where atomic."""
        flag = self.model.boolean(f"admit:{workload.id}")
        total = self.admitted(workload)
        self.model.require(total.minus(Linear.of(flag, workload.replicas)), upper=0)
        self.model.require(total.minus(Linear.of(flag, workload.min_replicas)), lower=0)

    def _add_mix(self, workload: Workload) -> None:
        """Keep a gang, or each of its roles, on one accelerator (S2.4)."""
        gpu_roles = [role for role in workload.roles if role.request.gpu_count and role.replicas]
        groups = [[role] for role in gpu_roles] if workload.mix == "perRole" else [gpu_roles]
        for roles in groups:
            if roles:
                self._add_one_accelerator(workload, roles)

    def _add_one_accelerator(self, workload: Workload, roles: list[Role]) -> None:
        shapes = [self.problem.shapes_of_role[workload.id, role.name] for role in roles]
        counts: dict[str, Linear] = {}
        for shape in shapes:
            for node, variable in self._terms[shape]:
                model = self.problem.nodes[node].accelerator or ""
                counts.setdefault(model, Linear()).add_term(variable)
        for node, fill in self._outside.fills.items():
            if node not in self._free_set:
                held = sum(count for slot, count in fill.slots.items() if slot.shape in shapes)
                if held:
                    model = self.problem.nodes[node].accelerator or ""
                    counts.setdefault(model, Linear()).constant += held
        if len(counts) > 1:
            flags = [self.model.at_least_one(count) for _, count in sorted(counts.items())]
            self.model.require(Linear({flag.variable: 1 for flag in flags}), upper=1)

    def _add_symmetry(self) -> None:
        """Order the shared GPUs of a node, and the interchangeable nodes of the part, by load."""
        for index, flags in self.shared_flags.items():
            if not self._present(index):
                loads = [self._gpu_load(index, gpu) for gpu in sorted(flags)]
                self._descending(loads)
        for node_class in self.problem.classes:
            members = [n for n in node_class.nodes if n in self._free_set]
            if node_class.empty and len(members) > 1:
                self._descending([self.node_load(n) for n in members])

    def _descending(self, loads: list[Linear]) -> None:
        for heavy, light in pairwise(loads):
            self.model.require(heavy.minus(light), lower=0)

    def _gpu_load(self, index: int, gpu: int) -> Linear:
        slots = self.slots[index].items()
        return Linear({v: self._request(s).gpu_milli for s, v in slots if s.gpu == gpu})

    def node_load(self, index: int) -> Linear:
        """Return the requested milli-GPU on a node, or its milli-cores where it has no GPU."""
        gpu = bool(self.problem.nodes[index].gpus)
        return Linear(
            {v: self._request(s).gpu_milli if gpu else self._request(s).cpu for s, v in self.slots[index].items()}
        )

    # ------------------------------------------------------------------ policies

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

    # ------------------------------------------------------------------ what rules and tiers see

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
            for slot, variable in self.slots[index].items():
                if slot.shape in shapes and gpu in (None, slot.gpu):
                    total.add_term(variable)
        elif index in self._outside.fills:
            for slot, count in self._outside.fills[index].slots.items():
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
        total = Linear(constant=self._outside_admitted[shape])
        for _, variable in self._terms[shape]:
            total.add_term(variable)
        return total

    def admitted(self, workload: Workload) -> Linear:
        """Return how many replicas of a workload are admitted, in the part and outside."""
        return Linear.total(self.admitted_shape(shape) for shape in sorted(self._shapes_in([workload])))

    def worth(self, roles: Iterable[tuple[Workload, Role]]) -> Linear:
        """Return the value of the admitted replicas of some roles."""
        shapes = {self.problem.shapes_of_role[w.id, r.name] for w, r in roles if r.replicas}
        total = Linear()
        for shape in sorted(shapes):
            total.add(self.admitted_shape(shape), self.problem.shapes[shape].role.value)
        return total

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

    @cached_property
    def _retained(self) -> dict[int, Linear]:
        return {}

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

    @cached_property
    def _moved(self) -> dict[int, Linear]:
        return {}

    def _kept(self, shape: int) -> Linear:
        total = Linear()
        for node, fill in self._outside.fills.items():
            if node not in self._free_set:
                total.constant += sum(count for place, count in fill.kept.items() if place.shape == shape)
        for keeps in self.keeps.values():
            for place, variable in keeps.items():
                if place.shape == shape:
                    total.add_term(variable)
        return total

    def moved(self, workload: Workload) -> Linear:
        """Return how many replicas of a workload move."""
        return Linear.total(self.moved_role(workload, role) for role in workload.roles)

    def free_nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the part."""
        return tuple(self.problem.nodes[index] for index in self.free)

    def used(self, node: str) -> Literal | None:
        """Return a literal that is true where a node of the part hosts anything; None where it cannot."""
        held = Linear(dict.fromkeys(self.slots[self.problem.node_index[node]].values(), 1))
        return self.model.at_least_one(held) if held.terms else None

    def gpus_used(self, node: str) -> Linear:
        """Return how many GPUs of a node of the part are in use."""
        index = self.problem.node_index[node]
        total = Linear({v: self._request(s).gpus for s, v in self.slots[index].items() if self._request(s).gpus})
        for flag in self.shared_flags.get(index, {}).values():
            total.add_term(flag)
        return total

    # ------------------------------------------------------------------ solutions

    def fills(self, values: list[int]) -> dict[int, Fill]:
        """Return what the free nodes hold in a solution."""
        return {
            index: Fill(
                Counter({slot: values[v] for slot, v in self.slots[index].items() if values[v]}),
                Counter({place: values[v] for place, v in self.keeps[index].items() if values[v]}),
            )
            for index in self.free
        }

    def hint(self, state: State) -> dict[int, int]:
        """Return the values of counts and keeps in a state, to start a solver from."""
        values = {}
        for index in self.free:
            fill = state.fill(index)
            values.update({v: fill.slots[slot] for slot, v in self.slots[index].items()})
            values.update({v: fill.kept[place] for place, v in self.keeps[index].items()})
        return values


def _capacity(shape: Shape, node: Node) -> int:
    """Return how many replicas of a shape an empty node could take at most (a share: one GPU could)."""
    request = shape.request
    limits = [shape.demand]
    if request.cpu:
        limits.append(node.cpu // request.cpu)
    if request.memory:
        limits.append(node.memory // request.memory)
    if request.gpus:
        limits.append(len(node.healthy_gpus()) // request.gpus)
    if request.share:
        limits.append(MILLI // request.share.compute)
    limits += [node.resources.get(name, 0) // amount for name, amount in request.resources.items() if amount]
    return max(0, min(limits))
