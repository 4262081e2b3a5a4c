"""What idle GPU of a node is worth to the expected work at the most (S5.5).

The measure of fragmentation is what is idle, times the weight of all that is expected, less what each class could use
of it. What is useful is told GPU by GPU and by how many nobody is on: a node with idle thousandths r_j on shared GPUs
and f untouched ones, with less CPU than c left, has a use of

    sum_j r_j T(r_j) + 1000 f (S + U(f))

with T the weight of the shares that so much is enough for, S that of what one untouched GPU is enough for, and U that
of what asks for several and finds them, all of classes that ask for less CPU than c: the closed form of "Beware of
Fragmentation" (USENIX ATC 2023). A node has no more use than that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from dovetail.linear import Linear
from dovetail.mig import Geometry, fits
from dovetail.objectives.fragmentation import Fragmentation, fragmentation_of
from dovetail.placement.clients import equal_parts, uncut
from dovetail.placement.fragments import counts
from dovetail.placement.instances import profiles_for
from dovetail.spec import Accelerator, Expected, Node, Request
from dovetail.spec.workload import MILLI

if TYPE_CHECKING:
    from dovetail.problem import Problem
    from dovetail.proof.fleet import FleetModel

Held = tuple[tuple[str, int], ...]
"""Instances of one GPU that are in use: profiles, sorted, each with how many."""


class Asked(NamedTuple):
    """A class of expected requests on nodes of a kind.

    Parameters
    ----------
    cpu, gpus : what it asks for of the node, in milli-cores and whole GPUs.
    share : thousandths that a GPU which is not cut must have left for it, 0 where it may not be on such.
    profiles : of the MIG instances that it may be on.
    """

    cpu: int
    gpus: int
    share: int
    profiles: tuple[str, ...]
    weight: int


@dataclass(frozen=True)
class Useful:
    """The use of what is idle on a node, in thousandths of GPUs times weights.

    Parameters
    ----------
    gpus : how many healthy ones it has; `by_parts` tells whether they are shared by equal parts.
    classes : what is expected that the node has CPU and the accelerator for.
    """

    gpus: int
    by_parts: bool
    classes: tuple[Asked, ...]

    @staticmethod
    def on(node: Node, card: Accelerator, expected: Iterable[Expected]) -> Useful:
        """Return the use of what is idle on an empty node."""
        able = (one for one in expected if not one.accelerators or card.name in one.accelerators)
        classes = (_asked(one.on(card.name).request, node, card, one.weight) for one in able)
        fitting = Counter[Asked]()
        for one in classes:
            if one.cpu <= node.cpu:
                fitting[one._replace(weight=0)] += one.weight
        return Useful(
            len(node.healthy_gpus()), equal_parts(node), tuple(one._replace(weight=n) for one, n in fitting.items())
        )

    def __reduce__(self) -> tuple[type[Useful], tuple[int, bool, tuple[Asked, ...]]]:
        """Leave out what was worked out once."""
        return Useful, (self.gpus, self.by_parts, self.classes)

    def beside(self, cpu: int) -> Useful:
        """Return the use of what is idle where so much CPU is left."""
        return Useful(self.gpus, self.by_parts, tuple(one for one in self.classes if one.cpu <= cpu))

    @cached_property
    def untouched(self) -> tuple[int, ...]:
        """The use of so many GPUs that nobody is on, by their number."""
        several = Counter[int]()
        for one in self.classes:
            several[one.gpus if one.gpus > 1 else 0] += one.weight if one.gpus or one.share or one.profiles else 0
        enough = accumulate(several[count] for count in range(self.gpus + 1))
        return tuple(MILLI * count * weight for count, weight in enumerate(enough))

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """The use of a GPU that is not cut and has somebody on it, by the thousandths that it has left."""
        by_size = Counter[int]()
        for one in self.classes:
            if one.share:
                by_size[one.share] += one.weight
        enough = accumulate(by_size[left] for left in range(MILLI + 1))
        return tuple(left * weight for left, weight in enumerate(enough))

    def rests(self, parts: int) -> tuple[int, ...]:
        """Return the same by the parts that are left, of a GPU of so many.

        Of one that is shared by equal parts, any share that may be there is taken to find all of it.
        """
        return (self.shared[-1],) * (parts + 1) if self.by_parts else self.shared

    def cut(self, geometry: Geometry, held: Held) -> int:
        """Return the use of a GPU that is cut, with some instances in use."""
        if held not in self._known:
            there = dict(held)
            left = MILLI - sum(geometry.by_name[name].milli * count for name, count in held)
            more = {name for name in geometry.by_name if fits(geometry, there | {name: there.get(name, 0) + 1})}
            weight = sum(one.weight for one in self.classes if not more.isdisjoint(one.profiles))
            self._known[held] = max(0, left) * weight
        return self._known[held]

    @cached_property
    def _known(self) -> dict[Held, int]:
        return {}


def _asked(request: Request, node: Node, card: Accelerator, weight: int) -> Asked:
    outside = request.share is not None and uncut(request, node, card.memory)
    share = request.share.compute if request.share is not None and outside else 0
    profiles = tuple(profile.name for profile in profiles_for(request, card))
    return Asked(request.cpu, request.gpus, share, profiles, weight)


class IdleUse:
    """What idle GPU of a fleet is good for, where a tier asks.

    Parameters
    ----------
    tier : that one.
    """

    def __init__(self, problem: Problem, tier: Fragmentation) -> None:
        self.tier = tier
        self._problem = problem

    @staticmethod
    def asked_by(original: Problem, problem: Problem) -> IdleUse | None:
        """Return it for the tier of a Problem that asks, None where none does, or where places are held free.

        Parameters
        ----------
        problem : the same without what runs today and what is held free, which a fleet counts.
        """
        if original.spec.placeholders:
            return None
        tier = fragmentation_of(original.tiers)
        return None if tier is None else IdleUse(problem, tier)

    def of(self, node: Node) -> Useful | None:
        """Return the use of what is idle on a node, None where it does not count."""
        if node.accelerator is None or not counts(node):
            return None
        return Useful.on(node, self._problem.spec.accelerators[node.accelerator], self.tier.judge.expected)

    def useless(self, fleet: FleetModel) -> Linear:
        """Write what of the idle GPU nobody expected can use: all of it, less its use at the most."""
        weight, total = self.tier.judge.weight, Linear()
        for kind, there, use in zip(fleet.kinds, fleet.counts_of, fleet.use_of, strict=True):
            if use is not None:
                total.add(Linear.of(use, -1))
                total.constant += weight * MILLI * len(kind.node.healthy_gpus()) * kind.size
                for shape, variable in there.items():
                    total.add_term(variable, -weight * self.taken(shape, kind.node))
        return total

    def taken(self, shape: int, node: Node) -> int:
        """Return the thousandths of GPUs that are not idle with a replica of a shape on a node."""
        request, geometry = self._problem.request(shape, node), self._problem.geometry(node)
        if request.mig and geometry is not None:
            return geometry.by_name[request.mig].milli
        return request.gpu_milli
