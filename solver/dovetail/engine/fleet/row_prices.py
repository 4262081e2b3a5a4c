"""Prices of the rows that no node has a part in, worked out from those of the others by a small LP.

Once places have prices, what is left of a fleet's rows says how much of each shape is admitted: demands, quotas,
earlier tiers' values, workloads that are evicted. No node matters there, so the rest is an LP of few rows, whose
duals are the best prices that these rows can have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dovetail.engine.fleet.plain_lp import lp_of
from dovetail.linear import Linear
from dovetail.proof.lagrangian import PlainRow


class RowPrices:
    """The LP over all variables that no node has a part in.

    Parameters
    ----------
    objective : what is maximised.
    rows : all rows, by position.
    box : the limits of all variables.
    placed : the variables that nodes have a part in.
    denominator : over which prices are told.
    """

    def __init__(
        self,
        objective: Linear,
        rows: Sequence[PlainRow],
        box: tuple[Sequence[int], Sequence[int]],
        placed: Collection[int],
        denominator: int,
    ) -> None:
        self._objective, self._rows, self._denominator = objective, rows, denominator
        self._own = [number for number, row in enumerate(rows) if not any(v in placed for v in row.variables)]
        self._owned = frozenset(self._own)
        lower, upper = box
        self._lp, self._column = lp_of([rows[n] for n in self._own], lambda v: (float(lower[v]), float(upper[v])))

    def completed(self, prices: Mapping[int, int]) -> dict[int, int]:
        """Return prices with those of the rows that no node has a part in: the best ones beside all others."""
        found = {number: price for number, price in prices.items() if number not in self._owned}
        if not self._own:
            return found
        costs = {v: self._denominator * self._objective.terms.get(v, 0) for v in self._column}
        for number, price in found.items():
            row = self._rows[number]
            for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
                if variable in costs:
                    costs[variable] -= price * coefficient
        self._lp.objective({self._column[v]: cost / self._denominator for v, cost in costs.items()})
        self._lp.solve(warm=True)
        if not self._lp.complete:
            return dict(prices)
        for number, dual in zip(self._own, self._lp.duals(), strict=True):
            if (price := round(dual * self._denominator)) > 0:
                found[number] = price
        return found
