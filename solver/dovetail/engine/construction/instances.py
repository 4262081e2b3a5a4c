"""MIG instances in a construction: what each cut GPU holds, and what else it could hold (S3.3, S5.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dovetail.engine.construction.fragmentation import Bools
from dovetail.mig import Geometry, Instance, parse_instance
from dovetail.model.starts import instances_beside
from dovetail.model.state import State
from dovetail.problem import Problem, Shape
from dovetail.spec import Layout

Spot = tuple[int, int]  # node index, GPU index
_Contents = tuple[tuple[str, int], ...]


class Tenant(NamedTuple):
    """Who is on an instance of a GPU, and the very instance where it stays on that."""

    profile: str
    instance: Instance | None = None


class Relief(NamedTuple):
    """Tenants of a GPU, by position, without whom it has an instance more.

    Parameters
    ----------
    again : those of them who have room there again, beside who comes, once the GPU is cut anew.
    """

    gone: tuple[int, ...]
    again: frozenset[int]


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
        self._unit = problem.spec.cluster.unit
        self._held: dict[Spot, Counter[str]] = {}
        self._kept: dict[Spot, list[Instance]] = {}
        self._chosen: dict[tuple[int, int, int], list[str]] = {}
        self._known: dict[object, str | None] = {}
        self._reliefs: dict[object, Sequence[Relief]] = {}
        self._modes: dict[tuple[int, int], tuple[str, ...]] = {}  # by shape and make of node
        self._fixed: set[int] = set()
        self.closed: set[Spot] = set()
        self.touched: Bools = np.array([bool(layouts) for layouts in problem.layouts], dtype=bool)
        for index, fill in state.fills.items():
            self._adopt(index, state)
            if self._unit == "node" and any(n and place.gpus for place, n in fill.kept.items()):
                self._fixed.add(index)
                sound = set(problem.layouts[index]).intersection(problem.nodes[index].healthy_gpus())
                self.closed |= {(index, gpu) for gpu in sound}
        self.touched[[index for index, _ in (*self._held, *self._kept)]] = True
        self.touched[list(self._fixed)] = True

    def _adopt(self, index: int, state: State) -> None:
        for slot, count in state.fills[index].slots.items():
            if slot.profile and count:
                self._held.setdefault((index, slot.gpu), Counter())[slot.profile] += count
        for place, count in state.fills[index].kept.items():
            if place.instance and count:
                self._kept.setdefault((index, place.gpus[0]), []).append(parse_instance(place.instance))

    def held(self, index: int, gpu: int) -> int:
        """Return how many instances of a GPU are in use."""
        return sum(self._held.get((index, gpu), {}).values())

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
        spot = index, gpu
        if not (untouched or self.held(*spot) or spot in self.closed):
            return None
        return self._offer(index, gpu, shape, self._contents(spot), tuple(self._kept.get(spot, ())))

    def _contents(self, spot: Spot) -> _Contents:
        return _contents_of(self._held.get(spot, {}))

    def _offer(
        self, index: int, gpu: int, shape: Shape, contents: _Contents, kept: tuple[Instance, ...]
    ) -> str | None:
        """Return the profile of an instance that a GPU has for one replica more, beside some instances in use.

        Parameters
        ----------
        kept : those of them that stay where they are.
        """
        geometry = self._problem.geometry(self._problem.nodes[index])
        layout, only = self._problem.layouts[index].get(gpu), index in self._fixed
        if geometry is None or (only and layout is None):
            return None
        modes = self._profiles(shape.index, index)
        key = geometry, modes, contents, kept, layout, only
        if key not in self._known:
            self._known[key] = _first(geometry, modes, contents, kept, layout or (), self._unit, only=only)
        return self._known[key]

    def reliefs(self, index: int, gpu: int, shape: Shape, tenants: Sequence[Tenant]) -> Sequence[Relief]:
        """Return sets of tenants of a GPU without whom it has an instance for one replica more, small ones first.

        A set that holds another one leaves fewer without room there.
        """
        spot, make = (index, gpu), self._problem.makes.of[index]
        layout, kept = self._problem.layouts[index].get(gpu) or (), tuple(self._kept.get(spot, ()))
        alike: object = layout, kept, tuple(tenants)
        if self._unit != "instance":  # starts are no matter: today's layout stays, or all of it goes
            stays = tuple((each.profile, each.instance is not None) for each in tenants)
            alike = *(tuple(sorted(one.profile for one in some)) for some in (layout, kept)), stays
        key = make, self._profiles(shape.index, index), self._contents(spot), index in self._fixed, alike
        if key not in self._reliefs:
            self._reliefs[key] = list(self._relieving(spot, shape, tenants))
        return self._reliefs[key]

    def _relieving(self, spot: Spot, shape: Shape, tenants: Sequence[Tenant]) -> Iterator[Relief]:
        found = list[Relief]()
        for gone in self._sets(tenants):
            least = min(
                (len(each.gone) - len(each.again) for each in found if set(each.gone) < set(gone)), default=None
            )
            again = None if least == 0 else self._again(spot, shape, tenants, gone)
            if again is not None and (least is None or len(gone) - len(again) < least):
                found.append(Relief(gone, again))
                yield found[-1]

    def _sets(self, tenants: Sequence[Tenant]) -> Iterator[tuple[int, ...]]:
        """Yield sets of tenants that could make room, small ones first."""
        everybody = range(len(tenants))
        staying = tuple(i for i in everybody if tenants[i].instance is not None)
        if self._unit == "instance" or not staying:
            yield from (gone for size in range(1, len(tenants) + 1) for gone in combinations(everybody, size))
            return
        yield from ((i,) for i in everybody)
        anew = [i for i in everybody if i not in staying]
        for size in range(len(anew) + 1):  # who stays has today's layout stay
            for more in combinations(anew, size):
                if len(staying) + size > 1:
                    yield tuple(sorted((*staying, *more)))

    def _again(
        self, spot: Spot, shape: Shape, tenants: Sequence[Tenant], gone: Sequence[int]
    ) -> frozenset[int] | None:
        """Return who of some that are gone has room again beside a replica more, None where that has none."""
        left, staying = Counter(self._held.get(spot, {})), list(self._kept.get(spot, ()))
        for tenant in (tenants[i] for i in gone):
            left[tenant.profile] -= 1
            if tenant.instance is not None:
                staying.remove(tenant.instance)
        if self._offer(*spot, shape, _contents_of(left), tuple(staying)) is None:
            return None
        found = set[int]()
        geometry = self._problem.geometry(self._problem.nodes[spot[0]])
        for i in sorted(gone, key=lambda i: -geometry.by_name[tenants[i].profile].size if geometry else 0):
            left[tenants[i].profile] += 1
            if self._offer(*spot, shape, _contents_of(left), tuple(staying)) is not None:
                found.add(i)
            else:
                left[tenants[i].profile] -= 1
        return frozenset(found)

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
        held[profile] -= 1
        if not held[profile]:
            del held[profile]
        return profile

    def let_go(self, index: int, gpu: int, instance: Instance) -> None:
        """Count on nobody's staying on an instance any more."""
        self._kept[index, gpu].remove(instance)

    def stay(self, index: int, gpu: int, instance: Instance) -> None:
        """Count on somebody's staying on an instance."""
        self._kept[index, gpu].append(instance)


def _contents_of(counts: Mapping[str, int]) -> _Contents:
    return tuple(sorted((profile, count) for profile, count in counts.items() if count))


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
