"""What a layout of one GPU wastes, and the swap that would mend it.

Three kinds: memory slices that no further instance can use (slice 7 beside seven `1g`), compute slices that none can
use (one beside `3g` + `3g`), and instances that are larger than what runs on them asked for. A swap puts another
profile in the place of an instance; where the new one is at least as large, nobody there has less than before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dovetail.mig.arrange import arrange
from dovetail.mig.geometry import Geometry, Instance, Profile

Kind = Literal["compute", "memory", "larger"]


class Need(NamedTuple):
    """What runs on an instance asked for: thousandths of a GPU, and MiB."""

    milli: int
    memory: int


class Swap(NamedTuple):
    """Another profile in the place of an instance; starts may change with it."""

    instance: Instance
    profile: str

    def __str__(self) -> str:
        """Return the swap as people read it."""
        return f"{self.instance} -> {self.profile}"


@dataclass(frozen=True, slots=True)
class Waste:
    """One way in which a layout wastes a GPU.

    Parameters
    ----------
    kind : `compute` or `memory` slices that no further instance can use, or an instance `larger` than asked.
    slices : how many; for `larger` memory slices, or compute slices where memory is the same.
    swaps : what would use them, or give them back; none where nothing would.
    """

    kind: Kind
    slices: int
    swaps: tuple[Swap, ...] = ()

    def __str__(self) -> str:
        """Return the waste in words."""
        plural = "" if self.slices == 1 else "s"
        mend = f"; {', '.join(map(str, self.swaps))} would {self._mends()}" if self.swaps else ""
        if self.kind == "larger":
            return f"{self.swaps[0].instance} is larger than asked{mend}"
        return f"{self.slices} {self.kind} slice{plural} that no instance can use{mend}"

    def _mends(self) -> str:
        return "do" if self.kind == "larger" else "use them" if self.slices > 1 else "use it"


def wasted(geometry: Geometry, layout: Sequence[Instance], needs: Mapping[Instance, Need]) -> tuple[Waste, ...]:
    """Return what a legal layout of one GPU wastes.

    Parameters
    ----------
    layout : the instances of the GPU; an empty one wastes nothing, it is idle.
    needs : what runs on instances, where something does.
    """
    if not layout:
        return ()
    return (*_lost(geometry, layout), *_larger(geometry, layout, needs))


def _lost(geometry: Geometry, layout: Sequence[Instance]) -> Iterator[Waste]:
    """Yield the slices that are lost for good where no further instance fits, however the others stand."""
    counts = Counter(instance.profile for instance in layout)
    if any(arrange(geometry, counts + Counter([name])) is not None for name in geometry.by_name):
        return
    idle = _idle(geometry, counts)
    swaps, left = _grown(geometry, layout)
    kinds: tuple[Kind, Kind] = ("compute", "memory")
    for kind, before, after in zip(kinds, idle, left, strict=True):
        if before:
            yield Waste(kind, before, swaps if after < before else ())


def _idle(geometry: Geometry, counts: Mapping[str, int]) -> tuple[int, int]:
    """Return the compute slices and memory slices that instances leave."""
    profiles = geometry.by_name
    compute = sum(profiles[name].compute * number for name, number in counts.items())
    size = sum(profiles[name].size * number for name, number in counts.items())
    return geometry.compute - compute, geometry.axis - size


def _grown(geometry: Geometry, layout: Sequence[Instance]) -> tuple[tuple[Swap, ...], tuple[int, int]]:
    """Return swaps for larger profiles that leave least, and what they leave; one after the other, the best first."""
    now = list(layout)
    swaps: dict[int, Swap] = {}
    left = _idle(geometry, Counter(one.profile for one in now))
    while True:
        options = []
        for index, profile in _larger_ones(geometry, now):
            changed = [profile.name if i == index else one.profile for i, one in enumerate(now)]
            if arrange(geometry, Counter(changed)) is not None:
                options.append((_idle(geometry, Counter(changed)), index, profile.name))
        if not options or min(options)[0] >= left:
            return tuple(swaps.values()), left
        left, index, name = min(options)
        swaps[index] = Swap(layout[index], name)
        now[index] = Instance(name, now[index].start)


def _larger_ones(geometry: Geometry, layout: Sequence[Instance]) -> Iterator[tuple[int, Profile]]:
    """Yield each instance's index with each profile that has all that it has, and more; variants stay variants."""
    for index, one in enumerate(layout):
        old = geometry.by_name[one.profile]
        for new in geometry.profiles:
            if _is_smaller(old, new) and _has_engines(new, old):
                yield index, new


def _has_engines(new: Profile, old: Profile) -> bool:
    return all(new.engines.get(kind, 0) >= number for kind, number in old.engines.items())


def _larger(geometry: Geometry, layout: Sequence[Instance], needs: Mapping[Instance, Need]) -> Iterator[Waste]:
    """Yield the instances that hold less than they could, each with the smallest profile that would do."""
    counts = Counter(one.profile for one in layout)
    for one in layout:
        if one not in needs:
            continue
        old, need = geometry.by_name[one.profile], needs[one]
        fit = [new for new in geometry.profiles if new.milli >= need.milli and new.memory >= need.memory]
        smaller = [new for new in fit if _is_smaller(new, old)]
        for new in sorted(smaller, key=lambda new: (new.size, new.compute, len(new.name), new.name)):
            if arrange(geometry, counts - Counter([old.name]) + Counter([new.name])) is not None:
                slices = old.size - new.size or old.compute - new.compute
                yield Waste("larger", slices, (Swap(one, new.name),))
                break


def _is_smaller(new: Profile, old: Profile) -> bool:
    return new.size <= old.size and new.compute <= old.compute and (new.size, new.compute) != (old.size, old.compute)
