"""Node patterns: what one node of a class holds, and the LP that mixes them (E2, E8).

max  sum_s v_s z_s
z_s <= sum_cp a_ps y_cp    (price of a shape)        0 <= z_s <= d_s
sum_p y_cp <= N_c          (price of a node)         y_cp >= 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np

from dovetail.model.state import Fill, Slot
from dovetail.problem import Problem

Pattern = tuple[tuple[Slot, int], ...]


def pattern_of(problem: Problem, fill: Fill) -> Pattern:
    """Return a node's contents with its shared GPUs numbered by load, so that equal contents are equal patterns."""
    gpus: dict[int, list[tuple[int, int]]] = {}
    for slot, count in fill.slots.items():
        if slot.gpu >= 0:
            gpus.setdefault(slot.gpu, []).append((slot.shape, count))

    def load(contents: list[tuple[int, int]]) -> int:
        return sum(count * problem.shapes[shape].request.gpu_milli for shape, count in contents)

    shared = sorted((sorted(contents) for contents in gpus.values()), key=lambda c: (-load(c), c))
    slots = [(slot, count) for slot, count in fill.slots.items() if slot.gpu < 0]
    slots += [(Slot(shape, gpu), count) for gpu, contents in enumerate(shared) for shape, count in contents]
    return tuple(sorted(slots))


def counts_of(pattern: Pattern) -> Counter[int]:
    """Return the replicas per shape of a pattern."""
    total: Counter[int] = Counter()
    for slot, count in pattern:
        total[slot.shape] += count
    return total


@dataclass(frozen=True, slots=True)
class Mixture:
    """An LP solution: its value, how often each class's patterns are used, and the prices of shapes."""

    value: float
    uses: Mapping[tuple[int, int], float]
    prices: Mapping[int, float]


@dataclass(slots=True)
class Master:
    """Patterns known so far per class, with how many nodes each class has and what is asked for.

    Parameters
    ----------
    sizes : nodes per class index.
    demand, worth : replicas asked for and value of one, per shape index.
    """

    sizes: Mapping[int, int]
    demand: Mapping[int, int]
    worth: Mapping[int, float]
    patterns: dict[int, list[Pattern]] = field(default_factory=dict)
    _known: set[tuple[int, Pattern]] = field(default_factory=set)

    def add(self, node_class: int, pattern: Pattern) -> bool:
        """Add a pattern of a class; tell whether it is new."""
        if (node_class, pattern) in self._known:
            return False
        self._known.add((node_class, pattern))
        self.patterns.setdefault(node_class, []).append(pattern)
        return True

    def solve(self) -> Mixture:
        """Solve the LP over the known patterns."""
        shapes = sorted(self.demand)
        row_of = {shape: row for row, shape in enumerate(shapes)}
        class_row = {c: len(shapes) + row for row, c in enumerate(sorted(self.sizes))}
        keys = [(c, p) for c in sorted(self.patterns) for p in range(len(self.patterns[c]))]
        columns = [_entries(self.patterns[c][p], row_of, class_row[c]) for c, p in keys]
        columns += [({row_of[shape]: 1.0}) for shape in shapes]
        cost = [0.0] * len(keys) + [self.worth[shape] for shape in shapes]
        upper = [float(self.sizes[c]) for c, _ in keys] + [float(self.demand[shape]) for shape in shapes]
        right = [0.0] * len(shapes) + [float(self.sizes[c]) for c in sorted(self.sizes)]
        value, primal, dual = _maximise(cost, upper, right, columns)
        uses = {key: primal[index] for index, key in enumerate(keys) if primal[index] > 1e-9}
        return Mixture(value, uses, {shape: max(0.0, dual[row_of[shape]]) for shape in shapes})


def _entries(pattern: Pattern, row_of: Mapping[int, int], class_row: int) -> dict[int, float]:
    entries = {row_of[shape]: -float(count) for shape, count in counts_of(pattern).items() if shape in row_of}
    entries[class_row] = 1.0
    return entries


def _maximise(
    cost: Sequence[float], upper: Sequence[float], right: Sequence[float], columns: Sequence[Mapping[int, float]]
) -> tuple[float, list[float], list[float]]:
    """Solve max cost x, 0 <= x <= upper, A x <= right; return value, x and row prices."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(columns), len(right)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.array(cost)
    lp.col_lower_ = np.zeros(len(columns))
    lp.col_upper_ = np.array(upper)
    lp.row_lower_ = np.full(len(right), -highspy.kHighsInf)
    lp.row_upper_ = np.array(right)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(column) for column in columns)]).astype(np.int32)
    lp.a_matrix_.index_ = np.array([row for column in columns for row in column], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([value for column in columns for value in column.values()])
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.passModel(lp)
    highs.run()
    solution = highs.getSolution()
    return highs.getInfo().objective_function_value, list(solution.col_value), list(solution.row_dual)
