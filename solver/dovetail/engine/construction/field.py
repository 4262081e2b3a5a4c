"""Free capacity of all nodes as arrays, for constructions that add replicas step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from dovetail.engine.construction.blocks import Blocks
from dovetail.engine.construction.crowds import Crowds
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.gates import Gates, closing_of, guards_of
from dovetail.engine.construction.instances import Cuts
from dovetail.engine.construction.served import Rates
from dovetail.model.seats import has_blocks, whole_gpus
from dovetail.model.state import NO_GPU, Fill, Slot, State, settled
from dovetail.placement.instances import share_memory
from dovetail.problem import Problem, Shape
from dovetail.rules import Guard
from dovetail.spec.workload import MILLI


class Field:
    """Free capacity of all nodes as arrays, and the contents so far.

    `gpus` and `vram` have one column per GPU index; a GPU that does not exist or has failed shows -1. A whole GPU
    that is taken shows in `gpus` alone. `untouched` counts the GPUs that hold nothing, `partly` tells where some hold
    shares. A GPU that is cut into MIG instances shows no room; `cuts` knows what else it could hold. `crowds` are the
    clients of GPUs that are shared by equal parts; where a node shares them so, none of them counts as untouched.
    `touched` is the `turn` at which a node changed last; `stale` nodes have changed since it was emptied.
    """

    def __init__(self, problem: Problem, state: State, aside: Collection[str] = ()) -> None:
        self.problem = problem
        nodes = problem.nodes
        width = max([node.gpus for node in nodes], default=0)
        self.cpu = np.array([node.cpu for node in nodes], dtype=np.int64)
        self.memory = np.array([node.memory for node in nodes], dtype=np.int64)
        names = sorted({name for shape in problem.shapes for name in shape.request.resources})
        self.resources = {n: np.array([node.resources.get(n, 0) for node in nodes], dtype=np.int64) for n in names}
        self.gpus = np.full((len(nodes), width), -1, dtype=np.int64)
        self.vram = np.full((len(nodes), width), -1, dtype=np.int64)
        self.card = np.array([problem.card(node) for node in nodes], dtype=np.int64)
        for index, node in enumerate(nodes):
            if node.failed_gpus:
                healthy = list(node.healthy_gpus())
                self.gpus[index, healthy], self.vram[index, healthy] = MILLI, MILLI * self.card[index]
            else:
                self.gpus[index, : node.gpus], self.vram[index, : node.gpus] = MILLI, MILLI * self.card[index]
        self.blocks = Blocks(nodes, width)
        self._makes = np.array(problem.makes.of, dtype=np.int64)
        self._hosts: dict[tuple[frozenset[int], tuple[str, ...]], Bools] = {}
        self._hosts_of: dict[int, Bools] = {}
        self._milli: dict[int, Ints] = {}
        self.partial = [shape.request.partial for shape in problem.shapes]
        self._closing = closing_of(problem)
        self.fills: dict[int, Fill] = {}
        self._changed: set[int] = set()  # nodes whose contents are no longer those of the state
        self._slots: dict[tuple[int, int, str], Slot] = {}  # making one anew takes longer
        self.admitted: Counter[int] = Counter()
        self.rates = Rates(problem)
        self.guards = guards_of(problem, aside)
        self.gates = Gates(problem, self.guards)
        self._settled = settled(problem, state)
        self.turn = 1
        self.touched = np.zeros(len(nodes), dtype=np.int32)
        self.stale: set[int] = set()
        self.cuts = Cuts(problem, state)
        self.crowds = Crowds(problem, self.gpus)
        self._adopt(state)
        self.untouched = (self.gpus == MILLI).sum(axis=1)
        for index in self.crowds.nodes():
            self.untouched[index] = self.crowds.untouched(index)
        self.partly: Bools = np.asarray(((self.gpus > 0) & (self.gpus < MILLI)).any(axis=1))

    def hosts_key(self, shape: Shape) -> tuple[frozenset[int], tuple[str, ...]]:
        """Return what decides which nodes may newly take a shape, whatever room they have left."""
        closing = tuple(name for name, (ids, _) in self._closing.items() if shape.workload.id in ids)
        return self.problem.makes_for(shape), closing

    def hosts(self, shape: Shape) -> Bools:
        """Return the nodes that may newly take a shape; those that hard policies close to it are not among them."""
        if shape.index not in self._hosts_of:
            key = self.hosts_key(shape)
            if key not in self._hosts:
                mask = np.isin(self._makes, sorted(key[0]))
                for name in key[1]:
                    mask[self._closing[name][1]] = False
                self._hosts[key] = mask
            self._hosts_of[shape.index] = self._hosts[key]
        return self._hosts_of[shape.index]

    def wanted(self, shape: int) -> int:
        """Return how many more replicas of a shape may join.

        Where some that may not move were evicted, none may: nothing tells who would come back, and where.
        """
        if shape in self._settled:
            return 0
        waiting = self.problem.shapes[shape].demand - self.admitted[shape]
        return min(waiting, self.rates.wanted(shape, self.admitted[shape])) if shape in self.rates.asked else waiting

    def _adopt(self, state: State) -> None:
        """Take over what a state holds, all at once; whole-GPU replicas that stay keep their GPU indices."""
        taken: list[tuple[int, int, int]] = []  # node, shape, count
        shares: list[tuple[int, int, int, int]] = []  # node, GPU, shape, count
        pinned: list[tuple[int, int]] = []  # node, GPU
        free = np.zeros(len(self.problem.nodes), dtype=np.int64)  # GPUs that are taken whole, whichever they are
        for index, fill in state.fills.items():
            self.fills[index] = fill
            for slot, count in fill.slots.items():
                taken.append((index, slot.shape, count))
                self._count(index, slot, count)
                if slot.profile:
                    pinned.append((index, slot.gpu))
                elif slot.gpu != NO_GPU:
                    shares.append((index, slot.gpu, slot.shape, count))
                elif not has_blocks(fill):
                    free[index] += count * self.problem.shapes[slot.shape].request.gpus
            for place, count in fill.kept.items():
                if self.problem.shapes[place.shape].request.gpus:
                    pinned += [(index, gpu) for gpu in place.gpus]
                    free[index] -= 0 if has_blocks(fill) else count * len(place.gpus)
            if has_blocks(fill):
                pinned += [(index, gpu) for _, gpus in whole_gpus(self.problem, index, fill)[0] for gpu in gpus]
        pinned += [(index, gpu) for index, gpu in np.argwhere(self.cuts.closed).tolist()]
        self._take_hosts(taken)
        self._take_gpus(shares, pinned, free)
        self.crowds.adopt(state, shares)

    def _take_hosts(self, taken: list[tuple[int, int, int]]) -> None:
        if not taken:
            return
        nodes, shapes, counts = np.array(taken, dtype=np.int64).T
        requests = [shape.request for shape in self.problem.shapes]
        np.subtract.at(self.cpu, nodes, counts * np.array([r.cpu for r in requests], dtype=np.int64)[shapes])
        np.subtract.at(self.memory, nodes, counts * np.array([r.memory for r in requests], dtype=np.int64)[shapes])
        for name, left in self.resources.items():
            asked = np.array([r.resources.get(name, 0) for r in requests], dtype=np.int64)
            np.subtract.at(left, nodes, counts * asked[shapes])

    def _take_gpus(self, shares: list[tuple[int, int, int, int]], pinned: list[tuple[int, int]], free: Ints) -> None:
        for index, gpu, shape, count in shares:
            request = self.problem.request(shape, self.problem.nodes[index])
            self.gpus[index, gpu] -= count * request.gpu_milli
            self.vram[index, gpu] -= count * share_memory(request, int(self.card[index]))
        if pinned:
            nodes, gpus = np.array(pinned, dtype=np.int64).T
            self.gpus[nodes, gpus] = 0
        open_gpus = self.gpus == MILLI
        whole = open_gpus & (np.cumsum(open_gpus, axis=1) <= free[:, None])
        self.gpus[whole] = 0

    def _count(self, index: int, slot: Slot, count: int) -> None:
        """Enter replicas in the accounts of demand and rules."""
        shape = slot.shape
        self.admitted[shape] += count
        member, node = self.problem.shapes[shape].members[0], self.problem.nodes[index]
        if shape in self.rates.asked:
            self.rates.count(node, slot, count)
        workload, role, seen = member.workload, member.role, None if slot.gpu == NO_GPU else slot.gpu
        for guard in self.gates.guards(shape):
            guard.add(workload, role, node, seen, count)

    def _put(
        self, index: int, shape: int, gpus: tuple[int, ...], count: int, again: str | None = None, like: str = ""
    ) -> str:
        """Add replicas, `gpus` being those of all of them together; a negative count takes them off.

        Returns the profile of the instance, if any: `again` where that is known, `like` where there is room for that.
        """
        request = self.problem.shapes[shape].request
        self.turn += 1
        self.touched[index] = self.turn
        self.stale.add(index)
        self.cpu[index] -= count * request.cpu
        self.memory[index] -= count * request.memory
        for name, amount in request.resources.items():
            self.resources[name][index] -= count * amount
        profile = ""
        partial = self.partial[shape]
        if partial:
            profile = self._put_part(index, shape, gpus[0], count, again, like)
        elif gpus:
            self.gpus[index, list(gpus)] = 0 if count > 0 else MILLI
            self.untouched[index] -= count * request.gpus
        if gpus and self.crowds.parted[index]:
            if not profile:
                self.crowds.enter(index, shape, gpus, count)
            self.untouched[index] = self.crowds.untouched(index)
        slot = self._slot(shape, gpus[0] if partial else NO_GPU, profile)
        self._enter(index, slot, gpus, count)
        self._count(index, slot, count)
        return profile

    def _slot(self, shape: int, gpu: int, profile: str) -> Slot:
        key = shape, gpu, profile
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = Slot(shape, gpu, profile)
        return found

    def changing(self, index: int) -> Fill:
        """Return the contents of a node to be changed."""
        if index not in self._changed:
            self._changed.add(index)
            self.fills[index] = self.fills[index].copy() if index in self.fills else Fill()
        return self.fills[index]

    def _enter(self, index: int, slot: Slot, gpus: tuple[int, ...], count: int) -> None:
        """Enter replicas in the contents of a node, those of whole GPUs by the island or socket that has them."""
        fill = self.changing(index)
        each = self.problem.shapes[slot.shape].request.gpus
        if not each or not self.blocks.matter(index):
            fill.slots[slot] += count
            return
        for start in range(0, len(gpus), each):
            block = self.problem.set_of(index, slot.shape, gpus[start : start + each])
            fill.slots[slot._replace(block=block)] += 1 if count > 0 else -1

    def _put_part(self, index: int, shape: int, gpu: int, count: int, again: str | None, like: str) -> str:
        """Add a replica that takes part of a GPU, or take one off; return the profile of its instance, if any."""
        form = self.problem.shapes[shape]
        untouched = bool(self.gpus[index, gpu] == MILLI)
        if like and self.cuts.profile(index, gpu, form, untouched=untouched, like=like) == like:
            again = like
        shared = again == "" if again is not None else count > 0 and self.share_fits(index, form, gpu)
        if shared or not form.request.may_use_mig:
            self._put_share(index, shape, gpu, count)
            return ""
        if count > 0:
            profile = again or self.cuts.profile(index, gpu, form, untouched=untouched)
            if profile is None:
                raise AssertionError("a replica is put on a GPU that has no instance for it")
            self.cuts.put(index, gpu, shape, profile)
            self.untouched[index] -= untouched
            self.gpus[index, gpu] = 0
            return profile
        taken = self.cuts.undo(index, gpu, shape, again)
        if taken is None:
            self._put_share(index, shape, gpu, count)
            return ""
        if not self.cuts.held(index, gpu) and not self.cuts.closed[index, gpu]:
            self.gpus[index, gpu] = MILLI
            self.untouched[index] += 1
        return taken

    def share_fits(self, index: int, shape: Shape, gpu: int) -> bool:
        """Tell whether a GPU that is not cut has room for a share beside others."""
        if shape.request.share is None or "" not in self.problem.modes(shape.index, self.problem.nodes[index]):
            return False
        if self.crowds.parted[index]:
            return self.crowds.fits(index, shape, gpu)
        request = shape.on(self.problem.nodes[index].accelerator)
        vram = share_memory(request, int(self.card[index]))
        return bool(self.gpus[index, gpu] >= request.gpu_milli and self.vram[index, gpu] >= vram)

    def _put_share(self, index: int, shape: int, gpu: int, count: int) -> None:
        request = self.problem.request(shape, self.problem.nodes[index])
        row = self.gpus[index]
        self.untouched[index] -= row[gpu] == MILLI
        row[gpu] -= count * request.gpu_milli
        self.vram[index, gpu] -= count * share_memory(request, int(self.card[index]))
        self.untouched[index] += row[gpu] == MILLI
        self.partly[index] = any(0 < left < MILLI for left in row.tolist())

    def put(self, index: int, shape: int, gpus: tuple[int, ...], count: int = 1, like: str = "") -> None:
        """Add replicas on given GPUs, those of all of them together; shares one at a time.

        One is on an instance `like` a profile where there is room for that.
        """
        self._put(index, shape, gpus, count, like=like)

    def undo(self, index: int, shape: int, gpus: tuple[int, ...], profile: str | None = None) -> str:
        """Take a replica off again; return the profile of its instance, which may be told: empty without one."""
        return self._put(index, shape, gpus, -1, profile)

    def put_back(self, index: int, shape: int, gpus: tuple[int, ...], profile: str) -> None:
        """Put back as it was what was taken off, though rules or modes may let nothing come there anew."""
        self._put(index, shape, gpus, 1, profile)

    def blocked(self, index: int, shape: int, gpu: int | None) -> bool:
        """Tell whether a hard rule keeps a replica off a place."""
        return self._blocked(self.gates.guards(shape), index, shape, gpu)

    def turned_away(self, index: int, shape: int, gpu: int | None) -> bool:
        """Tell the same of a place that masks left open, with no other shape placed since."""
        return self._blocked(self.gates.strict(shape), index, shape, gpu)

    def _blocked(self, guards: tuple[Guard, ...], index: int, shape: int, gpu: int | None) -> bool:
        if not guards:
            return False
        member, node = self.problem.shapes[shape].members[0], self.problem.nodes[index]
        return any(guard.blocks(member.workload, member.role, node, gpu) for guard in guards)

    def room_in_all(self, shape: int) -> int:
        """Return how many more replicas may join as far as that is plain without a place."""
        return self.gates.most(shape, self.wanted(shape))

    def may_return(self, shape: int) -> bool:
        """Tell the same of one that goes back to its place of today, also where nobody else may join."""
        return self.gates.most(shape, self.problem.shapes[shape].demand - self.admitted[shape]) > 0

    def fits_host(self, shape: Shape, nodes: Ints) -> Bools:
        """Tell for some nodes whether CPU, memory and resources are left for a replica."""
        request = shape.request
        mask = (self.cpu[nodes] >= request.cpu) & (self.memory[nodes] >= request.memory)
        for name, amount in request.resources.items():
            mask &= self.resources[name][nodes] >= amount
        return np.asarray(mask)

    def host_fits(self, shape: Shape, node: int) -> bool:
        """Tell for one node whether CPU, memory and resources are left for a replica."""
        request = shape.request
        if self.cpu[node] < request.cpu or self.memory[node] < request.memory:
            return False
        return all(self.resources[name][node] >= amount for name, amount in request.resources.items())

    def share_milli(self, shape: Shape, nodes: Ints) -> Ints:
        """Return the milli-GPU that a share takes on each of some nodes; one entry where that is all the same."""
        if not shape.varies:
            return np.array([shape.request.gpu_milli], dtype=np.int64)
        if shape.index not in self._milli:
            known = {name: shape.on(name).gpu_milli for name in {node.accelerator for node in self.problem.nodes}}
            taken = [known[node.accelerator] for node in self.problem.nodes]
            self._milli[shape.index] = np.array(taken, dtype=np.int64)
        return np.asarray(self._milli[shape.index][nodes])

    def share_memory(self, shape: Shape, nodes: Ints) -> Ints:
        """Return the GPU memory that a share takes on each of some nodes, in thousandths of a MiB."""
        share = shape.request.share
        if share is None or share.memory is not None:
            return np.full(len(nodes), share_memory(shape.request, 0))
        return np.asarray(self.share_milli(shape, nodes) * self.card[nodes])

    def whole_room(self, shape: Shape, nodes: Ints) -> Ints:
        """Return for some nodes how many replicas of whole GPUs their untouched GPUs have room for."""
        request = shape.request
        if not self.blocks.any(request.inside):
            return np.asarray(self.untouched[nodes] // request.gpus)
        return self.blocks.room(request.inside, request.gpus, self.gpus[nodes] == MILLI, nodes)

    def whole_gpus(self, index: int, shape: Shape, count: int = 1) -> tuple[int, ...]:
        """Return untouched GPUs of a node for replicas of whole ones, those of each together; fewer where too few."""
        free = [gpu for gpu, left in enumerate(self.gpus[index].tolist()) if left == MILLI]
        if not self.blocks.matter(index):
            return tuple(free[: count * shape.request.gpus])
        return self.blocks.choose(self.problem.nodes[index], shape.request, free, count)

    def places_on(self, index: int, shape: Shape, gpus: tuple[int, ...], most: int) -> list[tuple[int, ...]]:
        """Return the GPUs of each of at most so many more replicas that a node has room for on some of its GPUs.

        Rules that look at places are not asked.
        """
        request = shape.request
        most = min(most, self.room_in_all(shape.index), self._on_host(index, shape))
        if most <= 0 or not self.hosts(shape)[index]:
            return []
        if request.may_use_mig or (gpus and (self.crowds.parted[index] or self.blocks.matter(index))):
            chosen = gpus[: request.gpu_count]
            return [chosen] if self.room_on(index, shape, chosen) else []
        if request.share is not None:
            free, vram = int(self.gpus[index, gpus[0]]), int(self.vram[index, gpus[0]])
            own = shape.on(self.problem.nodes[index].accelerator)
            memory = share_memory(own, int(self.card[index]))
            return [gpus] * min(most, free // own.gpu_milli, vram // memory if memory else most)
        each, row = request.gpus, self.gpus[index].tolist()
        idle = [gpu for gpu in gpus if row[gpu] == MILLI]
        most = min(most, len(idle) // each) if each else most
        return [tuple(idle[i * each : (i + 1) * each]) for i in range(most)]

    def _on_host(self, index: int, shape: Shape) -> int:
        """Return for how many replicas CPU, memory and resources of a node are left."""
        request = shape.request
        left = [(int(self.cpu[index]), request.cpu), (int(self.memory[index]), request.memory)]
        left += [(int(self.resources[name][index]), amount) for name, amount in request.resources.items()]
        return min((free // asked for free, asked in left if asked), default=shape.demand)

    def room_on(self, index: int, shape: Shape, gpus: tuple[int, ...]) -> bool:
        """Tell whether a node, on given GPUs, has room for a replica."""
        fits = self.hosts(shape)[index] and self.host_fits(shape, index)
        sound = len(set(gpus)) == len(gpus) == shape.request.gpu_count
        if not fits or not sound or not all(0 <= gpu < self.gpus.shape[1] for gpu in gpus):
            return False
        if not shape.request.partial:
            together = not gpus or self.problem.block_of(index, shape.index, gpus) is not None
            free = all(self.gpus[index, gpu] == MILLI and self.crowds.lets_whole(index, gpu) for gpu in gpus)
            return together and free
        if self.share_fits(index, shape, gpus[0]):
            return True
        untouched = bool(self.gpus[index, gpus[0]] == MILLI)
        return self.cuts.profile(index, gpus[0], shape, untouched=untouched) is not None

    def state(self) -> State:
        """Return the contents so far, those of nodes that did not change as they were."""
        fills = dict(sorted(self.fills.items()))
        for index in self._changed:
            fills[index] = Fill(+fills[index].slots, +fills[index].kept)
        return State({index: fill for index, fill in fills.items() if fill.slots})
