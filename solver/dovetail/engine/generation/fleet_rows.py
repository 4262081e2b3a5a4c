"""The rows of a whole fleet for those who fill it node by node.

A fleet's rows (`proof.fleet`) count replicas per kind of node, and per cell of it where rules ask where they are.
Nodes that none of these questions tells apart form a *lot*. What nodes hold is *supply*: per shape and set of lots
that are all one to the rows, as much counts as the LP likes, up to what is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from dovetail.engine.contents.patterns import Keys, key_of
from dovetail.engine.fleet.plots import widened
from dovetail.engine.generation.promises import promises
from dovetail.model.state import Slot, State
from dovetail.objectives.admitted import Admitted
from dovetail.objectives.slo import Shortfall
from dovetail.proof.cells import Plot
from dovetail.proof.fleet import FleetModel
from dovetail.proof.kinds import Kind
from dovetail.proof.lagrangian import PlainRow
from dovetail.proof.without_today import twins_of
from dovetail.spec.slo import host_of

Entries = Mapping[int, float]  # by row

_THERE = 1e-6  # of the worth of a replica, that it is there where it is worth what it serves: so that it is counted


@dataclass(frozen=True)
class Lot:
    """Alike nodes that may be planned anew.

    Parameters
    ----------
    nodes : by their position in the Problem's node list.
    rows : the row that a replica of each shape supplies, by one; by `keys` where these tell replicas apart.
    units : as how many of its shape a replica counts that is worth what it serves of a rate, where that is more than
        one; as `rows`.
    """

    kind: Kind
    nodes: tuple[int, ...]
    rows: Mapping[int, int]
    units: Mapping[int, int] = field(default_factory=dict)
    keys: Keys = field(default_factory=dict)

    def row(self, slot: Slot) -> int | None:
        """Return the row that a replica in a slot supplies, None where no row counts it."""
        return self.rows.get(key_of(self.keys, slot))

    @cached_property
    def shapes(self) -> frozenset[int]:
        """The shapes that its rows count."""
        apart = {number: shape for (shape, _), number in self.keys.items()}
        return frozenset(apart.get(key, key) for key in self.rows)

    @property
    def gpus(self) -> int:
        """The healthy GPUs of a node, 1 where it has none."""
        return max(1, len(self.kind.node.healthy_gpus()))


@dataclass(frozen=True, slots=True)
class Counted:
    """Something that rows count: its least and greatest value, and what one of it is in every row.

    `shape` is the shape whose admitted replicas it counts, -1 for anything else; `alike` are all shapes that it
    counts, which only today's state tells apart. One earns `each` times what is wished for of the shape that it
    `earns` for, if any, unless `worth` says otherwise. `short` is the weight of one of it among the thousandths that
    are missing of what was promised (`objectives.slo`).
    """

    low: float
    high: float
    entries: Entries
    shape: int = -1
    alike: tuple[int, ...] = ()
    worth: float | None = None
    earns: int = -1
    each: float = 1.0
    short: int = 0


@dataclass(slots=True)
class FleetRows:
    """Rows `sum of what is counted <= limit + supply`; what stays on nodes outside the lots is in the limits."""

    limits: list[float] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    lots: list[Lot] = field(default_factory=list)
    keys: Keys = field(default_factory=dict)

    def row(self, limit: float) -> int:
        """Add a row and return its number."""
        self.limits.append(limit)
        return len(self.limits) - 1


def fleet_rows(fleet: FleetModel, state: State, free: Collection[int]) -> FleetRows:
    """Return the rows of a fleet whose `free` nodes are planned anew, while others hold what a state says."""
    draft = _Draft(fleet)
    originals = _originals(fleet)
    keys = draft.found.keys = _keys(fleet, originals)
    for position, kind in enumerate(fleet.kinds):
        own = _in_terms_of(kind, originals)
        alone = [s for s in fleet.counts_of[position] if not fleet.problem.shapes[s].workload.joint]
        units = dict(_units(fleet, kind, alone, originals, keys))
        for plot in widened(fleet, position)[0]:
            supplied = {(s, mode): draft.supply(position, plot, s, mode) for s, mode in _ways(fleet, position, alone)}
            rows = {keys.get((s, mode), s): row for (twin, mode), row in supplied.items() for s in originals[twin]}
            lot = Lot(own, tuple(node for node in plot.members if node in free), rows, units, keys)
            draft.stay(plot, lot.row, state, free)
            if lot.nodes:
                draft.found.lots.append(lot)
        draft.stay_together(position, originals, state, free)
    found = draft.found
    found.counted += draft.counted(_together(fleet, originals, state))
    found.counted = [_in_own_terms(counted, originals) for counted in found.counted]
    return found


def _ways(fleet: FleetModel, kind: int, shapes: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Yield shapes on a kind with every way to be on a GPU there by which replicas of them are told apart."""
    told = {s for by_mode in fleet.modes_of for s in by_mode}
    for shape in shapes:
        modes = fleet.problem.modes(shape, fleet.kinds[kind].node) if shape in told else ("",)
        yield from ((shape, mode) for mode in modes)


def _keys(fleet: FleetModel, originals: Mapping[int, list[int]]) -> Keys:
    """Number the ways to be on a GPU of shapes that serve more on some instances than on others."""
    found: dict[tuple[int, str], int] = {}
    told = sorted({s for by_mode in fleet.modes_of for s in by_mode})
    for kind, counts in enumerate(fleet.counts_of):
        for twin, mode in _ways(fleet, kind, [s for s in told if s in counts]):
            for shape in originals[twin]:
                found.setdefault((shape, mode), len(fleet.original.shapes) + len(found))
    return found


def _units(
    fleet: FleetModel, kind: Kind, shapes: Iterable[int], originals: Mapping[int, list[int]], keys: Keys
) -> Iterator[tuple[int, int]]:
    """Yield, by key, as how many replicas one on a kind counts, of shapes that are worth what they serve.

    They ask for as many as serve the rate on the slowest of their hosts.
    """
    for twin in shapes:
        form = fleet.problem.shapes[twin]
        slo = form.workload.slo
        if slo is not None and form.workload.asks_rate and slo.rate:
            for mode in fleet.problem.modes(twin, kind.node) if form.request.partial else ("",):
                served = slo.rates.get(host_of(kind.node.accelerator, mode), 0)
                unit = form.workload.replicas * served // slo.rate
                yield from ((keys.get((shape, mode), shape), unit) for shape in originals[twin] if unit > 1)


def _in_own_terms(counted: Counted, originals: Mapping[int, list[int]]) -> Counted:
    if counted.earns >= 0:
        counted = replace(counted, earns=originals[counted.earns][0])
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
        for k, by_mode in enumerate(fleet.modes_of):
            self._held.update({variable: (k, s) for s, modes in by_mode.items() for variable in modes.values()})
        self._earned = dict(self._rates())
        self._counted = {s.index for s in fleet.problem.shapes if promises(s.workload) and not s.workload.asks_rate}
        self._short = dict(self._missing())
        self._asked: dict[int, int] = {}
        self._by_variable: dict[int, dict[int, float]] = defaultdict(dict)
        self._supplied: dict[tuple[int, frozenset[tuple[int, float]]], int] = {}
        for row in fleet.rows:
            self._enter(row)

    def _enter(self, row: PlainRow) -> None:
        shape = self._adds_up(row)
        at_most = shape is not None and row.coefficients[-1] < 0
        if self._is_a_sum(row) or (at_most and shape not in self._counted):
            return  # true of whole nodes, and of what counts up to supply
        if not self._fleet.in_use.keys().isdisjoint(row.variables):
            return  # of nodes, which patterns pay for themselves
        number = self.found.row(row.upper)
        if shape is not None and not at_most:
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

    def _rates(self) -> Iterator[tuple[int, int]]:
        """Yield the variables that tell what rates are worth as they are served, each with the shape that serves."""
        told = (self._fleet.tiers[t.name] for t in self._fleet.original.tiers if isinstance(t, Admitted))
        worths = {v for expression in told for v in expression.terms} - self._admitted.keys()
        for row in self._fleet.rows if any(s.workload.asks_rate for s in self._fleet.problem.shapes) else ():
            for variable in worths.intersection(row.variables):
                serving = {self._held[v][1] for v in row.variables if v in self._held}
                yield from ((variable, shape) for shape in serving)

    def _missing(self) -> Iterator[tuple[int, int]]:
        """Yield the variables that count what is missing of promises, each with its weight."""
        for tier in (tier for tier in self._fleet.original.tiers if isinstance(tier, Shortfall)):
            yield from ((v, -weight) for v, weight in self._fleet.tiers[tier.name].terms.items())

    def supply(self, kind: int, plot: Plot, shape: int, mode: str = "") -> int:
        """Return the row that a replica on a plot supplies, in one way to be on a GPU where these are told apart."""
        count = self._fleet.counts_of[kind][shape]
        cell = next(cell for cell in self._fleet.cells_of[kind][shape] if plot.lies_in(cell))
        by_mode = self._fleet.modes_of[kind].get(shape, {})
        total: dict[int, float] = {}
        for variable in {count, cell.variable, by_mode.get(mode, count)}:
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

    def stay(self, plot: Plot, row_of: Callable[[Slot], int | None], state: State, free: Collection[int]) -> None:
        """Count what stays on a plot's nodes that are not free, by the row that each replica supplies."""
        for node in plot.members:
            for slot, count in state.fill(node).slots.items() if node not in free else ():
                if (row := row_of(slot)) is not None:
                    self.found.limits[row] += count

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
            self.stay(plot, Lot(self._fleet.kinds[kind], (), rows).row, state, free)

    def counted(self, together: Mapping[int, int]) -> Iterator[Counted]:
        """Yield what rows count beside supply; what stands or falls together is there as often as it stays."""
        model = self._fleet.model
        for variable, (low, high) in enumerate(zip(model.lower, model.upper, strict=True)):
            if variable not in self._held and variable in self._by_variable:
                shape = self._admitted.get(variable, -1)
                least, most = (together[shape],) * 2 if shape in together else (low, high)
                serves = self._earned.get(variable, -1)
                value = self._fleet.problem.shapes[serves].role.value if serves >= 0 else 1
                by_rate = shape >= 0 and self._fleet.problem.shapes[shape].workload.asks_rate
                each = _THERE if by_rate else 1 / value
                entries, short = self._by_variable[variable], self._short.get(variable, 0)
                yield Counted(least, most, entries, shape, earns=max(serves, shape), each=each, short=short)


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
