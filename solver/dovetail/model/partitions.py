"""Rows of GPUs that are or may be cut into MIG instances (S3.3, S5.4).

Instances that nothing pins can be counted: a GPU holds them where compute slices, memory slices, maxima and engines
suffice, and starts are given out afterwards. Today's layout comes in by what changing it restarts:

- `gpu`, `node`: a GPU, or its node, is left alone or cut anew. Left alone it offers today's instances, whatever their
  starts; cut anew nobody stays in place on it.
- `instance`: what stays is pinned to its start, so that new instances need starts of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from dovetail.linear import Linear, Model
from dovetail.mig import Geometry, Instance, affordable, fits, parse_instance
from dovetail.model.state import Slot
from dovetail.problem import Present, Problem
from dovetail.spec import Layout, Node
from dovetail.spec.inside import Mask


class Gpu(NamedTuple):
    """One GPU of a node, what it may hold by profile, and the flag that is 1 where it does."""

    number: int
    layout: Layout | None
    held: Mapping[str, Linear]
    flag: int


@dataclass(slots=True)
class Partitions:
    """The cut GPUs of the nodes of a part.

    Parameters
    ----------
    flags : per node index and GPU, the variable that is 1 where instances of it are in use.
    """

    problem: Problem
    model: Model
    flags: dict[int, dict[int, int]] = field(default_factory=dict)

    def add_gpu(
        self, index: int, node: Node, gpu: int, here: Mapping[Slot, int], keeps: Mapping[Present, int]
    ) -> Gpu:
        """Add the rows of one GPU; `here` are the counts of what may be on instances of it."""
        geometry = self.problem.geometry(node)
        if geometry is None:
            raise AssertionError("a GPU that cannot be cut has no instances")
        flag = self.model.boolean(f"cut:{node.name}:{gpu}")
        self.flags.setdefault(index, {})[gpu] = flag
        counts: dict[str, Linear] = {}
        for slot, variable in here.items():
            counts.setdefault(slot.profile, Linear()).add_term(variable)
        found = Gpu(gpu, self.problem.layouts[index].get(gpu), counts, flag)
        self._add_budgets(geometry, found)
        staying = {place: keep for place, keep in keeps.items() if place.instance and place.gpus == (gpu,)}
        pinned = bool(staying) and self.problem.spec.cluster.unit == "instance"
        if pinned or not counted(geometry, frozenset(counts)):
            self._add_starts(geometry, found, staying if pinned else {})
        for place, keep in keeps.items():
            if gpu in place.gpus and self.problem.shapes[place.shape].request.gpus:
                self.model.require(Linear({flag: 1, keep: 1}), upper=1)
        return found

    def _add_budgets(self, geometry: Geometry, gpu: Gpu) -> None:
        profiles = geometry.by_name
        budgets = [(geometry.compute, {name: profiles[name].compute for name in gpu.held})]
        budgets.append((geometry.axis, {name: profiles[name].size for name in gpu.held}))
        for kind, most in geometry.engines.items():
            budgets.append((most, {name: profiles[name].engines.get(kind, 0) for name in gpu.held}))
        budgets += [(profiles[name].maximum, {name: 1}) for name in gpu.held]
        for most, amounts in budgets:
            self._add_budget(gpu, most, amounts)

    def _add_budget(self, gpu: Gpu, most: int, amounts: Mapping[str, int]) -> None:
        row = Linear()
        for name, amount in amounts.items():
            if amount:
                row.add(gpu.held[name], amount)
        if row.terms:
            self.model.require(row.minus(Linear.of(gpu.flag, most)), upper=0)

    def _add_starts(self, geometry: Geometry, gpu: Gpu, staying: Mapping[Present, int]) -> None:
        """Give instances starts, no two on one memory slice, those that stay their own."""
        starts = {
            Instance(name, start): self.model.boolean()
            for name in gpu.held
            for start in geometry.by_name[name].starts
        }
        for name, count in gpu.held.items():
            own = Linear({v: 1 for instance, v in starts.items() if instance.profile == name})
            self.model.require(own.minus(count), lower=0, upper=0)
        for cell in range(geometry.axis):
            over = [
                v for one, v in starts.items() if one.start <= cell < one.start + geometry.by_name[one.profile].size
            ]
            if len(over) > 1:
                self.model.require(Linear(dict.fromkeys(over, 1)), upper=1)
        for place, keep in staying.items():
            self.model.require(Linear({keep: 1, starts[parse_instance(place.instance)]: -1}), upper=0)

    def add_changes(
        self,
        index: int,
        gpus: Iterable[Gpu],
        shared: Mapping[int, int],
        keeps: Mapping[Present, int],
        whole: Mapping[Mask, Linear],
    ) -> None:
        """Let nobody stay where a GPU is cut anew, where that restarts what runs there.

        Parameters
        ----------
        shared : the flags of GPUs that hold shares outside MIG.
        whole : how many GPUs are taken as a whole, of the node (0) and of what lies inside it.
        """
        unit = self.problem.spec.cluster.unit
        using = {place: keep for place, keep in keeps.items() if place.gpus}
        if unit == "instance" or not using:
            return
        node = self.problem.nodes[index]
        changed = self.model.boolean(f"recut:{node.name}") if unit == "node" else None
        for gpu in gpus:
            if gpu.layout is not None and (changed is not None or any(gpu.number in place.gpus for place in using)):
                flag = changed if changed is not None else self.model.boolean(f"recut:{node.name}:{gpu.number}")
                self._leave_alone(gpu, flag)
                self._send_away(flag, using, None if changed is not None else gpu.number)
            elif gpu.layout is None and changed is not None:
                self.model.require(Linear({gpu.flag: 1, changed: -1}), upper=0)
        if changed is not None:
            self._send_away(changed, using, None)
            self._restart_to_join(index, changed, shared, whole)

    def changes(self, index: int, slots: Mapping[Slot, int], shared: Mapping[int, int], whole: Linear) -> Linear:
        """Return at most how many GPUs of a node are cut in another way than today.

        Parameters
        ----------
        shared : the flags of GPUs that hold shares outside MIG.
        whole : how many GPUs are taken as a whole: those that are not cut today, as far as they go.
        """
        node = self.problem.nodes[index]
        healthy = node.healthy_gpus()
        layouts = {gpu: layout for gpu, layout in self.problem.layouts[index].items() if gpu in healthy}
        total, taken = Linear(), Linear(whole.terms)
        for gpu, flag in self.flags.get(index, {}).items():
            if gpu in layouts:
                total.add_term(self._changed(gpu, layouts[gpu], flag, slots))
            else:
                total.add_term(flag)
                taken.add_term(flag)
        for gpu, flag in shared.items():
            (total if gpu in layouts else taken).add_term(flag)
        if layouts and taken.terms:
            joined = self.model.integer(0, len(layouts))
            self.model.require(taken.minus(Linear.of(joined)), upper=len(healthy) - len(layouts))
            total.add_term(joined)
        return total

    def _changed(self, gpu: int, layout: Layout, flag: int, slots: Mapping[Slot, int]) -> int:
        """Return a variable that is 1 where a GPU holds more than today's layout offers."""
        counts: dict[str, Linear] = {}
        for slot, variable in slots.items():
            if slot.gpu == gpu and slot.profile:
                counts.setdefault(slot.profile, Linear()).add_term(variable)
        changed = self.model.boolean()
        self._leave_alone(Gpu(gpu, layout, counts, flag), changed)
        return changed

    def _restart_to_join(
        self, index: int, changed: int, shared: Mapping[int, int], whole: Mapping[Mask, Linear]
    ) -> None:
        """Let GPUs of a node that are cut today be whole again, or shared as such, only where all of it restarts."""
        node, layouts = self.problem.nodes[index], self.problem.layouts[index]
        fresh: dict[int, Linear] = {}
        for gpu_index, flag in shared.items():
            if gpu_index in layouts:
                self.model.require(Linear({flag: 1, changed: -1}), upper=0)
            else:
                fresh[gpu_index] = Linear.of(flag)
        for block, taken in whole.items():
            here = [gpu for gpu in node.healthy_gpus() if not block or block >> gpu & 1]
            cut = sum(gpu in layouts for gpu in here)
            if cut:
                parted = Linear.total(flag for gpu, flag in fresh.items() if gpu in here)
                left = Linear.total([taken, parted]).minus(Linear.of(changed, cut))
                self.model.require(left, upper=len(here) - cut)

    def _leave_alone(self, gpu: Gpu, changed: int) -> None:
        """Offer no more than today's instances unless the GPU is cut anew."""
        today = Counter(instance.profile for instance in gpu.layout or ())
        for name, count in gpu.held.items():
            most = self.model.range_of(count)[1]
            if most > today[name]:
                self.model.require(count.minus(Linear.of(changed, most - today[name])), upper=today[name])

    def _send_away(self, changed: int, using: Mapping[Present, int], gpu: int | None) -> None:
        """Keep nobody in place on a GPU, or on the node, that is cut anew."""
        for place, keep in using.items():
            if gpu is None or gpu in place.gpus:
                most = self.model.upper[keep]
                self.model.require(Linear({keep: 1, changed: most}), upper=most)


@lru_cache(maxsize=256)
def counted(geometry: Geometry, names: frozenset[str]) -> bool:
    """Tell whether instances of some profiles that keep to all budgets of a GPU always find starts on it.

    They do on every product that is built in; a table that somebody has observed may be another one.
    """
    return all(fits(geometry, counts) for counts in affordable(geometry, names))
