"""The sides of a kind of nodes, dealt out to its plots: how much of what an LP has for a kind is where (S4.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dovetail.engine.fleet.sides import NOTHING, Side, Target
from dovetail.proof.cells import Cell, Plot
from dovetail.proof.fleet import FleetModel
from dovetail.spec.workload import MILLI


@dataclass(frozen=True, slots=True)
class Use:
    """What an LP solution has on one side of a kind: nodes, replicas per shape, and what one of each pays there."""

    side: Side
    nodes: float
    counts: Mapping[int, float]
    prices: Mapping[int, float]


def by_plot(fleet: FleetModel, kind: int, uses: Sequence[Use], values: Sequence[float]) -> Iterator[Target]:
    """Deal the sides of a kind out to its plots: by cell what rules ask for, the rest where there is room.

    Parameters
    ----------
    values : of the fleet's variables.
    """
    (plots, of), cells = widened(fleet, kind), fleet.cells_of[kind]
    bound = frozenset(s for s, found in cells.items() if len(found) > 1)
    asked = dict.fromkeys(s for use in uses for s in use.counts if s in bound)
    parts = {s: dealt(fleet.plots_of[kind], of, cells[s], values) for s in asked}
    gpus = MILLI * max(1, len(fleet.kinds[kind].node.healthy_gpus()))
    milli = {s: fleet.problem.request(s, fleet.kinds[kind].node).gpu_milli for s in cells}
    needs = [
        [
            sum(x * parts[s][z] * milli[s] for s, x in use.counts.items() if s in bound) / gpus
            for z in range(len(plots))
        ]
        for use in uses
    ]
    nodes = allotted(needs, [use.nodes for use in uses], [len(plot.members) for plot in plots])
    for use, taken, mine in zip(uses, needs, nodes, strict=True):
        room = [max(0.0, n - t) for n, t in zip(mine, taken, strict=True)]
        left = sum(room) or 1.0
        for z, plot in enumerate(plots):
            own = {s: x * (parts[s][z] if s in bound else room[z] / left) for s, x in use.counts.items()}
            own = {s: x for s, x in own.items() if x > NOTHING}
            if own:
                yield Target(kind, use.side.position, plot.members, bound, mine[z], own, use.prices)


def widened(fleet: FleetModel, kind: int) -> tuple[Sequence[Plot], Sequence[int]]:
    """Return a kind's plots as far as they matter to replicas that stand alone, and which of these each plot is in.

    Gangs ask for racks, of which there are hundreds; once they are placed, nobody else may tell racks apart.
    """
    shapes, cells = fleet.problem.shapes, fleet.cells_of[kind]
    alone = [found for s, found in cells.items() if not shapes[s].workload.joint]
    asked = dict.fromkeys(question for found in alone for question in found[0].answers)
    members: dict[tuple[object, ...], list[int]] = {}
    numbers: dict[tuple[object, ...], int] = {}
    of = []
    for plot in fleet.plots_of[kind]:
        answers = tuple(plot.answers[question] for question in asked)
        members.setdefault(answers, []).extend(plot.members)
        of.append(numbers.setdefault(answers, len(numbers)))
    return [Plot(dict(zip(asked, told, strict=True)), tuple(sorted(nodes))) for told, nodes in members.items()], of


def dealt(plots: Sequence[Plot], of: Sequence[int], cells: Sequence[Cell], values: Sequence[float]) -> list[float]:
    """Return which part of a shape's count on a kind each of its wider plots takes.

    Parameters
    ----------
    of : the wider plot that each plot is in.
    """
    asked = list(cells[0].answers)
    cell_of = {tuple[object, ...](cell.answers[question] for question in asked): cell for cell in cells}
    told = [tuple(plot.answers[question] for question in asked) for plot in plots]
    sizes: Counter[tuple[object, ...]] = Counter()
    for plot, answers in zip(plots, told, strict=True):
        sizes[answers] += len(plot.members)
    total = sum(values[cell.variable] for cell in cells) or 1.0
    found = [0.0] * (max(of) + 1)
    for plot, answers, wide in zip(plots, told, of, strict=True):
        found[wide] += values[cell_of[answers].variable] / total * len(plot.members) / sizes[answers]
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
