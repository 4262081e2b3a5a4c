"""The rows of a whole fleet for those who fill it node by node.

A fleet's rows (`proof.fleet`) count replicas per kind of node, and per cell of it where rules ask where they are.
Nodes that none of these questions tells apart form a *lot*. What nodes hold is *supply*: per shape and set of lots
that are all one to the rows, as much counts as the LP likes, up to what is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from dovetail.engine.fleet.plots import widened
from dovetail.model.state import State
from dovetail.proof.cells import Plot
from dovetail.proof.fleet import FleetModel
from dovetail.proof.kinds import Kind
from dovetail.proof.lagrangian import PlainRow
from dovetail.proof.without_today import twins_of

Entries = Mapping[int, float]  # by row


@dataclass(frozen=True, slots=True)
class Lot:
    """Alike nodes that may be planned anew.

    Parameters
    ----------
    nodes : by their position in the Problem's node list.
    rows : the row that a replica of each shape supplies, by one.
    """

    kind: Kind
    nodes: tuple[int, ...]
    rows: Mapping[int, int]

    @property
    def gpus(self) -> int:
        """The healthy GPUs of a node, 1 where it has none."""
        return max(1, len(self.kind.node.healthy_gpus()))


@dataclass(frozen=True, slots=True)
class Counted:
    """Something that rows count: its least and greatest value, and what one of it is in every row.

    `shape` is the shape whose admitted replicas it counts, -1 for anything else; `alike` are all shapes that it
    counts, which only today's state tells apart. They are worth what is wished for, unless `worth` says otherwise.
    """

    low: float
    high: float
    entries: Entries
    shape: int = -1
    alike: tuple[int, ...] = ()
    worth: float | None = None


@dataclass(slots=True)
class FleetRows:
    """Rows `sum of what is counted <= limit + supply`; what stays on nodes outside the lots is in the limits."""

    limits: list[float] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    lots: list[Lot] = field(default_factory=list)

    def row(self, limit: float) -> int:
        """Add a row and return its number."""
        self.limits.append(limit)
        return len(self.limits) - 1


def fleet_rows(fleet: FleetModel, state: State, free: Collection[int]) -> FleetRows:
    """Return the rows of a fleet whose `free` nodes are planned anew, while others hold what a state says."""
    draft = _Draft(fleet)
    originals = _originals(fleet)
    for position, kind in enumerate(fleet.kinds):
        own = _in_terms_of(kind, originals)
        alone = [s for s in fleet.counts_of[position] if not fleet.problem.shapes[s].workload.joint]
        for plot in widened(fleet, position)[0]:
            supplied = {s: draft.supply(position, plot, s) for s in alone}
            rows = {s: row for twin, row in supplied.items() for s in originals[twin]}
            draft.stay(plot, rows, state, free)
            nodes = tuple(node for node in plot.members if node in free)
            if nodes:
                draft.found.lots.append(Lot(own, nodes, rows))
        draft.stay_together(position, originals, state, free)
    found = draft.found
    found.counted += draft.counted(_together(fleet, originals, state))
    found.counted = [_in_own_terms(counted, originals) for counted in found.counted]
    return found


def _in_own_terms(counted: Counted, originals: Mapping[int, list[int]]) -> Counted:
    if counted.shape < 0:
        return counted
    alike = originals[counted.shape]
    return replace(counted, shape=alike[0], alike=tuple(alike))


class _Draft:
    """The fleet's rows as they are made over from counts on kinds and cells to supply."""

    def __init__(self, fleet: FleetModel) -> None:
        self.found = FleetRows()
        self._fleet = fleet
        self._admitted = {v: s.index for s in fleet.problem.shapes for v in fleet.admitted_shape(s.index).terms}
        self._held = {v: (k, s) for k, counts in enumerate(fleet.counts_of) for s, v in counts.items()}
        for k, cells in enumerate(fleet.cells_of):
            self._held.update({cell.variable: (k, s) for s, found in cells.items() for cell in found})
        self._asked: dict[int, int] = {}
        self._by_variable: dict[int, dict[int, float]] = defaultdict(dict)
        self._supplied: dict[tuple[int, frozenset[tuple[int, float]]], int] = {}
        for row in fleet.rows:
            self._enter(row)

    def _enter(self, row: PlainRow) -> None:
        shape = self._adds_up(row)
        if self._is_a_sum(row) or (shape is not None and row.coefficients[-1] < 0):
            return  # true of whole nodes, and of what counts up to supply
        if not self._fleet.in_use.keys().isdisjoint(row.variables):
            return  # of nodes, which patterns pay for themselves
        number = self.found.row(row.upper)
        if shape is not None:
            self._asked[shape] = number
        for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
            self._by_variable[variable][number] = coefficient

    def _adds_up(self, row: PlainRow) -> int | None:
        """Return the shape of which a row says that as many are admitted as all kinds hold, if it says that."""
        shape = self._admitted.get(row.variables[-1])
        counts = {c[shape] for c in self._fleet.counts_of if shape in c} if shape is not None else set[int]()
        alike = len(set(row.coefficients[:-1])) <= 1 and abs(row.coefficients[-1]) == 1 and row.upper == 0
        return shape if alike and counts == set(row.variables[:-1]) else None

    def _is_a_sum(self, row: PlainRow) -> bool:
        """Tell whether a row only says that what is on a kind is on its cells."""
        held = {self._held.get(variable) for variable in row.variables}
        return len(held) == 1 and None not in held and min(row.coefficients) < 0 < max(row.coefficients)

    def supply(self, kind: int, plot: Plot, shape: int) -> int:
        """Return the row that a replica on a plot supplies."""
        count = self._fleet.counts_of[kind][shape]
        cell = next(cell for cell in self._fleet.cells_of[kind][shape] if plot.lies_in(cell))
        total: dict[int, float] = {}
        for variable in {count, cell.variable}:
            for row, amount in self._by_variable.get(variable, {}).items():
                total[row] = total.get(row, 0.0) + amount
        entries = {row: amount for row, amount in total.items() if amount}
        if entries == {self._asked[shape]: -1.0}:
            return self._asked[shape]
        key = shape, frozenset(entries.items())
        if key not in self._supplied:
            self._supplied[key] = self.found.row(0.0)
            self.found.counted.append(Counted(0.0, float("inf"), {**entries, self._supplied[key]: 1.0}))
        return self._supplied[key]

    def stay(self, plot: Plot, rows: Mapping[int, int], state: State, free: Collection[int]) -> None:
        """Count what stays on a plot's nodes that are not free, by the row that each shape supplies."""
        for node in plot.members:
            for s, count in state.fill(node).counts().items() if node not in free else ():
                if s in rows:
                    self.found.limits[rows[s]] += count

    def stay_together(
        self, kind: int, originals: Mapping[int, list[int]], state: State, free: Collection[int]
    ) -> None:
        """Count what stays of a kind's shapes that stand or fall together, of which patterns know nothing."""
        shapes = self._fleet.problem.shapes
        joint = {s: twin for twin in self._fleet.counts_of[kind] for s in originals[twin]}
        joint = {s: twin for s, twin in joint.items() if shapes[twin].workload.joint}
        for plot in self._fleet.plots_of[kind] if joint else ():
            held = {s for n in plot.members if n not in free for s in state.fill(n).counts()}
            rows = {s: self.supply(kind, plot, joint[s]) for s in sorted(held & joint.keys())}
            self.stay(plot, rows, state, free)

    def counted(self, together: Mapping[int, int]) -> Iterator[Counted]:
        """Yield what rows count beside supply; what stands or falls together is there as often as it stays."""
        model = self._fleet.model
        for variable, (low, high) in enumerate(zip(model.lower, model.upper, strict=True)):
            if variable not in self._held and variable in self._by_variable:
                shape = self._admitted.get(variable, -1)
                least, most = (together[shape],) * 2 if shape in together else (low, high)
                yield Counted(least, most, self._by_variable[variable], shape)


def _together(fleet: FleetModel, originals: Mapping[int, list[int]], state: State) -> Mapping[int, int]:
    """Return how many replicas a state has of every shape of the fleet that stands or falls together with others."""
    admitted = state.admitted()
    joint = (shape.index for shape in fleet.problem.shapes if shape.workload.joint)
    return {twin: sum(admitted[s] for s in originals[twin]) for twin in joint}


def _originals(fleet: FleetModel) -> Mapping[int, list[int]]:
    """Return the Problem's shapes for every shape of the fleet, to which it is all one what runs today.

    A fleet with prices knows nothing of what is held free, which is on no node's account.
    """
    found: dict[int, list[int]] = {shape.index: [] for shape in fleet.problem.shapes}
    for shape, twin in twins_of(fleet.original, fleet.problem).items():
        found[twin].append(shape)
    return found


def _in_terms_of(kind: Kind, originals: Mapping[int, list[int]]) -> Kind:
    """Return a kind with the Problem's own shapes."""

    def own(shapes: Collection[int]) -> list[int]:
        return sorted(s for twin in shapes for s in originals[twin])

    return replace(
        kind,
        shapes=tuple(own(kind.shapes)),
        sides=tuple(side.named(originals) for side in kind.sides),
        groups=tuple(frozenset(own(group)) for group in kind.groups),
        most={s: most for twin, most in kind.most.items() for s in originals[twin]},
    )
