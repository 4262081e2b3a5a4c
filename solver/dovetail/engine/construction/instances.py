"""MIG instances in a construction: what each cut GPU holds, and what else it could hold (S3.3, S5.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.mig import Geometry, Instance, parse_instance
from dovetail.model.starts import instances_beside
from dovetail.model.state import State
from dovetail.problem import Problem, Shape
from dovetail.spec import Layout

Spot = tuple[int, int]  # node index, GPU index
Contents = tuple[tuple[str, int], ...]
_UNKNOWN = -2  # how a GPU is cut, since who is there has changed


class Offer(NamedTuple):
    """An instance that a GPU has for one replica more.

    Parameters
    ----------
    today : whether today's layout offers it beside all that are in use.
    busy, anew : whether others are in use, and the GPU is cut otherwise than today for these already.
    was_cut : whether it is cut today.
    free : the compute slices that none in use takes.
    """

    profile: str
    today: bool
    busy: bool
    anew: bool
    was_cut: bool
    free: int


class Cut(NamedTuple):
    """How a GPU is cut, all that decides what else it could hold.

    Where instances do not come and go one by one their starts are no matter: they are numbered instead.

    Parameters
    ----------
    make : that of its node.
    contents, kept : the instances in use, by profile, and those of them that stay where they are.
    layout : today's, None where it was not cut.
    only : whether it is to stay as it is.
    """

    make: int
    geometry: Geometry
    contents: Contents
    kept: tuple[Instance, ...]
    layout: Layout | None
    only: bool


class Cuts:
    """The cut GPUs of all nodes.

    Parameters
    ----------
    problem, state : `state` tells who stays in place, which nothing changes.

    `closed` are GPUs that are cut today, and cannot be cut anew or made whole again without sending away those who
    stay on their node: they offer today's instances only. `touched` tells which nodes have GPUs that are cut, or
    were.
    """

    def __init__(self, problem: Problem, state: State) -> None:
        self._problem = problem
        self.unit = problem.spec.cluster.unit
        self._held: dict[Spot, Counter[str]] = {}
        self._kept: dict[Spot, list[Instance]] = {}
        self._chosen: dict[tuple[int, int, int], list[str]] = {}
        self._number_of: dict[Cut, int] = {}  # most GPUs are cut like others, and have the number of these
        self._cuts: list[Cut] = []
        width = max((node.gpus for node in problem.nodes), default=0)
        self._numbers = np.full((len(problem.nodes), width), _UNKNOWN, dtype=np.int32)
        self._in_use: Ints = np.zeros_like(self._numbers, dtype=np.int64)  # instances of each GPU
        self._firsts: dict[object, str | None] = {}
        self._offers: dict[tuple[int, tuple[str, ...]], Offer | None] = {}
        self._modes: dict[tuple[int, int], tuple[str, ...]] = {}  # by shape and make of node
        self._fixed: set[int] = set()
        self.closed: Bools = np.zeros_like(self._numbers, dtype=bool)
        self.touched: Bools = np.array([bool(layouts) for layouts in problem.layouts], dtype=bool)
        for index, fill in state.fills.items():
            self._adopt(index, state)
            if self.unit == "node" and any(n and place.gpus for place, n in fill.kept.items()):
                self._fixed.add(index)
                sound = set(problem.layouts[index]).intersection(problem.nodes[index].healthy_gpus())
                self.closed[index, list(sound)] = True
        self.touched[[index for index, _ in (*self._held, *self._kept)]] = True
        self.touched[list(self._fixed)] = True
        makes = np.array(problem.makes.of, dtype=np.int64)
        for make in range(len(problem.makes.members) if width else 0):
            alike = np.flatnonzero((makes == make) & ~self.touched)
            if len(alike):
                self._numbers[alike] = self.number(int(alike[0]), 0)

    def _adopt(self, index: int, state: State) -> None:
        for slot, count in state.fills[index].slots.items():
            if slot.profile and count:
                self._held.setdefault((index, slot.gpu), Counter())[slot.profile] += count
                self._in_use[index, slot.gpu] += count
        for place, count in state.fills[index].kept.items():
            if place.instance and count:
                self._kept.setdefault((index, place.gpus[0]), []).append(parse_instance(place.instance))

    def held(self, index: int, gpu: int) -> int:
        """Return how many instances of a GPU are in use."""
        return int(self._in_use[index, gpu])

    def numbers(self, nodes: Ints) -> Ints:
        """Return numbers for the GPUs of some nodes, the same for all that are cut alike, -1 for what cannot be."""
        for at, gpu in np.argwhere(self._numbers[nodes] == _UNKNOWN).tolist():
            self.number(int(nodes[at]), gpu)
        return np.asarray(self._numbers[nodes], dtype=np.int64)

    def open(self, nodes: Ints) -> Bools:
        """Tell which GPUs of some nodes are cut, now or today for those who stay on their nodes."""
        return np.asarray((self._in_use[nodes] > 0) | self.closed[nodes])

    def number(self, index: int, gpu: int) -> int:
        """Return the number of a GPU that all have that are cut alike, -1 for one that cannot be."""
        found = int(self._numbers[index, gpu])
        if found == _UNKNOWN:
            geometry, spot = self._problem.geometry(self._problem.nodes[index]), (index, gpu)
            layout, only, found = self._problem.layouts[index].get(gpu), index in self._fixed, -1
            if geometry is not None and not (only and layout is None):
                contents = contents_of(self._held.get(spot, {}))
                make, kept = self._problem.makes.of[index], tuple(self._kept.get(spot, ()))
                if self.unit != "instance":
                    kept, layout = _numbered(kept), None if layout is None else _numbered(layout)
                cut = Cut(make, geometry, contents, kept, layout, only)
                found = self._number_of.setdefault(cut, len(self._cuts))
                self._cuts += [cut] if found == len(self._cuts) else []
            self._numbers[index, gpu] = found
        return found

    def offer(self, index: int, gpu: int, shape: Shape, *, untouched: bool) -> Offer | None:
        """Return an instance of a GPU that could hold one more replica, None where there is none.

        Parameters
        ----------
        untouched : whether the GPU holds nothing at all.
        """
        number = self.number(index, gpu)
        if number < 0 or not (untouched or self._in_use[index, gpu] or self.closed[index, gpu]):
            return None
        return self.offer_of(number, shape)

    def offer_of(self, number: int, shape: Shape) -> Offer | None:
        """Return an instance that GPUs with a number could hold one more replica on, None where they have none."""
        cut = self._cuts[number]
        key = number, self.profiles(shape.index, cut.make)
        if key not in self._offers:
            self._offers[key] = self._offer(cut, key[1])
        return self._offers[key]

    def _offer(self, cut: Cut, modes: tuple[str, ...]) -> Offer | None:
        profile = self.first(cut, modes)
        if profile is None:
            return None
        idle = Counter(instance.profile for instance in cut.layout or ())
        idle.subtract(dict(cut.contents))
        anew = cut.layout is None or any(count < 0 for count in idle.values())
        taken = sum(cut.geometry.by_name[name].compute * count for name, count in cut.contents)
        offered = not anew and idle[profile] > 0
        return Offer(profile, offered, bool(cut.contents), anew, cut.layout is not None, cut.geometry.compute - taken)

    def profile(self, index: int, gpu: int, shape: Shape, *, untouched: bool, like: str = "") -> str | None:
        """Return the profile of that instance, or the one that it is to be like where there is room for that."""
        found = self.offer(index, gpu, shape, untouched=untouched)
        if found is None:
            return None
        if like in self.profiles(shape.index, self._problem.makes.of[index]):
            return self.first(self.cut(self.number(index, gpu)), (like,)) or found.profile
        return found.profile

    def cut(self, number: int) -> Cut:
        """Return how GPUs with a number are cut."""
        return self._cuts[number]

    def first(self, cut: Cut, modes: tuple[str, ...]) -> str | None:
        """Return the smallest of some profiles of which a GPU that is cut so has one instance more."""
        key = cut, modes
        if key not in self._firsts:
            self._firsts[key] = _first(cut, modes, self.unit)
        return self._firsts[key]

    def profiles(self, shape: int, make: int) -> tuple[str, ...]:
        """Return the profiles that a shape may be on, on nodes of a make."""
        key = shape, make
        if key not in self._modes:
            modes = self._problem.modes(shape, self._problem.makes.members[make][0])
            self._modes[key] = tuple(mode for mode in modes if mode)
        return self._modes[key]

    def put(self, index: int, gpu: int, shape: int, profile: str) -> None:
        """Enter a replica on an instance."""
        self.touched[index] = True
        self._numbers[index, gpu] = _UNKNOWN
        self._in_use[index, gpu] += 1
        self._held.setdefault((index, gpu), Counter())[profile] += 1
        self._chosen.setdefault((index, gpu, shape), []).append(profile)

    def undo(self, index: int, gpu: int, shape: int, profile: str | None = None) -> str | None:
        """Take the last replica of a shape off a GPU and return its profile, None where it is on no instance.

        Parameters
        ----------
        profile : that of the instance that it is on, where that is known.
        """
        chosen = self._chosen.get((index, gpu, shape), [])
        if profile is None:
            if not chosen:
                return None
            profile = chosen.pop()
        elif profile in chosen:
            chosen.remove(profile)
        held = self._held[index, gpu]
        self._numbers[index, gpu] = _UNKNOWN
        self._in_use[index, gpu] -= 1
        held[profile] -= 1
        if not held[profile]:
            del held[profile]
        return profile

    def last(self, puts: Sequence[tuple[int, int, tuple[int, ...]]]) -> list[str]:
        """Return the profile of the instance of each of those put last (node, shape, GPUs), empty without one."""
        found, seen = list[str](), Counter[tuple[int, int, int]]()
        for index, shape, gpus in reversed(puts):
            key = index, gpus[0] if gpus else _UNKNOWN, shape
            chosen = self._chosen.get(key, ())
            seen[key] += 1
            found.append(chosen[-seen[key]] if seen[key] <= len(chosen) else "")
        return found[::-1]

    def let_go(self, index: int, gpu: int, instance: Instance) -> None:
        """Count on nobody's staying on an instance any more."""
        self._numbers[index, gpu] = _UNKNOWN
        self._kept[index, gpu].remove(instance)

    def stay(self, index: int, gpu: int, instance: Instance) -> None:
        """Count on somebody's staying on an instance."""
        self._numbers[index, gpu] = _UNKNOWN
        self._kept.setdefault((index, gpu), []).append(instance)

    def stays_as_cut(self, index: int) -> bool:
        """Tell whether nobody who comes back to a node would be restarted as GPUs of it are cut anew."""
        return self.unit != "node" or index in self._fixed or not self.touched[index]

    def may_stay(self, index: int, gpu: int, instance: Instance) -> bool:
        """Tell whether somebody may stay on an instance of today, beside those who are on instances of its GPU."""
        layout, kept = self._problem.layouts[index].get(gpu, ()), self._kept.get((index, gpu), [])
        geometry = self._problem.geometry(self._problem.nodes[index])
        if geometry is None or instance not in layout or instance in kept:
            return False
        new = Counter(self._held.get((index, gpu), {}))
        new.subtract(each.profile for each in kept)
        single = self.unit == "instance"
        return instances_beside(geometry, +new, [*kept, instance], layout, single=single) is not None


def _numbered(instances: Iterable[Instance]) -> Layout:
    """Return as many instances of each profile, with numbers for starts."""
    counts = Counter(instance.profile for instance in instances)
    return tuple(Instance(profile, number) for profile in sorted(counts) for number in range(counts[profile]))


def contents_of(counts: Mapping[str, int]) -> Contents:
    """Return instances in use, by profile."""
    return tuple(sorted((profile, count) for profile, count in counts.items() if count))


def _first(cut: Cut, modes: tuple[str, ...], unit: str) -> str | None:
    """Return the smallest of some profiles of which one more instance finds a start."""
    new = Counter(dict(cut.contents))
    new.subtract(Counter(instance.profile for instance in cut.kept))
    layout, geometry = cut.layout or (), cut.geometry
    idle = Counter(instance.profile for instance in layout if instance not in cut.kept)
    for name in sorted(modes, key=lambda name: (geometry.by_name[name].compute, geometry.by_name[name].size)):
        wanted = new + Counter([name])
        if cut.only and any(idle[each] < count for each, count in wanted.items()):
            continue
        if instances_beside(geometry, wanted, list(cut.kept), layout, single=unit == "instance") is not None:
            return name
    return None
