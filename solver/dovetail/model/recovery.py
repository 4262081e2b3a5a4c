"""Rows on what restarts after failures: a count per case, shape and surviving node, beside what stays (S4.7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dovetail.linear import Linear
from dovetail.mig import budgets
from dovetail.model.bonds import add_bonds, has_sides
from dovetail.model.state import NO_GPU, Slot
from dovetail.placement.instances import share_memory
from dovetail.rules.quota import requested_of
from dovetail.rules.recovery import Failure, Stakes
from dovetail.spec import Node
from dovetail.spec.inside import holds
from dovetail.spec.workload import MILLI

if TYPE_CHECKING:
    from dovetail.model.part import PartModel

MOST_COUNTS = 100_000
"""The most counts of restarts that a model has; beyond them it says nothing."""


def not_restarted(part: PartModel, stakes: Stakes, failures: Sequence[Failure]) -> Mapping[str, Linear] | None:
    """Return per failure an expression that is at least the replicas that do not restart, and can equal it."""
    rows = _Restarts(part, stakes)
    if rows.size(failures) > MOST_COUNTS:
        return None
    return {failure.name: rows.add(failure) for failure in failures}


class _Restarts:
    """What stays on each node whatever fails, worked out once, and the rows of each failure."""

    def __init__(self, part: PartModel, stakes: Stakes) -> None:
        self._part, self._stakes = part, stakes
        problem = part.problem
        self._shapes = [s for s in problem.shapes if s.workload.id in stakes.ids]
        self._contents = {index: list(part.contents(index)) for index in range(len(problem.nodes))}
        self._staying = {index: self._stays(index) for index in self._contents}
        self._flags: dict[tuple[int, int, str], int] = {}

    def _stays(self, index: int) -> list[tuple[Slot, Linear]]:
        return [(slot, count) for slot, count in self._contents[index] if not self._goes(slot)]

    def _goes(self, slot: Slot) -> bool:
        return self._part.problem.shapes[slot.shape].workload.id in self._stakes.evictable

    def _on(self, index: int, gpu: int, profile: str = "", *, gone: bool) -> list[tuple[Slot, Linear]]:
        """Return what is on instances of a GPU, of one profile where one is named; of those who go, or who stay."""
        return [
            (slot, count)
            for slot, count in self._contents[index]
            if slot.gpu == gpu and slot.profile and profile in ("", slot.profile) and self._goes(slot) == gone
        ]

    def size(self, failures: Sequence[Failure]) -> int:
        """Return about how many counts there would be."""
        gpus = max((len(node.healthy_gpus()) for node in self._part.problem.nodes), default=0)
        each = sum(gpus if shape.request.partial else 1 for shape in self._shapes)
        return len(failures) * len(self._part.problem.nodes) * each

    def add(self, failure: Failure) -> Linear:
        """Add the rows of a failure."""
        nodes, model = self._part.problem.nodes, self._part.model
        model.section(f"failure {failure.name}")
        lost = {index for index, node in enumerate(nodes) if node.name in failure.nodes}
        missing = Linear()
        again: dict[int, dict[Slot, int]] = {index: {} for index in self._contents if index not in lost}
        for shape in self._shapes:
            gone = Linear.total(c for i in lost for slot, c in self._contents[i] if slot.shape == shape.index)
            most = model.range_of(gone)[1]
            if most <= 0:
                continue
            short = model.integer(0, most)
            found = Linear.of(short)
            for index, slot in self._places(shape.index, again):
                variable = again[index][slot] = model.integer(0, most)
                found.add_term(variable)
            model.require(found.minus(gone), lower=0)
            missing.add_term(short)
        for index, counts in again.items():
            if counts:
                self._add_host_rows(index, counts)
                self._add_gpu_rows(index, counts)
                self._add_instance_rows(index, counts)
        add_bonds(self._part, self._stakes.matched, lost, again)
        return missing

    def _places(self, shape: int, again: Mapping[int, object]) -> Iterator[tuple[int, Slot]]:
        """Yield the surviving nodes that a shape may restart on, for shares with each GPU."""
        problem = self._part.problem
        form = problem.shapes[shape]
        open_to = self._stakes.hosts[form.workload.id, form.role.name]
        for index in again:
            node = problem.nodes[index]
            share = form.request.share
            if share and not (node.mechanism == "fraction" and "fraction" in share.modes):
                continue  # restarts on MIG instances, or that set GPUs anew, are not planned
            if node.name in open_to and shape in problem.hosted[problem.class_of[index]]:
                slots = self._slots(index, shape)
                yield from ((index, slot) for slot in slots if has_sides(form, node, slot))

    def _slots(self, index: int, shape: int) -> Iterable[Slot]:
        """Return where on a node a shape may restart."""
        node, request = self._part.problem.nodes[index], self._part.problem.shapes[shape].request
        if request.mig:
            return self._instances(index, shape, request.mig)
        if request.share:
            return [Slot(shape, gpu) for gpu in node.healthy_gpus()]
        return [Slot(shape, block=block) for block in self._part.problem.blocks(shape, node)]

    def _instances(self, index: int, shape: int, profile: str) -> Iterator[Slot]:
        """Yield the GPUs of a node that may have an idle instance of a profile, or one that is given up."""
        layouts = self._part.problem.layouts[index]
        alike = self._alike(index, profile)
        for gpu in self._part.problem.nodes[index].healthy_gpus():
            idle = alike or any(each.profile == profile for each in layouts.get(gpu, ()))
            if idle or self._on(index, gpu, profile, gone=True):
                yield Slot(shape, gpu, profile)

    def _add_host_rows(self, index: int, counts: Mapping[Slot, int]) -> None:
        node, shapes = self._part.problem.nodes[index], self._part.problem.shapes
        names = {name for slot in counts for name in shapes[slot.shape].request.resources}
        capacities = {"cpu": node.cpu, "memory": node.memory, **{n: node.resources.get(n, 0) for n in sorted(names)}}
        for name, limit in capacities.items():
            row = Linear({v: requested_of(shapes[slot.shape].request, name) for slot, v in counts.items()})
            if any(row.terms.values()):
                for slot, count in self._staying[index]:
                    row.add(count, requested_of(shapes[slot.shape].request, name))
                self._at_most(row, limit)

    def _at_most(self, row: Linear, limit: int) -> None:
        if self._part.model.range_of(row)[1] > limit:
            self._part.model.require(row, upper=limit)

    def _add_gpu_rows(self, index: int, counts: Mapping[Slot, int]) -> None:
        """Let whole GPUs and shared ones fit the node's healthy GPUs that are not cut, and shares their GPU."""
        node, shapes = self._part.problem.nodes[index], self._part.problem.shapes
        again = Linear({v: shapes[slot.shape].request.gpus for slot, v in counts.items() if slot.gpu == NO_GPU})
        total, most = Linear().add(again), len(node.healthy_gpus())
        for shared in self._part.sharing(index) if again.terms else ():
            self._at_most(again.plus(0).add(shared, most), most)
        for slot, count in self._staying[index]:
            total.add(count, shapes[slot.shape].request.gpus)
        parted = dict[int, Linear]()
        for gpu in node.healthy_gpus():
            here = {slot: v for slot, v in counts.items() if slot.gpu == gpu and not slot.profile}
            shares = [(slot, count) for slot, count in self._staying[index] if slot.gpu == gpu and not slot.profile]
            cut = [*self._on(index, gpu, gone=False), *self._on(index, gpu, gone=True)]
            flags = [self._used(index, gpu, "mig", cut)]
            flags.append(self._shared(node, gpu, here, shares) if here else self._used(index, gpu, "shared", shares))
            used = parted[gpu] = Linear({flag: 1 for flag in flags if flag is not None})
            if len(used.terms) > 1:
                self._part.model.require(used, upper=1)
            total.add(used)
        if any(total.terms.values()):
            self._at_most(total, most)
            self._spare_layouts(index, again, parted)
        self._add_block_rows(index, counts, parted)

    def _add_block_rows(self, index: int, counts: Mapping[Slot, int], parted: Mapping[int, Linear]) -> None:
        """Let what keeps within an island or a socket fit there, as `Variables` does for the plan itself."""
        node, shapes = self._part.problem.nodes[index], self._part.problem.shapes
        for block in sorted({slot.block for slot in counts} - {0}):
            inside = {slot: v for slot, v in counts.items() if slot.block and holds(block, slot.block)}
            total = Linear({v: shapes[slot.shape].request.gpus for slot, v in inside.items()})
            for slot, count in self._staying[index]:
                if slot.block and holds(block, slot.block):
                    total.add(count, shapes[slot.shape].request.gpus)
            for gpu, used in parted.items():
                total.add(used, block >> gpu & 1)
            self._at_most(total, (block & node.healthy).bit_count())

    def _spare_layouts(self, index: int, again: Linear, parted: Mapping[int, Linear]) -> None:
        """Let no more GPUs be taken whole than are not cut today, or that the plan uses otherwise and gives up.

        Which GPUs whole ones of the plan are is no part of the model: cut ones, as far as nothing else is on them.
        Where all GPUs of a node are cut alike or not at all, none is as soon as the plan has other use of any.
        """
        layouts, node = self._part.problem.layouts[index], self._part.problem.nodes[index]
        cut = [gpu for gpu in node.healthy_gpus() if gpu in layouts]
        if not cut or not again.terms:
            return
        model, uncut = self._part.model, [gpu for gpu in node.healthy_gpus() if gpu not in layouts]
        row, whole = again.plus(0), Linear()
        for slot, count in self._contents[index]:
            amount = self._part.problem.shapes[slot.shape].request.gpus
            whole.add(count, amount)
            row.add(count, 0 if self._goes(slot) else amount)
        for gpu in uncut:
            row.add(parted[gpu])
        for gpu in cut:
            gone = [s for s, _ in self._contents[index] if s.gpu == gpu and not s.profile and self._goes(s)]
            if gone:
                free = self._in_use(index, gone)
                model.require(parted[gpu].plus(0).add_term(free), upper=1)
                row.add_term(free, -1)
        over = model.integer(0, max(0, min(len(cut), model.range_of(whole)[1])))
        model.require(Linear.of(over).minus(whole), upper=0)
        model.require(Linear.total(parted[gpu] for gpu in cut).add_term(over), upper=len(cut))
        if node.mig_strategy == "single":
            others = {slot for slot, _ in self._contents[index] if self._takes_uncut(slot)}
            row.add_term(self._in_use(index, others), -len(cut))
        self._at_most(row.add_term(over, -1), len(uncut))

    def _takes_uncut(self, slot: Slot) -> bool:
        """Tell whether what is in a slot has GPUs that are not cut, or a part of one."""
        request = self._part.problem.shapes[slot.shape].request
        return not slot.profile and (request.gpus > 0 or request.partial)

    def _in_use(self, index: int, slots: Collection[Slot]) -> int:
        """Return a flag that is 1 only where some of the plan is in a slot."""
        flag = self._part.model.boolean()
        on = Linear.total(count for slot, count in self._contents[index] if slot in slots)
        self._part.model.require(Linear.of(flag).minus(on), upper=0)
        return flag

    def _add_instance_rows(self, index: int, counts: Mapping[Slot, int]) -> None:
        """Let MIG requests restart on instances that are given up, or that today's layout has idle."""
        layouts = self._part.problem.layouts[index]
        wanted: dict[tuple[int, str], Linear] = {}
        for slot, variable in counts.items():
            if slot.profile:
                wanted.setdefault((slot.gpu, slot.profile), Linear()).add_term(variable)
        spare: dict[int, dict[str, Linear]] = {}
        for (gpu, profile), again in sorted(wanted.items(), key=lambda item: item[0]):
            given = Linear.total(count for _, count in self._on(index, gpu, profile, gone=True))
            has = sum(each.profile == profile for each in layouts.get(gpu, ()))
            idle = self._idle(index, gpu, profile, has) if has else Linear()
            if alike := self._alike(index, profile):
                idle = self._cut_alike(index, gpu, profile, idle, max(has, alike))
            spare.setdefault(gpu, {})[profile] = idle
            self._part.model.require(again.minus(given).minus(idle), upper=0)
        for gpu, idle_of in spare.items() if self._single else ():
            self._fit_beside(index, gpu, idle_of)

    def _fit_beside(self, index: int, gpu: int, spare: Mapping[str, Linear]) -> None:
        """Let idle instances that stay fit a GPU beside those in use, by count, where single ones are made."""
        geometry = self._part.problem.geometry(self._part.problem.nodes[index])
        used = self._on(index, gpu, gone=False) + self._on(index, gpu, gone=True)
        for most, amounts in budgets(geometry) if geometry is not None else ():
            taken = Linear.total(count.scaled(amounts[slot.profile]) for slot, count in used)
            self._at_most(taken.add(Linear.total(idle.scaled(amounts[name]) for name, idle in spare.items())), most)

    def _alike(self, index: int, profile: str) -> int:
        """Return the instances of each GPU of a node that is cut into one profile alone, 0 where it need not be."""
        node = self._part.problem.nodes[index]
        geometry = self._part.problem.geometry(node)
        named = geometry.by_name.get(profile) if geometry is not None and node.mig_strategy == "single" else None
        return named.maximum if named is not None else 0

    def _cut_alike(self, index: int, gpu: int, profile: str, kept: Linear, most: int) -> Linear:
        """Return at most the idle instances of a GPU whose node is cut into a profile as any of it is in use (S3.5).

        Parameters
        ----------
        kept : those of today's layout; where that has the profile on any GPU of the node, those in use alone are cut.
        """
        model, used, here = self._part.model, Linear(), Linear()
        layouts = self._part.problem.layouts[index].values()
        known = any(each.profile == profile for layout in layouts for each in layout)
        cut = Linear.of(model.integer(0, most))
        for slot, count in self._contents[index]:
            used.add(count, int(slot.profile == profile and (slot.gpu == gpu or not known)))
            here.add(count, int(slot[1:3] == (gpu, profile)))
        model.require(cut.minus(used.scaled(most)), upper=0)
        model.require(cut.plus(0).add(kept).add(here), upper=most)
        return cut.add(kept)

    def _idle(self, index: int, gpu: int, profile: str, has: int) -> Linear:
        """Return at most the idle instances of a profile that a GPU keeps of today's layout."""
        model = self._part.model
        spare, alone = model.integer(0, has), self._alone(index, gpu)
        model.require(Linear({spare: 1, alone: -has}), upper=0)
        if self._single:
            return Linear.of(spare)
        used = Linear.total(count for slot, count in self._contents[index] if slot[1:3] == (gpu, profile))
        most = max(0, model.range_of(used)[1])
        model.require(used.plus(0).add_term(spare).add_term(alone, most), upper=has + most)
        return Linear.of(spare)

    def _alone(self, index: int, gpu: int) -> int:
        """Return a flag that is 1 only where the plan leaves today's layout of a GPU as it is, one for all failures.

        What is on the GPU is then on instances that it has, and no whole GPU is taken of it. Where single instances
        are made and destroyed, idle ones stay as far as they are not in the way; then it may be 1 wherever it is cut.
        """
        key = index, gpu, "alone"
        if key not in self._flags:
            model = self._part.model
            flag = self._flags[key] = model.boolean()
            today = Counter(each.profile for each in self._part.problem.layouts[index][gpu])
            used: dict[str, Linear] = {}
            for slot, count in self._contents[index]:
                if slot.gpu == gpu:
                    used.setdefault(slot.profile, Linear()).add(count)
            for profile, count in sorted(used.items()):
                most = model.range_of(count)[1]
                if most > today[profile] and not (self._single and profile):
                    model.require(count.add_term(flag, most - today[profile]), upper=most)
            self._leave_alone(index)
        return self._flags[key]

    @property
    def _single(self) -> bool:
        return self._part.problem.spec.cluster.unit == "instance"

    def _leave_alone(self, index: int) -> None:
        """Take no whole GPUs of those that are left as they are today, nor of those that hold anything else."""
        shapes, row = self._part.problem.shapes, Linear()
        for gpu in self._part.problem.nodes[index].healthy_gpus():
            on = [(slot, count) for slot, count in self._contents[index] if slot.gpu == gpu]
            alone, busy = self._flags.get((index, gpu, "alone")), self._used(index, gpu, "busy", on)
            if alone is not None and busy is not None:
                self._part.model.require(Linear({alone: 1, busy: -1}), upper=0)
            row.add(Linear({flag: 1 for flag in (alone if busy is None else busy,) if flag is not None}))
        for slot, count in self._contents[index]:
            row.add(count, shapes[slot.shape].request.gpus)
        self._at_most(row, len(self._part.problem.nodes[index].healthy_gpus()))

    def _used(self, index: int, gpu: int, mode: str, stay: Sequence[tuple[Slot, Linear]]) -> int | None:
        """Return a flag that is 1 where parts of a GPU stay in use, one for all failures; None where none can be."""
        key = index, gpu, mode
        if stay and key not in self._flags:
            self._flags[key] = self._flag_of(self._load(index, stay))
        return self._flags.get(key)

    def _load(self, index: int, stay: Sequence[tuple[Slot, Linear]]) -> Linear:
        problem, load = self._part.problem, Linear()
        for slot, count in stay:
            load.add(count, problem.request(slot.shape, problem.nodes[index]).gpu_milli)
        return load

    def _flag_of(self, load: Linear) -> int:
        flag = self._part.model.boolean()
        most = max(MILLI, self._part.model.range_of(load)[1])
        self._part.model.require(load.minus(Linear.of(flag, most)), upper=0)
        return flag

    def _shared(self, node: Node, gpu: int, here: Mapping[Slot, int], stay: Sequence[tuple[Slot, Linear]]) -> int:
        """Return a flag that is 1 where shares are on a GPU, of which some may restart there."""
        problem = self._part.problem
        asked = {slot: problem.request(slot.shape, node) for slot in (*here, *(slot for slot, _ in stay))}
        load = Linear({v: asked[slot].gpu_milli for slot, v in here.items()})
        for slot, count in stay:
            load.add(count, asked[slot].gpu_milli)
        flag = self._flag_of(load)
        self._at_most(load, MILLI)
        self._uncut(node, gpu, here)
        card = self._part.spec.accelerators[node.accelerator or ""].memory
        vram = Linear({v: share_memory(asked[slot], card) for slot, v in here.items()})
        for slot, count in stay:
            vram.add(count, share_memory(asked[slot], card))
        self._at_most(vram, MILLI * card)
        return flag

    def _uncut(self, node: Node, gpu: int, here: Mapping[Slot, int]) -> None:
        """Let shares restart on a GPU that is cut today only where the plan has other use of it."""
        index = self._part.problem.node_index[node.name]
        if gpu not in self._part.problem.layouts[index]:
            return
        model, alike = self._part.model, node.mig_strategy == "single"
        again, use = Linear(dict.fromkeys(here.values(), 1)), Linear()
        for slot, count in self._contents[index]:
            whole = self._part.problem.shapes[slot.shape].request.gpus > 0 and self._goes(slot)
            if not slot.profile and (slot.gpu == gpu or whole or (alike and self._takes_uncut(slot))):
                use.add(count)
        model.require(again.minus(use.scaled(model.range_of(again)[1])), upper=0)
