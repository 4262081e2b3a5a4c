"""The sides of a kind of nodes, dealt out to its plots: how much of what an LP has for a kind is where (S4.6)."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.proof.cells import Cell, Plot


def dealt(plots: Sequence[Plot], cells: Sequence[Cell], values: Sequence[float]) -> list[float]:
    """Return which part of a shape's count on a kind each plot takes."""
    total = sum(values[cell.variable] for cell in cells) or 1.0
    found = []
    for plot in plots:
        cell = next(cell for cell in cells if plot.lies_in(cell))
        beside = sum(len(other.members) for other in plots if other.lies_in(cell))
        found.append(values[cell.variable] / total * len(plot.members) / beside)
    return found


def allotted(needs: Sequence[Sequence[float]], totals: Sequence[float], sizes: Sequence[int]) -> list[list[float]]:
    """Return how many nodes each side has of each plot: what is bound to it first, the rest as nodes are left.

    Parameters
    ----------
    needs : per side and plot, how many nodes its bound shapes fill; `totals` per side, `sizes` per plot, all nodes.
    """
    rest = [max(0.0, size - sum(need[z] for need in needs)) for z, size in enumerate(sizes)]
    found = []
    for need, total in zip(needs, totals, strict=True):
        mine, more = list(need), max(0.0, total - sum(need))
        for z in sorted(range(len(rest)), key=lambda z: (-mine[z], -rest[z], z)):  # in few plots rather than in all
            taken = min(more, rest[z])
            mine[z], rest[z], more = mine[z] + taken, rest[z] - taken, more - taken
        found.append(mine)
    return found
