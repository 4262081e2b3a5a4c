"""Prices to begin with: an LP that forgets the borders of nodes (E2, E8).

Per kind of node it keeps the totals of CPU, memory, resources and GPUs, and packs shares into single GPUs by patterns
that column generation finds. Its prices are close to those of whole node patterns and cost a fraction of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dovetail.engine.cuts import dearest
from dovetail.engine.highs import Lp
from dovetail.problem import Problem
from dovetail.proof.cutting import layouts_of
from dovetail.proof.kinds import Kind, capacities
from dovetail.rules.quota import requested_of
from dovetail.spec.workload import MILLI

_ROUNDS = 40
_SCALE = 1e4
_CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class FirstPrices:
    """What a replica of each shape costs at least, and a value that no plan of the given nodes exceeds."""

    prices: Mapping[int, float]
    bound: float


@dataclass(slots=True)
class _Rows:
    """The rows of a kind: GPUs in all, each size of share, and the patterns of shared GPUs known so far."""

    gpus: int
    milli: dict[int, int]
    known: set[tuple[int, ...]] = field(default_factory=set)


def first_prices(
    problem: Problem, sizes: Sequence[tuple[Kind, int]], demand: Mapping[int, int], worth: Mapping[int, float]
) -> FirstPrices:
    """Return prices of shapes for some nodes, so many of each kind, and what is to be placed on them.

    Parameters
    ----------
    demand, worth : replicas asked for and value of one, per shape index.
    """
    lp = Lp()
    asked = {s: lp.row(-np.inf, float(count)) for s, count in demand.items()}
    gains: dict[int, float] = {}
    kinds = [_add_kind(lp, problem, kind, size, asked, worth, gains) for kind, size in sizes]
    lp.objective(gains)
    value = 0.0
    for _ in range(_ROUNDS):
        value = lp.solve()
        dual = lp.duals()
        if not sum(_cut_better(lp, rows, dual) for rows in kinds):
            break
    return FirstPrices({s: max(0.0, worth[s] - max(0.0, dual[row])) for s, row in asked.items()}, value)


def _add_kind(
    lp: Lp,
    problem: Problem,
    kind: Kind,
    size: int,
    asked: Mapping[int, int],
    worth: Mapping[int, float],
    gains: dict[int, float],
) -> _Rows:
    totals = {name: lp.row(-np.inf, float(size * amount)) for name, amount in capacities(kind).items()}
    gpus = lp.row(-np.inf, float(size * len(kind.node.healthy_gpus())))
    shapes = [problem.shapes[s] for s in kind.shapes if s in asked]
    modes = {s.index: problem.modes(s.index, kind.node) for s in shapes if s.request.partial}
    millis = sorted({shape.request.gpu_milli for shape in shapes if "" in modes.get(shape.index, ())})
    profiles = {s: found[0] for s, found in modes.items() if found and found[0]}
    rows = _Rows(gpus, {milli: lp.row(-np.inf, 0.0) for milli in millis})
    instances = _add_layouts(lp, kind, frozenset(profiles.values()), gpus)
    for shape in shapes:
        entries = {row: float(requested_of(shape.request, name)) for name, row in totals.items()}
        entries[asked[shape.index]] = 1.0
        if shape.index in profiles:
            entries[instances[profiles[shape.index]]] = 1.0
        elif "" in modes.get(shape.index, ()):
            entries[rows.milli[shape.request.gpu_milli]] = 1.0
        elif shape.request.gpus:
            entries[gpus] = float(shape.request.gpus)
        gains[lp.column(0.0, np.inf, {row: amount for row, amount in entries.items() if amount})] = worth[shape.index]
    for position, milli in enumerate(millis):
        _add_cut(lp, rows, tuple(MILLI // milli if i == position else 0 for i in range(len(millis))))
    return rows


def _add_layouts(lp: Lp, kind: Kind, names: frozenset[str], gpus: int) -> Mapping[str, int]:
    """Add what GPUs can be cut into, and return the row of instances of each profile."""
    rows = {name: lp.row(-np.inf, 0.0) for name in sorted(names)}
    for layout in layouts_of(kind.geometry, names) if kind.geometry and names else ():
        lp.column(0.0, np.inf, {**{rows[name]: -float(count) for name, count in layout}, gpus: 1.0})
    return rows


def _add_cut(lp: Lp, rows: _Rows, cut: tuple[int, ...]) -> None:
    rows.known.add(cut)
    entries = {row: -float(count) for row, count in zip(rows.milli.values(), cut, strict=True) if count}
    lp.column(0.0, np.inf, {**entries, rows.gpus: 1.0})


def _cut_better(lp: Lp, rows: _Rows, dual: Sequence[float]) -> bool:
    """Add the dearest pattern of a shared GPU where it pays more than a GPU costs; tell whether it does."""
    if not rows.milli:
        return False
    prices = tuple(max(0, round(dual[row] * _SCALE)) for row in rows.milli.values())
    value, cut = dearest(tuple(rows.milli), prices)
    if cut in rows.known or value <= dual[rows.gpus] * _SCALE * (1 + _CLOSE) + 1:
        return False
    _add_cut(lp, rows, cut)
    return True
