"""What is protected on a node, and who comes to it: the terms in which bounds beside what runs today are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dovetail.problem import Problem
from dovetail.rules.quota import requested_of
from dovetail.spec import Node
from dovetail.spec.workload import MILLI

PARTS = 2520  # of a GPU: what up to ten share is told without a rest


class Stay(NamedTuple):
    """A protected replica where it runs; `cut` tells whether on a MIG instance."""

    shape: int
    gpus: tuple[int, ...]
    cut: bool = False


class Comer(NamedTuple):
    """A replica of a shape that comes to a node: `new` where it is one more than are protected."""

    shape: int
    new: bool


Rooms = Mapping[Comer, int]


@dataclass(frozen=True)
class Contents:
    """What is protected on one node, by its position in the Problem's list, and on others that are alike.

    Parameters
    ----------
    times : how many nodes there are with such contents (`form`), this one among them.
    """

    problem: Problem
    node: int
    stays: Sequence[Stay]
    times: int = 1

    @cached_property
    def form(self) -> Hashable:
        """What decides all that is told here: equal for two nodes of a kind whose contents make no difference."""
        node = self.problem.nodes[self.node]
        healthy, by_gpus = set(node.healthy_gpus()), dict[tuple[int, ...], list[tuple[int, bool]]]()
        for stay in self.stays:
            by_gpus.setdefault(stay.gpus, []).append((stay.shape, stay.cut))
        several = Counter(gpu for gpus in by_gpus for gpu in gpus)
        if any(count > 1 for count in several.values()):  # who shares one GPU has others beside it
            return names_of(node), capacity_of(node), tuple(self.stays)
        contents = ((len(gpus), len(healthy & set(gpus)), tuple(sorted(own))) for gpus, own in by_gpus.items())
        return names_of(node), capacity_of(node), tuple(sorted(contents))

    @cached_property
    def free(self) -> tuple[int, ...]:
        """What is left beside all of it (`left`)."""
        return self.left(self.stays)

    @property
    def untouched(self) -> int:
        """The healthy GPUs that it leaves alone."""
        return self.free[-2] // PARTS

    @cached_property
    def _known(self) -> dict[tuple[Stay, ...], tuple[tuple[int, ...], list[tuple[int, ...]]]]:
        return {}

    def beside(self, kept: tuple[Stay, ...]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        """Return what is left beside some that stay, and what each of them would free; see `left` and `freed`."""
        if kept not in self._known:
            self._known[kept] = self.left(kept), list(self.freed(kept))
        return self._known[kept]

    def left(self, kept: Sequence[Stay]) -> tuple[int, ...]:
        """Return what is left beside some: CPU, memory, resources, untouched GPUs in parts, thousandths of GPUs."""
        node = self.problem.nodes[self.node]
        requests = [self.problem.shapes[stay.shape].request for stay in kept]
        *most, _, _ = capacity_of(node)
        hosts = (
            amount - sum(requested_of(request, name) for request in requests)
            for name, amount in zip(names_of(node), most, strict=True)
        )
        taken = {gpu for stay in kept for gpu in stay.gpus}
        loads: Counter[int] = Counter()
        for stay, request in zip(kept, requests, strict=True):
            for gpu in stay.gpus:
                loads[gpu] += self._load(stay) if request.partial else MILLI
        healthy = node.healthy_gpus()
        idle = sum(MILLI - min(MILLI, loads[gpu]) for gpu in healthy)
        return (*hosts, PARTS * len(set(healthy) - taken), idle)

    def freed(self, kept: Sequence[Stay]) -> Iterator[tuple[int, ...]]:
        """Yield what each of some that stay would free of these at the most.

        Of a GPU that several share each frees a part, and all of them together all.
        """
        sharing = Counter(stay.gpus[0] for stay in kept if self.problem.shapes[stay.shape].request.partial)
        names = names_of(self.problem.nodes[self.node])
        for stay in kept:
            request = self.problem.shapes[stay.shape].request
            parts, load = request.gpus * PARTS, request.gpus * MILLI
            if request.partial:
                parts, load = -(-PARTS // sharing[stay.gpus[0]]), self._load(stay)
            yield (*(requested_of(request, name) for name in names), parts, load)

    def _load(self, stay: Stay) -> int:
        """Return the thousandths of its GPU that a share takes, none for an instance, whose GPU may be cut anew."""
        return 0 if stay.cut else self.problem.load(stay.shape, self.problem.nodes[self.node])

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """The shapes, each with how many of it are protected here."""
        return tuple(Counter(stay.shape for stay in self.stays).items())

    @cached_property
    def by_gpu(self) -> tuple[tuple[Stay, ...], ...]:
        """Those that take parts of a GPU, GPU by GPU."""
        found: dict[int, list[Stay]] = {}
        for stay in self.stays:
            if self.problem.shapes[stay.shape].request.partial:
                found.setdefault(stay.gpus[0], []).append(stay)
        return tuple(tuple(stays) for _, stays in sorted(found.items()))


@dataclass(frozen=True)
class Lot:
    """Nodes of a kind that no rule tells apart.

    Parameters
    ----------
    counts : per shape, the variables that count a replica of it here: on the kind, and on a cell of it.
    closed : the shapes of which none may come anew.
    bare : how many nodes there are where nothing is protected; `contents` are those of the others, alike ones once.
    """

    counts: Mapping[int, tuple[int, ...]]
    closed: frozenset[int]
    bare: int
    contents: tuple[Contents, ...]

    @cached_property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.bare + sum(contents.times for contents in self.contents)

    @cached_property
    def protected(self) -> Mapping[int, int]:
        """Per shape, how many are protected on all of them."""
        found: Counter[int] = Counter()
        for contents in self.contents:
            for shape, count in contents.shapes:
                found[shape] += contents.times * count
        return found


def names_of(node: Node) -> tuple[str, ...]:
    """Return what a node has beside its GPUs, in the order of `Contents.left`."""
    return ("cpu", "memory", *sorted(node.resources))


def capacity_of(node: Node) -> tuple[int, ...]:
    """Return what an empty node has in each of the dimensions of `Contents.left`."""
    healthy = len(node.healthy_gpus())
    resources = (node.resources[name] for name in sorted(node.resources))
    return (node.cpu, node.memory, *resources, healthy * PARTS, healthy * MILLI)
