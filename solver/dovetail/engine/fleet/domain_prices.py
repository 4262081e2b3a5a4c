"""Prices of the rows that say how many replicas of a shape must be in a domain, worked out by a small LP each.

Where replicas must be spread evenly, the next one has to be in one certain zone, or in one of two, and a place
elsewhere is worth nothing. Which rows say so, and how, is the matter of rules: the LP has all rows that are about one
shape alone, and asks for the fewest replicas beyond those that are protected in domains and the free places there, or
for the fewest in one domain. Its duals are prices by which every place there is worth as much, and those elsewhere
are worth nothing.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from dovetail.engine.fleet.plain_lp import FREE, lp_of
from dovetail.proof.lagrangian import PlainRow
from dovetail.proof.standing import StandingModel

_MORE = 1e-6  # of a replica, more than are protected in a domain


class DomainPrices:
    """The rows of a fleet beside what runs today, by shape.

    Parameters
    ----------
    rows : all rows, by position; `box` are the limits of all variables.
    """

    def __init__(
        self, fleet: StandingModel, rows: Sequence[PlainRow], box: tuple[Sequence[int], Sequence[int]]
    ) -> None:
        self._fleet, self._rows, self._box = fleet, rows, box
        self._placed = frozenset(variable for block in fleet.blocks({}) for variable in block.variables)
        self._rows_of: dict[int, list[int]] = defaultdict(list)
        for number, row in enumerate(rows):
            for variable in set(row.variables):
                self._rows_of[variable].append(number)

    def of(self, shape: int) -> Iterator[Mapping[int, float]]:
        """Yield prices of rows for places in all domains that need more replicas than may be there, and in each.

        A place in the domain is worth 1 by them, or a part where it is as well in another one.
        """
        domains = self._domains(shape)
        if len(domains) < 2:
            return
        own = self._own_rows(shape)
        lp, column = lp_of([self._rows[number] for number in own], self._limits)
        told = [cells for cells in domains.values() if set(cells) <= column.keys()]
        there, free = self._protected(shape), self._free(shape)
        beyond, single = list[int](), list[tuple[list[int], int]]()
        for cells in told:
            more, columns = lp.column(*FREE), [column[cell] for cell in cells]
            here = sum(there[cell] for cell in cells)
            lp.row(-math.inf, here + sum(free[cell] for cell in cells), {more: -1.0, **dict.fromkeys(columns, 1.0)})
            beyond.append(more)
            single.append((columns, here))
        for columns, enough in [(beyond, 0), *single]:
            lp.objective(dict.fromkeys(columns, -1.0))
            least = -lp.solve(warm=True)
            if lp.complete and least > enough + _MORE:
                yield {number: dual for number, dual in zip(own, lp.duals(), strict=False) if dual > 0}

    def _domains(self, shape: int) -> Mapping[Hashable, list[int]]:
        """Return the variables that count a shape, by what rules ask of nodes: one for each kind that is in it."""
        found: dict[Hashable, list[int]] = defaultdict(list)
        for cells in self._fleet.cells_of:
            for cell in cells.get(shape, ()):
                found[frozenset(cell.answers.items())].append(cell.variable)
        return found

    def _protected(self, shape: int) -> Counter[int]:
        """Return how many replicas of a shape are protected, by the variable that counts it where they are."""
        found: Counter[int] = Counter()
        for lots in self._fleet.lots_of:
            for lot in lots:
                if shape in lot.protected:
                    found[lot.counts[shape][-1]] += lot.protected[shape]
        return found

    def _free(self, shape: int) -> Counter[int]:
        """Return how many more of a shape come at the most beside all that is protected, by the variable of where."""
        found: Counter[int] = Counter()
        for block in self._fleet.blocks({}):
            for lot, places in block.free(shape):
                found[lot.counts[shape][-1]] += places
        return found

    def _own_rows(self, shape: int) -> list[int]:
        """Return the rows about a shape and nothing else that nodes have a part in, nor other shapes."""
        own = set(self._fleet.admitted_shape(shape).terms)
        for counts, cells in zip(self._fleet.counts_of, self._fleet.cells_of, strict=True):
            own |= {counts[shape]} if shape in counts else set()
            own |= {cell.variable for cell in cells.get(shape, ())}
        foreign = self._shared - own
        near = {number for variable in own for number in self._rows_of[variable]}
        near = {number for number in near if not foreign & set(self._rows[number].variables)}
        own |= {variable for number in near for variable in self._rows[number].variables}
        near |= {number for variable in own for number in self._rows_of[variable]}
        return sorted(number for number in near if own >= set(self._rows[number].variables))

    @property
    def _shared(self) -> frozenset[int]:
        """The variables that nodes have a part in, and how many there are of each shape."""
        totals = (self._fleet.admitted_shape(shape.index).terms for shape in self._fleet.problem.shapes)
        return self._placed.union(*totals)

    def _limits(self, variable: int) -> tuple[float, float]:
        """Return the limits of a variable; what nodes have a part in has none but what nodes hold."""
        lower, upper = self._box
        return FREE if variable in self._placed else (float(lower[variable]), float(upper[variable]))
