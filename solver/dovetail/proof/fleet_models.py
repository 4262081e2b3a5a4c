"""Proofs about whole fleets: which rows they argue about, and what their multipliers are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dovetail.linear import Linear
from dovetail.objectives import sign_of
from dovetail.proof.certificate import Fork, Leaf, Multipliers, Prices
from dovetail.proof.fleet import FleetModel
from dovetail.proof.lagrangian import Settled, leaf_total, reduced_costs
from dovetail.proof.models import Earlier, Statement
from dovetail.proof.tree import Unproved

Within = Mapping[int, tuple[int, int]]
"""Closer limits of some variables: what each is at the least and at the most."""


class FleetModels:
    """A relaxation to counts per kind of node."""

    def __init__(self, fleet: FleetModel) -> None:
        self._fleet = fleet

    def of_tier(self, position: int, earlier: Mapping[str, Earlier]) -> Statement:
        """Return the rows with the earlier tiers that the relaxation knows at least as good as reached."""
        fleet = self._fleet
        tier = fleet.original.tiers[position]
        if tier.name not in fleet.tiers:
            raise Unproved("the relaxation does not know this tier")
        reached = {t.name: known.value for t in fleet.original.tiers if (known := earlier.get(t.name)) is not None}
        given = in_sense(fleet, reached)
        rows = [*fleet.rows, *fleet.floors(given)]
        return Statement(fleet.tiers[tier.name], *fleet.box(given), rows, fleet.blocks, fleet.relaxed)

    def of_none(self) -> Statement:
        """Return the rows alone."""
        fleet = self._fleet
        return Statement(Linear(), fleet.model.lower, fleet.model.upper, fleet.rows, fleet.blocks, fleet.relaxed)


def in_sense(fleet: FleetModel, values: Mapping[str, int]) -> dict[str, int]:
    """Return tiers' values so that greater is better."""
    signs = {tier.name: sign_of(tier.sense) for tier in fleet.original.tiers}
    return {name: signs[name] * value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class FleetProof:
    """Why no plan has more of a tier than a bound, given the earlier tiers' values: integers over `denominator`.

    Parameters
    ----------
    rows : multiplier per row of the model.
    floors : multiplier per earlier tier that the bound assumes.
    prices : per block of the model, multipliers of the dimensions of its nodes, or cases of what these hold.
    """

    tier: str
    denominator: int
    rows: Mapping[int, int]
    floors: Mapping[str, int]
    prices: Prices
    _limits: list[int] = field(default_factory=list, init=False, compare=False, repr=False)  # per block

    def total(self, fleet: FleetModel, limits: Within = MappingProxyType({})) -> int:
        """Return `denominator` times the bound (greater being better) were all earlier tiers assumed to reach 0.

        Parameters
        ----------
        limits : of some variables, where they are assumed to have closer ones than in the model.
        """
        model = fleet.model
        lower, upper = list(model.lower), list(model.upper)
        for variable, (least, most) in limits.items():
            lower[variable], upper[variable] = least, most
        rows = [*fleet.rows, *fleet.floors(dict.fromkeys(self.floors, 0))]
        objective = fleet.tiers[self.tier]
        multipliers = self._multipliers(fleet, self.floors)
        return leaf_total(objective, rows, multipliers, self.denominator, lower, upper, self._settled(fleet))

    def _settled(self, fleet: FleetModel) -> Iterator[Settled]:
        """Yield what nodes earn at the most, worked out once: limits of other variables are no matter to it."""
        blocks = fleet.blocks(self.prices)
        if not self._limits:
            costs = self.costs(fleet)
            self._limits.extend(block.limit({v: costs.get(v, 0) for v in block.variables}) for block in blocks)
        for block, most in zip(blocks, self._limits, strict=True):
            yield Settled(tuple(block.variables), most)

    def costs(self, fleet: FleetModel) -> dict[int, int]:
        """Return, per variable, what is left of `denominator` times its part in the tier once rows are paid for."""
        rows = [*fleet.rows, *fleet.floors(dict.fromkeys(self.floors, 0))]
        return reduced_costs(fleet.tiers[self.tier], rows, self._multipliers(fleet, self.floors), self.denominator)

    def bound(self, total: int, given: Mapping[str, int]) -> int:
        """Return the bound, given the `total` of this proof and what earlier tiers reach (greater being better)."""
        return (total - sum(multiplier * given[name] for name, multiplier in self.floors.items())) // self.denominator

    def carried(self, tier: str, times: int) -> FleetProof:
        """Return this proof, so many times, as one for a later tier that is given what this one reaches.

        It says that the later tier has less than nothing where times the shortfall of this one is more than all there
        may be of that.
        """
        floors = {earlier: times * multiplier for earlier, multiplier in self.floors.items()}
        floors[self.tier] = times * self.denominator
        prices: Prices = {
            block: _multiplied(own, times)
            if isinstance(own, Mapping)
            else tuple(each if isinstance(each, Fork) else _multiplied(each, times) for each in own)
            for block, own in self.prices.items()
        }
        rows = {row: times * multiplier for row, multiplier in self.rows.items()}
        return FleetProof(tier, self.denominator, rows, floors, prices)

    def leaf(self, fleet: FleetModel, earlier: Mapping[str, int]) -> Leaf:
        """Return the proof as a leaf of a certificate that assumes some earlier tiers."""
        return Leaf(self._multipliers(fleet, earlier), self.denominator, self.prices)

    def _multipliers(self, fleet: FleetModel, earlier: Mapping[str, int]) -> dict[int, int]:
        names = [name for name in fleet.tiers if name in earlier]
        floors = {len(fleet.rows) + i: self.floors[name] for i, name in enumerate(names) if name in self.floors}
        return {**self.rows, **floors}


def _multiplied(prices: Multipliers, times: int) -> Multipliers:
    return {position: times * multiplier for position, multiplier in prices.items()}
