"""What the contents of a node leave idle for the expected work (S5.5), as far as patterns tell."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dovetail.engine.contents.gpu_contents import Floats, Ints
from dovetail.engine.contents.patterns import Pattern
from dovetail.mig import Geometry
from dovetail.objectives.fragmentation import fragmentation_of
from dovetail.problem import Problem
from dovetail.proof.idle import Held, IdleUse, Useful
from dovetail.proof.kinds import Kind
from dovetail.spec import Node
from dovetail.spec.workload import MILLI


@dataclass(frozen=True)
class Content:
    """What one GPU holds beside whole requests: the thousandths that are left, or the instances in use."""

    left: int
    held: Held = ()


@dataclass(frozen=True)
class Idling:
    """The use of what contents of a kind's nodes leave idle, by the CPU that they leave.

    Parameters
    ----------
    useful : that of an empty node, with so much `cpu`.
    asks : what a replica of each shape asks for: CPU, whole GPUs, thousandths of them.
    geometry : what GPUs can be cut into, None where they cannot.
    """

    useful: Useful
    cpu: int
    asks: Mapping[int, tuple[int, int, int]]
    geometry: Geometry | None

    @staticmethod
    def of(problem: Problem, kind: Kind) -> Idling | None:
        """Return it for a kind of nodes, None where nobody asks or idle GPU does not count there."""
        return Idling.on(problem, kind.node, kind.shapes)

    @staticmethod
    def on(problem: Problem, node: Node, shapes: Iterable[int]) -> Idling | None:
        """Return the same for a node and the shapes that may be there."""
        tier = fragmentation_of(problem.tiers)
        useful = None if tier is None else IdleUse(problem, tier).of(node)
        if useful is None:
            return None
        requests = {s: problem.request(s, node) for s in shapes}
        asks = {s: (request.cpu, request.gpus, request.gpu_milli) for s, request in requests.items()}
        return Idling(useful, node.cpu, asks, problem.geometry(node))

    @property
    def most(self) -> int:
        """The use of a node that holds nothing."""
        return self.useful.untouched[-1]

    def lost(self, pattern: Pattern) -> int:
        """Return how much less use what a pattern leaves is of than an empty node."""
        if pattern not in self._known:
            self._known[pattern] = self._lost_by(pattern)
        return self._known[pattern]

    @cached_property
    def _known(self) -> dict[Pattern, int]:
        return {}

    def _lost_by(self, pattern: Pattern) -> int:
        cpu, whole = self.cpu, 0
        loads, held = Counter[int](), defaultdict[int, Counter[str]](Counter)
        for slot, count in pattern:
            own, gpus, milli = self.asks[slot.shape]
            cpu -= own * count
            if slot.gpu < 0:
                whole += gpus * count
            elif slot.profile:
                held[slot.gpu][slot.profile] += count
            else:
                loads[slot.gpu] += milli * count
        useful = self._beside(cpu)
        contents = [Content(MILLI, tuple(sorted(own.items()))) for own in held.values()]
        contents += [Content(max(0, MILLI - load)) for load in loads.values()]
        untouched = max(0, useful.gpus - whole - len(contents))
        return self.most - sum(self._use(useful, content) for content in contents) - useful.untouched[untouched]

    def _use(self, useful: Useful, content: Content) -> int:
        if content.held and self.geometry is not None:
            return useful.cut(self.geometry, content.held)
        return useful.shared[content.left]

    def _beside(self, cpu: int) -> Useful:
        """Return the use of what is idle where so much CPU is left: alike until the next class has enough."""
        step = bisect_right(self._steps, cpu)
        if step not in self._of:
            self._of[step] = self.useful.beside(cpu)
        return self._of[step]

    @cached_property
    def _steps(self) -> list[int]:
        return sorted({one.cpu for one in self.useful.classes})

    @cached_property
    def _of(self) -> dict[int, Useful]:
        return {}

    def __reduce__(self) -> tuple[type[Idling], tuple[Any, ...]]:
        """Leave out what was worked out once."""
        return Idling, (self.useful, self.cpu, self.asks, self.geometry)


class Leaving:
    """What contents leave idle at a price for each unit of use that is lost, beside all CPU.

    Parameters
    ----------
    idling : tells use; `price` is that.
    """

    def __init__(self, idling: Idling, price: float) -> None:
        self._idling, self._price = idling, price
        untouched = np.array(idling.useful.untouched) * price
        gpus = len(untouched) - 1
        self.each = float(untouched[-1]) / max(1, gpus)
        """What a GPU costs that nothing is left of, as an even part of an empty node."""
        self.uneven = untouched[-1] - untouched - self.each * np.arange(gpus, -1, -1)
        """By how many GPUs are untouched, what a node costs beyond the even parts of the others."""
        self._shared = np.array(idling.useful.shared) * price

    def rest(self, size: int) -> Floats:
        """Return what a GPU of so many steps earns by those that are left of it."""
        return self._shared[:: MILLI // size] if MILLI % size == 0 else np.zeros(size + 1)

    def lost(self, load: Ints) -> Floats:
        """Return what GPUs cost that so many thousandths are taken of, one after the other."""
        gpus = -(-load // MILLI)
        return np.asarray(self.each * gpus - self._shared[gpus * MILLI - load])

    def of(self, pattern: Pattern) -> float:
        """Return what a whole node costs."""
        return self._price * self._idling.lost(pattern)
