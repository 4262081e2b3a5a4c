"""Where a plan and a bound part: what each node earns less than a proof lets it earn, and who is missing.

A proof prices what nodes hold and says what a node of a kind earns at the most, and what one more replica of a shape
would gain after all that it takes. Beside rows that are not met to their end, what the nodes earn less and what those
who wait would gain adds up to the gap between plan and bound (complementary slackness). A node in use pays for that,
so an idle one may lose as well: what it would earn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property

from dovetail.model.score import view_of
from dovetail.model.state import State
from dovetail.objectives.fragmentation import Fragmentation
from dovetail.placement.fragments import Judge
from dovetail.placement.room import Room
from dovetail.proof.cells import Plot
from dovetail.proof.fleet import FleetModel
from dovetail.proof.fleet_models import FleetProof
from dovetail.proof.without_today import twins_of


class Losses:
    """What nodes lose by a proof, for any state, in the unit of its tier."""

    def __init__(self, fleet: FleetModel, proof: FleetProof) -> None:
        self.proof = proof
        self._fleet = fleet
        self._twins = twins_of(fleet.original, fleet.problem)
        self._costs = defaultdict(int, proof.costs(fleet))
        limits = (block.limit(self._costs) for block in fleet.blocks(proof.prices))
        self._most = [limit // kind.size for kind, limit in zip(fleet.kinds, limits, strict=True)]
        self._last: tuple[State, Mapping[int, float]] = State(), {}

    def of(self, state: State) -> Mapping[int, float]:
        """Return what nodes lose in a state, taking those from the last one asked that stayed as they were.

        Nodes that nobody can be on are left out.
        """
        before, known = self._last
        if state is before:
            return known
        found = {
            node: known[node] if node in known and state.fill(node) == before.fill(node) else self._lost(node, state)
            for node in self._place
        }
        self._last = state, found
        return found

    def wanted(self, state: State) -> Mapping[int, float]:
        """Return what the shapes would gain of which more may come in a state, 0 where that is nothing."""
        admitted, upper = state.totals().admitted, self._fleet.model.upper
        found = {}
        for shape, twin in self._twins.items():
            (variable,) = self._fleet.admitted_shape(twin).terms
            short = min(self._fleet.original.shapes[shape].demand, upper[variable]) - admitted[shape]
            if short > 0:
                found[shape] = max(0, self._costs[variable]) * short / self.proof.denominator
        return found

    def hosts(self, shape: int) -> Sequence[Sequence[int]]:
        """Return the nodes that a shape may be on, those together that no rule about it tells apart."""
        twin, found = self._twins.get(shape, -1), dict[Hashable, list[int]]()
        for cells, plots in zip(self._fleet.cells_of, self._fleet.plots_of, strict=True):
            for plot in plots if twin in cells else ():
                cell = next(cell for cell in cells[twin] if plot.lies_in(cell))
                found.setdefault(frozenset(cell.answers.items()), []).extend(plot.members)
        return list(found.values())

    def _lost(self, node: int, state: State) -> float:
        kind, plot = self._place[node]
        held = state.fill(node).counts()
        earned = sum(self._earns(kind, plot, shape) * count for shape, count in held.items())
        paid = sum(self._costs[variable] * number for variable, number in self._in_use(kind, node, state))
        return max(0, self._most[kind] - earned - paid) / self.proof.denominator

    def _earns(self, kind: int, plot: Plot, shape: int) -> int:
        """Return what a replica earns on a plot of a kind."""
        twin = self._twins.get(shape)
        count = self._fleet.counts_of[kind].get(twin) if twin is not None else None
        if twin is None or count is None:
            return 0
        cells = (cell.variable for cell in self._fleet.cells_of[kind][twin] if plot.lies_in(cell))
        return sum(self._costs[variable] for variable in {count, *cells})

    def _in_use(self, kind: int, node: int, state: State) -> Iterator[tuple[int, int]]:
        """Yield what counts nodes and GPUs in use, and the use of idle ones, with what a node adds to that."""
        used, gpus_used = self._fleet.used_of[kind], self._fleet.gpus_used_of[kind]
        fill = state.fill(node)
        if (use := self._fleet.use_of[kind]) is not None:
            yield use, self._use(node, state)
        if used is not None and fill.slots:
            yield used, 1
        if gpus_used is not None:
            shapes = self._fleet.original.shapes
            whole = sum(shapes[slot.shape].request.gpus * count for slot, count in fill.slots.items())
            yield gpus_used, whole + len({slot.gpu for slot in fill.slots if slot.gpu >= 0})

    def _use(self, node: int, state: State) -> int:
        """Return the use of what a node leaves idle in a state."""
        problem = self._fleet.original
        made = problem.nodes[node]
        room = view_of(problem, state).rooms.get(made.name) or Room(made, problem.spec.accelerators)
        found = self._judge.of_room(room)
        return found.idle - found.amount

    @cached_property
    def _judge(self) -> Judge:
        return next(tier.judge for tier in self._fleet.original.tiers if isinstance(tier, Fragmentation))

    @cached_property
    def _place(self) -> Mapping[int, tuple[int, Plot]]:
        """The kind and the plot of every node."""
        plots = ((kind, plot) for kind, found in enumerate(self._fleet.plots_of) for plot in found)
        return {node: (kind, plot) for kind, plot in plots for node in plot.members}
