"""MIG instances in a construction: what each cut GPU holds, and what else it could hold (S3.3, S5.4)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dovetail.engine.construction.fragmentation import Bools
from dovetail.mig import Geometry, Instance, parse_instance
from dovetail.model.starts import instances_beside
from dovetail.model.state import State
from dovetail.problem import Problem, Shape
from dovetail.spec import Layout

Spot = tuple[int, int]  # node index, GPU index
_Contents = tuple[tuple[str, int], ...]


class Cuts:
    """The cut GPUs of all nodes.

    Parameters
    ----------
    problem, state : `state` tells who stays in place, which nothing changes.

    `closed` are GPUs that are cut today, hold nothing, and cannot be cut anew or made whole again without sending
    away those who stay on their node: they offer today's instances only. `touched` tells which nodes have GPUs that
    are cut, or were.
    """

    def __init__(self, problem: Problem, state: State) -> None:
        self._problem = problem
        self._unit = problem.spec.cluster.unit
        self._held: dict[Spot, Counter[str]] = {}
        self._kept: dict[Spot, list[Instance]] = {}
        self._chosen: dict[tuple[int, int, int], list[str]] = {}
        self._known: dict[object, str | None] = {}
        self._modes: dict[tuple[int, int], tuple[str, ...]] = {}  # by shape and make of node
        self._fixed: set[int] = set()
        self.closed: set[Spot] = set()
        self.touched: Bools = np.array([bool(layouts) for layouts in problem.layouts], dtype=bool)
        for index, fill in state.fills.items():
            self._adopt(index, state)
            if self._unit == "node" and any(n and place.gpus for place, n in fill.kept.items()):
                self._fixed.add(index)
                sound = set(problem.layouts[index]).intersection(problem.nodes[index].healthy_gpus())
                self.closed |= {(index, gpu) for gpu in sound if not self._held.get((index, gpu))}
        self.touched[[index for index, _ in (*self._held, *self._kept)]] = True
        self.touched[list(self._fixed)] = True

    def _adopt(self, index: int, state: State) -> None:
        for slot, count in state.fills[index].slots.items():
            if slot.profile and count:
                self._held.setdefault((index, slot.gpu), Counter())[slot.profile] += count
        for place, count in state.fills[index].kept.items():
            if place.instance and count:
                self._kept.setdefault((index, place.gpus[0]), []).append(parse_instance(place.instance))

    def held(self, index: int, gpu: int) -> bool:
        """Tell whether instances of a GPU are in use."""
        return bool(self._held.get((index, gpu)))

    def offered(self, index: int, gpu: int, more: str | None = None) -> bool:
        """Tell whether today's layout of a GPU offers all instances in use, and one more of a profile."""
        layout = self._problem.layouts[index].get(gpu)
        if layout is None:
            return False
        left = Counter(instance.profile for instance in layout)
        left.subtract(self._held.get((index, gpu), {}))
        left.subtract([more] if more else [])
        return all(count >= 0 for count in left.values())

    def free_slices(self, index: int, gpu: int) -> int:
        """Return the compute slices of a GPU that no instance in use takes."""
        geometry = self._problem.geometry(self._problem.nodes[index])
        if geometry is None:
            return 0
        held = self._held.get((index, gpu), Counter())
        return geometry.compute - sum(geometry.by_name[name].compute * n for name, n in held.items())

    def profile(self, index: int, gpu: int, shape: Shape, *, untouched: bool) -> str | None:
        """Return the profile of an instance of a GPU that could hold one more replica, None where there is none.

        Parameters
        ----------
        untouched : whether the GPU holds nothing at all.
        """
        node = self._problem.nodes[index]
        geometry = self._problem.geometry(node)
        spot = index, gpu
        if geometry is None or not (untouched or self.held(*spot) or spot in self.closed):
            return None
        layout = self._problem.layouts[index].get(gpu)
        if index in self._fixed and layout is None:
            return None
        modes = self._profiles(shape.index, index)
        contents: _Contents = tuple(sorted(self._held[spot].items())) if self._held.get(spot) else ()
        kept = tuple(self._kept.get(spot, ()))
        key = geometry, modes, contents, kept, layout, index in self._fixed
        if key not in self._known:
            only = index in self._fixed
            self._known[key] = _first(geometry, modes, contents, kept, layout or (), self._unit, only=only)
        return self._known[key]

    def _profiles(self, shape: int, index: int) -> tuple[str, ...]:
        """Return the profiles that a shape may be on, on a node and all others of its make."""
        key = shape, self._problem.makes.of[index]
        if key not in self._modes:
            modes = self._problem.modes(shape, self._problem.nodes[index])
            self._modes[key] = tuple(mode for mode in modes if mode)
        return self._modes[key]

    def put(self, index: int, gpu: int, shape: int, profile: str) -> None:
        """Enter a replica on an instance."""
        self.touched[index] = True
        self._held.setdefault((index, gpu), Counter())[profile] += 1
        self._chosen.setdefault((index, gpu, shape), []).append(profile)

    def undo(self, index: int, gpu: int, shape: int) -> str | None:
        """Take the last replica of a shape off a GPU and return its profile, None where it is on no instance."""
        chosen = self._chosen.get((index, gpu, shape))
        if not chosen:
            return None
        profile = chosen.pop()
        held = self._held[index, gpu]
        held[profile] -= 1
        if not held[profile]:
            del held[profile]
        return profile


def _first(
    geometry: Geometry,
    modes: tuple[str, ...],
    contents: _Contents,
    kept: tuple[Instance, ...],
    layout: Layout,
    unit: str,
    *,
    only: bool,
) -> str | None:
    """Return the smallest profile of which one more instance finds a start; `only` today's instances, if so told."""
    new = Counter(dict(contents))
    new.subtract(Counter(instance.profile for instance in kept))
    idle = Counter(instance.profile for instance in layout if instance not in kept)
    for name in sorted(modes, key=lambda name: (geometry.by_name[name].compute, geometry.by_name[name].size)):
        wanted = new + Counter([name])
        if only and any(idle[each] < count for each, count in wanted.items()):
            continue
        if instances_beside(geometry, wanted, list(kept), layout, single=unit == "instance") is not None:
            return name
    return None
