"""Node patterns: what one node of a class holds, and the LP that mixes them (E2, E8).

max  sum_s v_s z_s
z_s <= sum_cp a_ps y_cp    (price of a shape)        0 <= z_s <= d_s
sum_p y_cp <= N_c          (price of a node)         y_cp >= 0

A pattern with more of a shape than is left to place takes part only up to that, so it is switched off as demand
shrinks: what the LP mixes could then not be rounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import highspy
import numpy as np

from dovetail.model.state import Fill, Slot
from dovetail.problem import Problem

Pattern = tuple[tuple[Slot, int], ...]


def pattern_of(problem: Problem, fill: Fill) -> Pattern:
    """Return a node's contents with its shared GPUs numbered by load, so that equal contents are equal patterns."""
    gpus: dict[int, list[tuple[int, str, int]]] = {}
    for slot, count in fill.slots.items():
        if slot.gpu >= 0:
            gpus.setdefault(slot.gpu, []).append((slot.shape, slot.profile, count))

    def load(contents: list[tuple[int, str, int]]) -> int:
        return sum(count * problem.shapes[shape].request.gpu_milli for shape, _, count in contents)

    shared = sorted((sorted(contents) for contents in gpus.values()), key=lambda c: (-load(c), c))
    slots = [(slot, count) for slot, count in fill.slots.items() if slot.gpu < 0]
    slots += [(Slot(shape, gpu, profile), n) for gpu, contents in enumerate(shared) for shape, profile, n in contents]
    return tuple(sorted(slots))


def counts_of(pattern: Pattern) -> Counter[int]:
    """Return the replicas per shape of a pattern."""
    total: Counter[int] = Counter()
    for slot, count in pattern:
        total[slot.shape] += count
    return total


@dataclass(frozen=True, slots=True)
class Mixture:
    """An LP solution: its value, uses of each column's pattern, prices of shapes, and of a node per class."""

    value: float
    uses: Mapping[int, float]
    prices: Mapping[int, float]
    nodes: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Column:
    """A pattern of a class of nodes, and its replicas per shape as far as anybody asks for them."""

    node_class: int
    pattern: Pattern
    counts: Mapping[int, int]


class Master:
    """The LP over the patterns known so far, solved again and again from where it stood.

    Parameters
    ----------
    sizes : nodes per class index.
    demand, worth : replicas asked for and value of one, per shape index.
    """

    def __init__(self, sizes: Mapping[int, int], demand: Mapping[int, int], worth: Mapping[int, float]) -> None:
        self.sizes = dict(sizes)
        self.demand = dict(demand)
        self.worth = worth
        self.columns: list[Column] = []
        self._known: set[tuple[int, Pattern]] = set()
        self._on: list[bool] = []
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._row = {shape: row for row, shape in enumerate(sorted(demand))}
        self._size_row = {c: len(self._row) + row for row, c in enumerate(sorted(sizes))}
        for limit in [0.0] * len(self._row) + [float(sizes[c]) for c in self._size_row]:
            self._highs.addRow(-np.inf, limit, 0, np.array([], dtype=np.int32), np.array([]))
        for (
            shape,
            row,
        ) in self._row.items():  # the first columns, in the order of the rows: what is placed of each shape
            self._add_column(worth[shape], float(demand[shape]), {row: 1.0})

    def _add_column(self, cost: float, limit: float, entries: Mapping[int, float]) -> None:
        rows, values = np.array(list(entries), dtype=np.int32), np.array(list(entries.values()))
        self._highs.addCol(cost, 0.0, limit, len(entries), rows, values)

    def add(self, node_class: int, pattern: Pattern) -> bool:
        """Add a pattern of a class; tell whether it is new."""
        if (node_class, pattern) in self._known:
            return False
        self._known.add((node_class, pattern))
        column = Column(node_class, pattern, {s: n for s, n in counts_of(pattern).items() if s in self._row})
        entries = {self._row[shape]: -float(count) for shape, count in column.counts.items()}
        entries[self._size_row[node_class]] = 1.0
        self.columns.append(column)
        self._on.append(self._usable(column))
        self._add_column(0.0, np.inf if self._on[-1] else 0.0, entries)
        return True

    def _usable(self, column: Column) -> bool:
        return self.sizes[column.node_class] > 0 and self.times(column) > 0

    def times(self, column: Column) -> int:
        """Return how many nodes may take a pattern until nodes run out or it has more than is left to place."""
        return min([self.sizes[column.node_class], *(self.demand[s] // n for s, n in column.counts.items())])

    def take(self, column: Column, times: int) -> None:
        """Count nodes that take a pattern, and what they hold, as settled; `refresh` tells the LP."""
        self.sizes[column.node_class] -= times
        for shape, count in column.counts.items():
            self.demand[shape] -= times * count

    def reset(self, sizes: Mapping[int, int], demand: Mapping[int, int]) -> None:
        """Start again from other nodes and demands, with all patterns known so far; `refresh` tells the LP."""
        self.sizes, self.demand = dict(sizes), dict(demand)

    def refresh(self) -> None:
        """Tell the LP about nodes and demand that are left."""
        for shape, row in self._row.items():
            self._highs.changeColBounds(row, 0.0, float(self.demand[shape]))
        for node_class, row in self._size_row.items():
            self._highs.changeRowBounds(row, -np.inf, float(self.sizes[node_class]))
        for index, column in enumerate(self.columns):
            usable = self._usable(column)
            if usable != self._on[index]:
                self._on[index] = usable
                self._highs.changeColBounds(len(self._row) + index, 0.0, np.inf if usable else 0.0)

    def solve(self) -> Mixture:
        """Solve the LP over the known patterns, nodes and demands as last told."""
        self._highs.run()
        solution = self._highs.getSolution()
        primal, dual = solution.col_value[len(self._row) :], solution.row_dual
        uses = {index: times for index, times in enumerate(primal) if times > 1e-9}
        prices = {shape: max(0.0, dual[row]) for shape, row in self._row.items()}
        nodes = {node_class: dual[row] for node_class, row in self._size_row.items()}
        return Mixture(self._highs.getInfo().objective_function_value, uses, prices, nodes)

    def worth_of(self, column: Column) -> float:
        """Return the value of all replicas of a pattern."""
        return sum(self.worth[shape] * count for shape, count in column.counts.items())
