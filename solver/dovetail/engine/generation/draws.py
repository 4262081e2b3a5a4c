"""Which nodes to plan anew next, drawn reproducibly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from random import Random

from dovetail.engine.construction.field import Field
from dovetail.engine.fleet.losses import Losses
from dovetail.engine.generation.fleet_rows import Lot
from dovetail.engine.generation.wanted import Wanted
from dovetail.engine.parts.lns import LEAST_LOSS, Idle, at_least, weighted
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.spec.workload import MILLI

SMALLEST = 4  # nodes planned anew together
_FIRST, _LARGEST = (10, 1.0), (24, 2.0)  # nodes of a set at first and at most, or times the root of all if more
_GROWTH = 0.1  # of its nodes, that a set has more or fewer than the one before
_FEW_NODES = 1000  # on so many, most nodes lose by the proof of a band; on more a few of them do
_LEADING = 0.5  # of the nodes of a set led by the proof of a band: those that lose
_STREAK = 3  # sets in a row that are solved to the end, until more nodes are planned anew
_HOSTS = 0.75  # of the nodes of a set about something that waits: those that can host it
_OPEN = 0.5  # of those: where its own replicas let one more come
_ALIKE = 2  # nodes without anything, of a lot, that may be planned anew together
_LEAST_IDLE = MILLI // 5  # as which a node without idle GPU counts where nodes are drawn


class Picture:
    """A state, what waits there, and the state as a field once anybody asks.

    Parameters
    ----------
    waiting : the shapes of which fewer are there than asked for, with how many there are.
    leads : what nodes lose by the proofs of what is looked for, as far as that is known.
    """

    def __init__(
        self, problem: Problem, state: State, waiting: Mapping[int, int], leads: Sequence[Losses] = ()
    ) -> None:
        self.problem, self.state, self.waiting, self.leads = problem, state, waiting, leads

    @cached_property
    def field(self) -> Field:
        """The state as a field."""
        return Field(self.problem, self.state)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Nodes to plan anew together; what waits that they are about, and the part of its hosts that are among them."""

    nodes: frozenset[int]
    about: tuple[int, float] | None = None


class Draws:
    """Draws sets of nodes.

    Every other set is about something that waits: nodes that can host it and a few others; less often about what was
    looked for in vain. The rest are nodes of any kind and of one accelerator, in turn. Nodes with idle GPU are drawn
    more often. Where it is known what nodes lose by a proof of the least cost, all sets are of those that lose more;
    by proofs of bands, on many nodes, the rest are: half a set of those that lose, and others of their accelerators.
    Sets grow while they are solved to the end, and shrink where they are not. Of more nodes they are larger, but for
    those of the least cost.

    Parameters
    ----------
    lots : of alike nodes, those to draw from.
    thrifty : whether cost is what is looked for.
    """

    def __init__(
        self, problem: Problem, lots: Sequence[Lot], wanted: Wanted, source: Random, *, thrifty: bool = False
    ) -> None:
        self._problem, self._lots, self._wanted, self._random = problem, lots, wanted, source
        self._thrifty = thrifty
        self._nodes = [node for lot in lots for node in lot.nodes]
        self._idle = Idle(problem)
        root = 0.0 if thrifty else sqrt(len(self._nodes))
        self._size, self._largest = (max(least, round(part * root)) for least, part in (_FIRST, _LARGEST))
        self._turn = self._streak = 0

    def next(self, picture: Picture) -> Drawn:
        """Return the next set."""
        self._turn += 1
        if picture.leads and self._thrifty:
            return Drawn(frozenset(self._losing(picture.leads[0].of(picture.state), picture.state)))
        nodes = self._nodes
        if self._turn % 2 and len(nodes) > _FEW_NODES and (led := self._led(picture)):
            return Drawn(frozenset(led))
        if self._turn % 4 == 1:
            model = self._problem.nodes[self._random.choice(nodes)].accelerator
            nodes = [node for node in nodes if self._problem.nodes[node].accelerator == model]
            return Drawn(frozenset(self._idlest(picture, nodes, self._size)))
        size = min(self._size, len(nodes))
        if self._turn % 2 or not picture.waiting:
            return Drawn(frozenset(self._idlest(picture, nodes, size)))
        shape = self._wanted.draw(picture.waiting)
        hosts = [node for lot in self._lots if shape in lot.shapes for node in lot.nodes]
        first = self._hosts(picture, shape, hosts, min(len(hosts), int(_HOSTS * size)))
        taken = set(first)
        rest = [node for node in nodes if node not in taken]
        chosen = frozenset([*first, *self._random.sample(rest, size - len(first))])
        return Drawn(chosen, (shape, len(first) / max(1, len(hosts))))

    def learn(self, drawn: Drawn, *, closed: bool, found: bool) -> None:
        """Take what came of a set: whether it was solved to the end, and whether anything better was found.

        More nodes are planned anew after several sets that were solved to the end, fewer after one that was not.
        """
        if drawn.about is not None:
            self._wanted.learn(*drawn.about, found=found)
        self._streak = self._streak + 1 if closed else 0
        if not closed:
            self._size = max(self._size - self._change, SMALLEST)
        elif self._streak >= _STREAK:
            self._size, self._streak = min(self._size + self._change, self._largest), 0

    @property
    def _change(self) -> int:
        return max(1, int(_GROWTH * self._size))

    def _hosts(self, picture: Picture, shape: int, hosts: Sequence[int], size: int) -> list[int]:
        """Draw nodes that can host a shape, half of them where its own replicas let one more come."""
        crowded = picture.field.gates.crowded(shape)
        open_to = self._idlest(picture, [node for node in hosts if not crowded[node]], ceil(_OPEN * size))
        taken = set(open_to)
        rest = [node for node in hosts if node not in taken]
        return [*open_to, *self._idlest(picture, rest, size - len(open_to))]

    def _losing(self, losses: Mapping[int, float], state: State) -> list[int]:
        """Draw nodes, those that lose more more often; of alike nodes without anything few, as they lose alike."""
        pool: list[int] = []
        for lot in self._lots:
            idle = [node for node in lot.nodes if not state.fill(node).slots]
            pool += [*(node for node in lot.nodes if state.fill(node).slots), *idle[:_ALIKE]]
        return weighted(self._random, at_least({node: losses[node] for node in pool}, LEAST_LOSS), self._size)

    def _led(self, picture: Picture) -> list[int]:
        """Draw nodes that lose by one of the proofs that lead, in turn, and idle ones of the same accelerators."""
        if not picture.leads:
            return []
        losses = picture.leads[self._turn // 2 % len(picture.leads)].of(picture.state)
        losing = {node: lost for node in self._nodes if (lost := losses.get(node, 0.0)) > 0}
        first = weighted(self._random, losing, ceil(_LEADING * self._size))
        models = {self._problem.nodes[node].accelerator for node in first}
        alike = (node for node in self._nodes if self._problem.nodes[node].accelerator in models)
        taken = set(first)
        rest = [node for node in alike if node not in taken]
        return [*first, *self._idlest(picture, rest, self._size - len(first))] if first else []

    def _idlest(self, picture: Picture, nodes: Sequence[int], size: int) -> list[int]:
        """Draw some nodes, those with idle GPU more often."""
        idle = {node: max(_LEAST_IDLE, self._idle.of(picture.state, node)) for node in nodes}
        return weighted(self._random, idle, size)
