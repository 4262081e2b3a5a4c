"""The variables and rows of the nodes of a part: counts per shape and node, per GPU for shares (S3.1, S3.5, S3.6).

Never one variable per replica: a count says how many replicas of a shape are on a node (a share: on one GPU of it),
a keep how many of those running at a place stay exactly there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from dovetail.linear import Linear, Model
from dovetail.model.clients import Pools
from dovetail.model.partitions import Gpu, Partitions
from dovetail.model.state import Fill, Slot, State, slot_of
from dovetail.placement import profiles_for
from dovetail.placement.clients import equal_parts, promised
from dovetail.placement.instances import share_memory
from dovetail.problem import Present, Problem, Shape
from dovetail.rules.quota import requested_of
from dovetail.spec import Node, Request
from dovetail.spec.inside import Mask, holds, mask_of
from dovetail.spec.workload import MILLI


@dataclass(slots=True)
class Variables:
    """What the free nodes may hold.

    Parameters
    ----------
    taken : replicas per shape that are fixed outside the free nodes.
    slots, keeps : variables per node index; `shared` those that are 1 where shares are on a GPU, by GPU index.
    partitions : the same of GPUs with MIG instances in use.
    pools : what GPUs are set to that are shared by equal parts.
    of_shape : node index and variable of every count, per shape.
    profiles : the profile of every count of instances.
    """

    problem: Problem
    model: Model
    taken: Counter[int]
    slots: dict[int, dict[Slot, int]] = field(default_factory=dict)
    keeps: dict[int, dict[Present, int]] = field(default_factory=dict)
    shared: dict[int, dict[int, int]] = field(default_factory=dict)
    of_shape: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    profiles: dict[int, str] = field(default_factory=dict)
    partitions: Partitions = field(init=False)
    pools: Pools = field(init=False)

    def __post_init__(self) -> None:
        """Start with no GPU cut, and none shared."""
        self.partitions = Partitions(self.problem, self.model)
        self.pools = Pools(self.problem, self.model)

    @property
    def flags(self) -> Mapping[int, Mapping[int, Mapping[str, int]]]:
        """Per node index and GPU that parts may be taken of, the flags that tell whether they are, by mode."""
        found: dict[int, dict[int, dict[str, int]]] = {}
        for mode, flags in (("shared", self.shared), ("mig", self.partitions.flags)):
            for index, gpus in flags.items():
                for gpu, flag in gpus.items():
                    found.setdefault(index, {}).setdefault(gpu, {})[mode] = flag
        return found

    def request(self, slot: Slot) -> Request:
        """Return what each replica in a slot asks for."""
        return self.problem.shapes[slot.shape].request

    def present(self, node: int) -> Mapping[Present, int]:
        """Return what runs on a node today."""
        return self.problem.present.get(node, {})

    def add_node(self, index: int, state: State) -> None:
        """Add a free node: what it may take anew, if any is left, and what is there already."""
        node = self.problem.nodes[index]
        self.keeps[index] = {
            place: self.model.integer(0, count, f"keep:{node.name}:{place.shape}")
            for place, count in self.present(index).items()
        }
        self.slots[index] = {}
        new = self._newcomers(index)
        for shape in self._candidates(index, state, new):
            for slot in self._slots_of(index, node, shape, state):
                self._add_slot(index, node, slot, new)
        self._add_host_rows(index, node)
        self._add_gpu_rows(index, node)

    def _slots_of(self, index: int, node: Node, shape: int, state: State) -> list[Slot]:
        """Return where replicas of a shape may be on a node, with what is there already."""
        request = self.problem.shapes[shape].request
        if not request.partial:
            found = {Slot(shape, block=block) for block in self.problem.blocks(shape, node)}
            found |= {slot_of(self.problem, index, place) for place in self.present(index) if place.shape == shape}
            return sorted(found)
        found = {Slot(shape, gpu, mode) for gpu in node.healthy_gpus() for mode in self.problem.modes(shape, node)}
        card = self.problem.spec.accelerators.get(node.accelerator or "")
        able = {profile.name for profile in profiles_for(request, card)}
        for gpu, layout in self.problem.layouts[index].items():
            if gpu in node.healthy_gpus():
                found |= {Slot(shape, gpu, instance.profile) for instance in layout if instance.profile in able}
        found |= {slot for slot in state.fill(index).slots if slot.shape == shape}
        return sorted(found)

    def _candidates(self, index: int, state: State, new: Collection[int]) -> list[int]:
        inside = {slot.shape for slot in state.fill(index).slots} | {place.shape for place in self.present(index)}
        waiting = {shape for shape in new if self.taken[shape] < self.problem.shapes[shape].demand}
        return sorted(inside | waiting)

    def _newcomers(self, index: int) -> frozenset[int]:
        """Return the shapes that a node may newly take: of those that are bound nobody comes."""
        hosted = self.problem.hosted[self.problem.class_of[index]]
        return frozenset(hosted) - self.problem.bound

    def _add_slot(self, index: int, node: Node, slot: Slot, new: Collection[int]) -> None:
        """Add a count of a shape; a node that may take no more of it can only keep what runs there."""
        shape = self.problem.shapes[slot.shape]
        here = {p: count for p, count in self.present(index).items() if slot_of(self.problem, index, p) == slot}
        may_take = slot.shape in new and self._is_open(slot, node)
        room = capacity(shape, node, slot.block)
        most = min(shape.demand - self.taken[slot.shape], room) if may_take else sum(here.values())
        if slot.profile and (geometry := self.problem.geometry(node)) is not None:
            most = min(most, geometry.by_name[slot.profile].maximum)
        if most <= 0 and not here:
            return
        variable = self.model.integer(0, max(0, most), f"x:{node.name}:{slot.shape}:{slot.gpu}{_on(slot)}")
        self.slots[index][slot] = variable
        self.of_shape.setdefault(slot.shape, []).append((index, variable))
        if slot.profile:
            self.profiles[variable] = slot.profile
        if here:
            stay = Linear(dict.fromkeys((self.keeps[index][place] for place in here), 1))
            self.model.require(stay.minus(Linear.of(variable)), lower=None if may_take else 0, upper=0)

    def _is_open(self, slot: Slot, node: Node) -> bool:
        """Tell whether a slot may be taken anew: what today is across several islands may only stay there."""
        return slot.gpu >= 0 or slot.block in self.problem.blocks(slot.shape, node)

    def _add_host_rows(self, index: int, node: Node) -> None:
        names = sorted({name for slot in self.slots[index] for name in self.request(slot).resources})
        capacities = {"cpu": node.cpu, "memory": node.memory, **{n: node.resources.get(n, 0) for n in names}}
        for name, limit in capacities.items():
            amounts = {v: requested_of(self.request(slot), name) for slot, v in self.slots[index].items()}
            row = Linear({v: amount for v, amount in amounts.items() if amount})
            if self.model.range_of(row)[1] > limit:
                self.model.require(row, upper=limit)

    def _add_gpu_rows(self, index: int, node: Node) -> None:
        """Let whole-GPU replicas and shared GPUs fit the healthy GPUs, and shares their GPU."""
        slots = self.slots[index]
        total = Linear({v: self.request(slot).gpus for slot, v in slots.items() if self.request(slot).gpus})
        whole, cut, uncut = Linear(total.terms), list[Gpu](), dict[int, Mapping[Slot, int]]()
        for gpu in node.healthy_gpus():
            here = {slot: v for slot, v in slots.items() if slot.gpu == gpu}
            shares = {slot: v for slot, v in here.items() if not slot.profile}
            flags = [self._add_shared_gpu(index, node, gpu, shares)] if shares else []
            uncut |= {gpu: shares} if shares else {}
            if len(shares) < len(here):
                parts = {slot: v for slot, v in here.items() if slot.profile}
                cut.append(self.partitions.add_gpu(index, node, gpu, parts, self.keeps[index]))
                flags.append(cut[-1].flag)
            if len(flags) > 1:
                self.model.require(Linear(dict.fromkeys(flags, 1)), upper=1)
            total.add(Linear(dict.fromkeys(flags, 1)))
        blocks = self._add_block_rows(index, node)
        self.partitions.add_changes(index, cut, self.shared.get(index, {}), self.keeps[index], {0: whole, **blocks})
        if equal_parts(node):
            self.pools.add_node(index, node, uncut, self.keeps[index], whole)
        if total.terms:
            self.model.require(total, upper=len(node.healthy_gpus()))

    def _add_block_rows(self, index: int, node: Node) -> Mapping[Mask, Linear]:
        """Let what keeps within an island or a socket fit there, beside what is on GPUs of it for other reasons.

        Of any two such sets one holds the other or they have nothing in common, so totals per set are enough: what
        keeps within the smaller ones is placed first. Returns the GPUs of whole ones per set.
        """
        found: dict[Mask, Linear] = {}
        flags = [(gpu, flag) for gpu, by_mode in self.flags.get(index, {}).items() for flag in by_mode.values()]
        for block in sorted({slot.block for slot in self.slots[index]} - {0}):
            inside = {s: v for s, v in self.slots[index].items() if s.block and holds(block, s.block)}
            total = Linear({v: self.request(slot).gpus for slot, v in inside.items()})
            for place, keep in self.keeps[index].items():
                if (
                    self.problem.shapes[place.shape].request.gpus
                    and slot_of(self.problem, index, place) not in inside
                ):
                    total.add_term(keep, (mask_of(place.gpus) & block).bit_count())
            found[block] = Linear(total.terms)
            for gpu, flag in flags:
                total.add_term(flag, block >> gpu & 1)
            if self.model.range_of(total)[1] > (room := (block & node.healthy).bit_count()):
                self.model.require(total, upper=room)
        return found

    def _add_shared_gpu(self, index: int, node: Node, gpu: int, here: Mapping[Slot, int]) -> int:
        flag = self.model.boolean(f"shared:{node.name}:{gpu}")
        self.shared.setdefault(index, {})[gpu] = flag
        asked = {slot: self.problem.request(slot.shape, node) for slot in here}
        if (most := promised(node)) > MILLI:
            clients = Linear(dict.fromkeys(here.values(), 1))
            self.model.require(clients.minus(Linear.of(flag, most)), upper=0)
        else:
            load = Linear({v: asked[slot].gpu_milli for slot, v in here.items()})
            self.model.require(load.minus(Linear.of(flag, MILLI)), upper=0)
        if any(request.share is not None and request.share.memory is not None for request in asked.values()):
            card = self.problem.spec.accelerators[node.accelerator or ""].memory
            vram = Linear({v: share_memory(asked[slot], card) for slot, v in here.items()})
            self.model.require(vram, upper=MILLI * card)
        for place, keep in self.keeps[index].items():
            if gpu in place.gpus and self.problem.shapes[place.shape].request.gpus:
                self.model.require(Linear({flag: 1, keep: 1}), upper=1)
        return flag

    def gpu_load(self, index: int, gpu: int) -> Linear:
        """Return the milli-GPU of what takes parts of a GPU."""
        return Linear({v: self.request(slot).gpu_milli for slot, v in self.slots[index].items() if slot.gpu == gpu})

    def node_load(self, index: int) -> Linear:
        """Return the requested milli-GPU on a node, or its milli-cores where it has no GPU."""
        slots = self.slots[index].items()
        if self.problem.nodes[index].gpus:
            return Linear({v: self.request(slot).gpu_milli for slot, v in slots})
        return Linear({v: self.request(slot).cpu for slot, v in slots})

    def twins(self) -> list[list[int]]:
        """Return the interchangeable empty nodes among the free ones, ascending, class by class."""
        found: dict[int, list[int]] = {}
        for index in self.slots:
            if self.problem.classes[self.problem.class_of[index]].empty:
                found.setdefault(self.problem.class_of[index], []).append(index)
        return [found[position] for position in sorted(found)]

    def fills(self, values: list[int]) -> dict[int, Fill]:
        """Return what the free nodes hold in a solution."""
        return {
            index: Fill(
                Counter({slot: values[v] for slot, v in slots.items() if values[v]}),
                Counter({place: values[v] for place, v in self.keeps[index].items() if values[v]}),
            )
            for index, slots in self.slots.items()
        }

    def hint(self, state: State) -> dict[int, int]:
        """Return the values of counts, keeps and flags in a state, to start a solver from.

        Nodes and GPUs that may swap what they hold do so, into the order by load that the model asks for.
        """
        values = {}
        for index, fill in self._by_load(state).items():
            values.update({v: fill.slots[slot] for slot, v in self.slots[index].items()})
            values.update({v: fill.kept[place] for place, v in self.keeps[index].items()})
            used = {(slot.gpu, bool(slot.profile)) for slot, count in fill.slots.items() if count}
            values.update({flag: int((gpu, False) in used) for gpu, flag in self.shared.get(index, {}).items()})
            values.update({f: int((gpu, True) in used) for gpu, f in self.partitions.flags.get(index, {}).items()})
            values.update(self.pools.hint(index, fill))
        return values

    def gpus_alike(self, index: int) -> list[int]:
        """Return the GPUs of a node that parts may be taken of, where they may swap what they hold, else none."""
        if self.present(index) or self.problem.layouts[index] or any(slot.block for slot in self.slots[index]):
            return []
        node = self.problem.nodes[index]
        if self.problem.spec.asked_inside and (node.islands or node.sockets):
            return []
        return sorted({*self.shared.get(index, ()), *self.partitions.flags.get(index, ())})

    def _by_load(self, state: State) -> dict[int, Fill]:
        """Return what the free nodes hold, the fuller first among interchangeable nodes and among a node's GPUs."""
        found = {index: self._gpus_by_load(index, state.fill(index)) for index in self.slots}
        for members in self.twins():
            fills = [found[index] for index in members]
            fills.sort(key=lambda fill: -self._load(members[0], fill.slots))
            found.update(zip(members, fills, strict=True))
        return found

    def _gpus_by_load(self, index: int, fill: Fill) -> Fill:
        alike = self.gpus_alike(index)
        if not alike:
            return fill
        loads = {
            gpu: sum(count * self.request(slot).gpu_milli for slot, count in fill.slots.items() if slot.gpu == gpu)
            for gpu in alike
        }
        order = sorted(loads, key=lambda gpu: (-loads[gpu], gpu))
        rename = dict(zip(order, sorted(loads), strict=True))
        slots = {slot._replace(gpu=rename.get(slot.gpu, slot.gpu)): count for slot, count in fill.slots.items()}
        return Fill(Counter(slots), fill.kept)

    def _load(self, index: int, slots: Mapping[Slot, int]) -> int:
        """Return the load of a node that `node_load` is the expression of."""
        gpus = self.problem.nodes[index].gpus
        requests = ((self.request(slot), count) for slot, count in slots.items())
        return sum(count * (request.gpu_milli if gpus else request.cpu) for request, count in requests)


def _on(slot: Slot) -> str:
    """Return what tells the variables of a shape's replicas in different parts of a node apart."""
    return f":{slot.block}" if slot.block else ""


def capacity(shape: Shape, node: Node, block: Mask = 0) -> int:
    """Return how many replicas of a shape an empty node could take at most (a share: one GPU of it), in a block."""
    request = shape.request
    limits = [shape.demand]
    if request.cpu:
        limits.append(node.cpu // request.cpu)
    if request.memory:
        limits.append(node.memory // request.memory)
    if request.gpus:
        healthy = (block & node.healthy).bit_count() if block else len(node.healthy_gpus())
        limits.append(healthy // request.gpus)
    if request.share:
        limits.append(promised(node) // shape.on(node.accelerator).gpu_milli)
    if request.mig:
        limits.append(MILLI)  # a profile says itself how many of it there may be
    limits += [node.resources.get(name, 0) // amount for name, amount in request.resources.items() if amount]
    return max(0, min(limits))
