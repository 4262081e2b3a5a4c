"""An upper bound on what can be admitted, from GPU patterns and the totals of each kind of node (E2, E8).

The relaxation forgets node borders: per kind of node it keeps the totals of CPU, memory, resources and GPUs, and
packs shares into single GPUs by patterns that column generation finds,

    max  sum_s v_s sum_c w_sc                          shapes s, kinds of node c, patterns p of one GPU
    sum_c w_sc <= d_s                                  (price b_s)
    sum_s cpu_s w_sc <= N_c CPU_c, and so on           (price k_c)
    sum_s gpus_s w_sc + sum_p n_cp <= N_c GPUS_c       (price g_c)
    sum_{s of m milli} w_sc <= sum_p a_mp n_cp         (price q_mc)
    sum_s u_ts w_sc >= U_t for earlier tiers t         (price l_t)

The bound that is returned does not rest on the LP solver: its prices are rounded to integers, the price of a GPU is
raised to the dearest pattern (an exact knapsack), and the Lagrangian value is added up in integers. Any prices give
a valid bound that way; good ones give a tight one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

import highspy
import numpy as np

from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.rules.quota import requested_of
from dovetail.spec.workload import MILLI

_SCALE = 10**6
_ROUNDS = 80
_CLOSE = 2e-6
_PENALTY = 1e4  # per unit that an earlier tier falls short of its value, while patterns are too few to reach it


@dataclass(frozen=True, slots=True)
class Kind:
    """Nodes alike in hardware and in what they may host: `totals` adds up their capacities, `gpus` among them."""

    totals: Mapping[str, int]
    shapes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Floor:
    """An earlier tier's weights by shape and the value that it keeps."""

    weights: Mapping[int, int]
    value: int


@dataclass(slots=True)
class Prices:
    """Integer prices (see the module): per kind and resource, per kind and milli, and per earlier tier."""

    resource: list[dict[str, int]] = field(default_factory=list)
    milli: list[dict[int, int]] = field(default_factory=list)
    floors: list[int] = field(default_factory=list)


def admitted_bound(problem: Problem, weights: Mapping[int, int], floors: Sequence[Floor], stop: Stop) -> int:
    """Return a value that no plan's sum of weight times admitted replicas exceeds, given earlier tiers' values.

    Parameters
    ----------
    weights : value per admitted replica by shape index; shapes left out count nothing but may take room.
    floors : earlier tiers, each with the value that the bound assumes to be kept.
    """
    return _Relaxation(problem, weights, floors).solve(stop)


class _Relaxation:
    def __init__(self, problem: Problem, weights: Mapping[int, int], floors: Sequence[Floor]) -> None:
        self.problem = problem
        self.weights = weights
        self.floors = floors
        counted = set(weights).union(*(floor.weights for floor in floors)) if floors else set(weights)
        self.kinds = _kinds(problem, counted)
        self.millis = sorted({s.request.gpu_milli for s in problem.shapes if s.request.share and s.index in counted})
        self.patterns: list[dict[tuple[int, ...], None]] = [{} for _ in self.kinds]
        for kind, found in zip(self.kinds, self.patterns, strict=True):
            for position, milli in enumerate(self.millis):
                if any(problem.shapes[s].request.gpu_milli == milli for s in kind.shapes):
                    single = [0] * len(self.millis)
                    single[position] = MILLI // milli
                    found[tuple(single)] = None

    def solve(self, stop: Stop) -> int:
        """Alternate between prices and patterns until they meet; return the best bound that any prices proved."""
        best = sum(weight * self.problem.shapes[s].demand for s, weight in self.weights.items())
        master = _Master(self)
        for _ in range(_ROUNDS):
            value, prices = master.solve()
            best = min(best, self.lagrangian(prices))
            if stop or value >= best * (1 - _CLOSE) or not self._extend(master, prices):
                break
        return best

    def _extend(self, master: _Master, prices: Prices) -> bool:
        """Add each kind's dearest pattern; tell whether any is new."""
        grown = False
        for index, found in enumerate(self.patterns):
            if self.kinds[index].totals["gpus"] and prices.milli[index]:
                _, pattern = dearest(self.millis, prices.milli[index])
                if pattern not in found:
                    found[pattern] = None
                    master.add_pattern(index, pattern)
                    grown = True
        return grown

    def lagrangian(self, prices: Prices) -> int:
        """Return the bound that some prices prove, in exact integer arithmetic (floored)."""
        gpu = [dearest(self.millis, milli)[0] if milli else 0 for milli in prices.milli]
        gpu = [max(g, prices.resource[c].get("gpus", 0)) for c, g in enumerate(gpu)]
        total = -sum(price * floor.value for price, floor in zip(prices.floors, self.floors, strict=True))
        for index, kind in enumerate(self.kinds):
            total += kind.totals["gpus"] * gpu[index]
            total += sum(
                kind.totals[name] * price for name, price in prices.resource[index].items() if name != "gpus"
            )
        cheapest: dict[int, int] = {}
        for index, kind in enumerate(self.kinds):
            for shape in kind.shapes:
                price = self._price(shape, index, prices, gpu[index])
                cheapest[shape] = min(cheapest.get(shape, price), price)
        for shape, price in cheapest.items():
            worth = _SCALE * self.weights.get(shape, 0) + sum(
                lam * floor.weights.get(shape, 0) for lam, floor in zip(prices.floors, self.floors, strict=True)
            )
            total += self.problem.shapes[shape].demand * max(0, worth - price)
        return total // _SCALE

    def _price(self, shape: int, kind: int, prices: Prices, gpu: int) -> int:
        request = self.problem.shapes[shape].request
        host = sum(
            price * requested_of(request, name) for name, price in prices.resource[kind].items() if name != "gpus"
        )
        return host + gpu * request.gpus + (prices.milli[kind][request.gpu_milli] if request.share else 0)


class _Master:
    """The LP over the patterns known so far."""

    def __init__(self, relaxation: _Relaxation) -> None:
        self.r = relaxation
        self._rows: list[tuple[float, float]] = []
        self._columns: list[tuple[float, float, list[int], list[float]]] = []
        shapes = sorted({shape for kind in relaxation.kinds for shape in kind.shapes})
        self._demand = {s: self._row(-np.inf, relaxation.problem.shapes[s].demand) for s in shapes}
        self._floor = [self._row(floor.value, np.inf) for floor in relaxation.floors]
        self._resource = [{n: self._row(-np.inf, t) for n, t in kind.totals.items()} for kind in relaxation.kinds]
        self._milli = [
            {m: self._row(-np.inf, 0.0) for m in relaxation.millis} if kind.totals["gpus"] else {}
            for kind in relaxation.kinds
        ]
        for index, kind in enumerate(relaxation.kinds):
            for shape in kind.shapes:
                self._add_shape(index, shape)
            for pattern in relaxation.patterns[index]:
                self.add_pattern(index, pattern)
        for row in self._floor:
            self._columns.append((-_PENALTY, np.inf, [row], [1.0]))
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        self._highs.passModel(self._model())
        self._columns.clear()

    def _row(self, low: float, high: float) -> int:
        self._rows.append((low, high))
        return len(self._rows) - 1

    def _add_shape(self, kind: int, shape: int) -> None:
        request = self.r.problem.shapes[shape].request
        entries = {self._demand[shape]: 1.0}
        for name, row in self._resource[kind].items():
            amount = request.gpus if name == "gpus" else requested_of(request, name)
            if amount:
                entries[row] = float(amount)
        if request.share:
            entries[self._milli[kind][request.gpu_milli]] = 1.0
        for row, floor in zip(self._floor, self.r.floors, strict=True):
            if floor.weights.get(shape):
                entries[row] = float(floor.weights[shape])
        cost = float(self.r.weights.get(shape, 0))
        self._columns.append(
            (cost, float(self.r.problem.shapes[shape].demand), list(entries), list(entries.values()))
        )

    def add_pattern(self, kind: int, pattern: tuple[int, ...]) -> None:
        """Add a pattern of one GPU of a kind of node."""
        entries = {self._resource[kind]["gpus"]: 1.0}
        for milli, count in zip(self.r.millis, pattern, strict=True):
            if count:
                entries[self._milli[kind][milli]] = -float(count)
        self._columns.append((0.0, np.inf, list(entries), list(entries.values())))

    def _model(self) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self._columns), len(self._rows)
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = np.array([column[0] for column in self._columns])
        lp.col_lower_ = np.zeros(len(self._columns))
        lp.col_upper_ = np.array([column[1] for column in self._columns])
        lp.row_lower_ = np.array([row[0] for row in self._rows])
        lp.row_upper_ = np.array([row[1] for row in self._rows], dtype=float)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.cumsum([0] + [len(column[2]) for column in self._columns]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([row for column in self._columns for row in column[2]], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([value for column in self._columns for value in column[3]])
        return lp

    def solve(self) -> tuple[float, Prices]:
        """Return the LP's value over the known patterns, and its prices rounded to non-negative integers."""
        for cost, upper, rows, values in self._columns:
            self._highs.addCol(cost, 0.0, upper, len(rows), np.array(rows, dtype=np.int32), np.array(values))
        self._columns.clear()
        self._highs.run()
        dual = list(self._highs.getSolution().row_dual)
        return self._highs.getInfo().objective_function_value, self._prices(dual)

    def _prices(self, dual: Sequence[float]) -> Prices:
        def price(row: int, sign: int = 1) -> int:
            return max(0, round(sign * dual[row] * _SCALE))

        return Prices(
            [{name: price(row) for name, row in rows.items()} for rows in self._resource],
            [{milli: price(row) for milli, row in rows.items()} for rows in self._milli],
            [price(row, -1) for row in self._floor],
        )


def dearest(millis: Sequence[int], prices: Mapping[int, int]) -> tuple[int, tuple[int, ...]]:
    """Return the greatest total price of shares that fit one GPU, and how many of each milli it takes (exact)."""
    step = gcd(MILLI, *millis) if millis else MILLI
    size = MILLI // step
    weights = [milli // step for milli in millis]
    best, choice = [0] * (size + 1), [-1] * (size + 1)
    useful = [(w, prices[m], i) for i, (w, m) in enumerate(zip(weights, millis, strict=True)) if prices.get(m)]
    for room in range(1, size + 1):
        best[room], choice[room] = best[room - 1], -1
        for weight, price, index in useful:
            if weight <= room and best[room - weight] + price > best[room]:
                best[room], choice[room] = best[room - weight] + price, index
    pattern = [0] * len(millis)
    room = size
    while room > 0:
        if choice[room] < 0:
            room -= 1
        else:
            pattern[choice[room]] += 1
            room -= weights[choice[room]]
    return best[size], tuple(pattern)


def _kinds(problem: Problem, counted: set[int]) -> list[Kind]:
    totals: dict[object, dict[str, int]] = {}
    shapes: dict[object, tuple[int, ...]] = {}
    for index, node in enumerate(problem.nodes):
        present = {place.shape for place in problem.present.get(index, {})}
        hosted = tuple(sorted((present | set(problem.hosted[problem.class_of[index]])) & counted))
        amounts = {"cpu": node.cpu, "memory": node.memory, "gpus": len(node.healthy_gpus()), **node.resources}
        key = (node.accelerator, tuple(sorted(amounts.items())), hosted)
        shapes[key] = hosted
        total = totals.setdefault(key, dict.fromkeys(amounts, 0))
        for name, amount in amounts.items():
            total[name] += amount
    return [Kind(totals[key], shapes[key]) for key in totals if shapes[key]]


def counted_shapes(problem: Problem, band: int, *, gpu: bool) -> Iterator[tuple[int, int]]:
    """Yield shape index and value of a band's shapes with, or without, GPUs."""
    for shape in problem.shapes:
        if problem.spec.band_of(shape.workload) == band and bool(shape.request.gpu_count) == gpu:
            yield shape.index, shape.role.value
