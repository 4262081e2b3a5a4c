"""The part of an LP over a fleet that is the same whatever it knows of nodes: variables, the fleet's rows, tiers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np

from dovetail.engine.solvers.highs import Lp
from dovetail.proof.certificate import Prices
from dovetail.proof.fleet import FleetModel
from dovetail.proof.fleet_models import FleetProof

DENOMINATOR: Final = 10**9
"""What multipliers of proofs are divided by."""

LARGEST: Final = 1e3
"""Objectives are scaled so that their largest coefficient is this."""

_PENALTY = 1e5  # per scaled unit that an earlier tier falls short, while patterns are too few to reach it


class TierRows:
    """Columns of a fleet's variables under the fleet's rows, to be maximised for one tier after the other.

    Attributes
    ----------
    rows : those of the fleet's own rows; `floors` one per tier, which hold it at a value.
    shortfalls : a column per tier, what it lacks of that; `unplaced` one per shape of which some must be there.
    scale : per tier, what its objective is multiplied by.
    """

    def __init__(self, fleet: FleetModel, priced: Collection[int]) -> None:
        """Begin an LP.

        Parameters
        ----------
        priced : variables of what nodes hold: they are bounded by rows alone, since a proof prices them there and not
            by their limits.
        """
        self.fleet = fleet
        self.lp = lp = Lp()
        rows = fleet.rows  # encodes the tiers, so that all variables exist
        model = fleet.model
        for variable, (low, high) in enumerate(zip(model.lower, model.upper, strict=True)):
            lp.column(low, np.inf if variable in priced else high)
        self.rows = [lp.row(-np.inf, row.upper, zip(row.variables, row.coefficients, strict=True)) for row in rows]
        self.floors = {
            name: lp.row(-np.inf, np.inf, expression.terms.items()) for name, expression in fleet.tiers.items()
        }
        self.shortfalls = {n: lp.column(0.0, 0.0, {row: 1.0}) for n, row in self.floors.items()}
        self.unplaced = self._add_unplaced()
        self.scale = {name: _scale(expression.terms.values()) for name, expression in fleet.tiers.items()}
        self._tier = ""
        self._given: tuple[str, ...] = ()

    def _add_unplaced(self) -> list[int]:
        """Add a column per shape of which some must stay admitted: how many find no place in too few patterns."""
        lower = self.fleet.model.lower
        return [
            self.lp.column(0.0, np.inf, {self.rows[most]: 1.0, self.rows[least]: -1.0})
            for shape, (most, least) in self.fleet.supply.items()
            if any(lower[variable] for variable in self.fleet.admitted_shape(shape).terms)
        ]

    def pose(self, tier: str, given: Mapping[str, int]) -> Mapping[int, float]:
        """Ask for a tier, earlier ones held at given values as far as patterns reach them; return the objective."""
        lp, scale = self.lp, self.scale
        self._tier, self._given = tier, tuple(name for name in self.floors if name in given)
        costs = {v: c * scale[tier] for v, c in self.fleet.tiers[tier].terms.items()}
        lp.objective(costs)
        for column in self.unplaced:
            lp.cost(column, -_PENALTY * LARGEST)
        for name, row in self.floors.items():
            low = given[name] - self.fleet.tiers[name].constant if name in given else -np.inf
            lp.bounds(row, low, np.inf)
            lp.cost(self.shortfalls[name], -_PENALTY * scale[name])
            lp.limits(self.shortfalls[name], 0.0, np.inf if name in given else 0.0)
        return costs

    @property
    def unit(self) -> float:
        """What a price of the last tier is multiplied by, to be one of its proof."""
        return DENOMINATOR / self.scale[self._tier]

    def proof(self, dual: Sequence[float], prices: Prices) -> FleetProof:
        """Return a dual solution for the last tier in integers."""
        rows = {position: value for position, row in enumerate(self.rows) if (value := self.whole(dual[row]))}
        floors = {name: value for name in self._given if (value := self.whole(-dual[self.floors[name]]))}
        return FleetProof(self._tier, DENOMINATOR, rows, floors, prices)

    def whole(self, price: float) -> int:
        """Return a price as a multiplier, which is never below 0."""
        return max(0, round(price * self.unit))


def _scale(coefficients: Collection[int]) -> float:
    return LARGEST / (max((abs(c) for c in coefficients), default=1) or 1)
