"""Where gangs are that have to be within one domain, of which an LP may have a part in each of several.

A gang goes where the LP has most of it, or part of it if that costs less beside those before. Elsewhere its counts
are shut, and the LP is solved again before the next one, which may then be better off in another domain. One that can
be nowhere stays torn. What plans follow is an LP with gangs as they can be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from dovetail.engine.fleet.fleet_lp import FleetLp
from dovetail.progress import Stop
from dovetail.proof.cells import Question
from dovetail.spec import Workload

_ALMOST = 1e-3  # of a replica: less is rounding
_SLACK = 1e-6  # of a tier, that a home may cost: likewise


def settle(
    lp: FleetLp, tier: str, given: Mapping[str, int], there: Mapping[str, int], reached: int, stop: Stop
) -> bool:
    """Give every gang that the LP's last solution tears apart a home, the largest first; tell whether that costs.

    Parameters
    ----------
    tier, given, there, reached : what was optimised last, with whom, and the value, rounded down.
    """
    spec = lp.fleet.spec
    if not spec.told_levels:
        return False
    gangs = [w for w in spec.workloads if w.id in lp.fleet.flags and w.topology is not None and w.topology.within]
    gangs.sort(key=lambda w: (-sum(r.request.gpu_milli * r.replicas for r in w.roles), w.id))
    shut: list[int] = []
    settled: set[str] = set()
    value: float = reached
    lp.assume(there)
    for workload in (*gangs, *gangs):  # twice: a home for one may tear another one that was whole
        homes = [] if stop or workload.id in settled else _homes(lp, workload)
        if homes:
            settled.add(workload.id)
            value, elsewhere = _housed(lp, tier, given, value, shut, homes)
            shut += elsewhere
    lp.assume({})
    return value < reached


def _homes(lp: FleetLp, workload: Workload) -> list[list[int]]:
    """Return what to shut for a gang that is torn to be in one domain, of which it has most first."""
    amounts = amounts_of(lp, workload)
    if len(amounts) < 2:
        return []
    cells = list(_cells(lp, workload))
    homes = sorted(amounts, key=lambda domain: (amounts[domain], domain), reverse=True)
    return [[c for d, columns in cells if d != home for c in columns] for home in homes]


def _housed(
    lp: FleetLp, tier: str, given: Mapping[str, int], value: float, shut: list[int], homes: list[list[int]]
) -> tuple[float, list[int]]:
    """Solve the LP with a gang in the first home that costs nothing, else in the one that costs least.

    Returns
    -------
    tuple[float, list[int]]
        What the tier has then, and what is shut for that: nothing where the gang can be in none of them.
    """
    found: list[tuple[float, list[int]]] = []
    for elsewhere in homes:
        lp.shut([*shut, *elsewhere])
        reached = lp.optimise(tier, given, again=True)
        if lp.possible:
            found.append((reached, elsewhere))
            if reached >= value - _SLACK * abs(value):
                return found[-1]
    _, elsewhere = max(found, key=lambda each: each[0], default=(value, []))
    lp.shut([*shut, *elsewhere])
    return lp.optimise(tier, given, again=True), elsewhere


def amounts_of(lp: FleetLp, workload: Workload) -> Mapping[str, float]:
    """Return how many replicas of a workload the LP's last solution has in each of the outermost domains."""
    values = lp.values()
    found: dict[str, float] = defaultdict(float)
    for domain, columns in _cells(lp, workload):
        found[domain] += sum(values[column] for column in columns)
    return {domain: amount for domain, amount in found.items() if amount > _ALMOST}


def _cells(lp: FleetLp, workload: Workload) -> Iterator[tuple[str, list[int]]]:
    """Yield each cell of a workload: the outermost domain that it lies in, and the columns that count it.

    A cell that is all of a kind is counted by sides of nodes.
    """
    problem, counts = lp.fleet.problem, lp.fleet.counts_of
    outer = Question(level=problem.spec.told_levels[0])
    for kind, cells in enumerate(lp.fleet.cells_of):
        for shape in problem.shapes_of_workload[workload.id]:
            for cell in cells.get(shape, ()):
                sides = (side for side in lp.sides if side.kind == kind and shape in side.counts)
                whole = cell.variable == counts[kind][shape]
                columns = [side.counts[shape] for side in sides] if whole else [cell.variable]
                yield str(cell.answers.get(outer)), columns
