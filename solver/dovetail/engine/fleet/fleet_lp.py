"""The LP over kinds of nodes: prices for bounds, and a mixture of contents to build plans from.

Per kind of node and side of it, the LP decides how many nodes take which multiset of GPU sizes (all are listed), what
runs on them in all, and how shared GPUs are cut (patterns of one GPU, found by column generation). CPU, memory,
resources and classes of each bind per side of a kind in all. Its dual solution, rounded to integers, is a proof
(`proof.fleet`) whatever the LP solver did; its primal solution is a target that construction follows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

import numpy as np

from dovetail.engine.fleet.confining import Confinement, case_of
from dovetail.engine.fleet.cuts import MILLION, PricedGpu, Sizes, millionths, paying
from dovetail.engine.fleet.fleet_columns import FleetColumns
from dovetail.engine.fleet.plots import Use, by_plot
from dovetail.engine.fleet.sides import NOTHING, Side, Target
from dovetail.engine.solvers.highs import FEW_STEPS
from dovetail.progress import Stop
from dovetail.proof.fleet import FleetModel
from dovetail.proof.fleet_models import FleetProof, Within

_ROUNDS = 40
_COLUMN_WORK = 1e-4  # units of work of a solution, per column
_CLOSE = 1e-6
_PROVED = 1e-4  # of a tier that counts nodes: what its proof may be above the LP's value
_CLOSE_ENOUGH = 1e-5  # where sides are set aside, more is lost already


class FleetLp:
    """An LP that is built once and solved for one tier after the other."""

    def __init__(self, fleet: FleetModel, stop: Stop) -> None:
        self.fleet = fleet
        self._stop = stop
        self._built = built = FleetColumns(fleet)
        self._lp, self.sides = built.lp, built.sides
        self._dual: Sequence[float] = ()
        self.possible = True  # whether what is assumed can be, by the last solution
        self._tier = ""
        self._confined = Confinement(self._lp, fleet)

    def assume(self, there: Mapping[str, int]) -> None:
        """Say of some workloads that stand or fall together whether they are there (1) or not (0)."""
        self.confine({self.fleet.flags[name]: (value, value) for name, value in there.items()})

    def confine(self, limits: Within) -> None:
        """Say of some variables that no node has a part in that they have closer limits, of no others."""
        self._confined.limits = dict(limits)

    def shut(self, columns: Iterable[int]) -> None:
        """Let some columns be 0 from the next solution on, no others: of places where something is not to be."""
        self._lp.shut(columns)

    def values(self) -> Sequence[float]:
        """Return the last solution, the fleet's variables first."""
        return self._lp.values()

    def optimise(
        self,
        tier: str,
        given: Mapping[str, int],
        *,
        seconds: float | None = None,
        again: bool = False,
        like: Within | None = None,
        steps: int = FEW_STEPS,
    ) -> float:
        """Maximise a tier, earlier ones held at given values; return the LP's value over all patterns that pay.

        Parameters
        ----------
        seconds : a ceiling; multipliers prove something whenever it strikes.
        again : whether this was optimised last, but for what is assumed or shut; to go on from there is quicker.
        like : what was assumed where this was optimised before, if that was not the last time.
        steps : how many of them that may be, before the LP is solved anew.
        """
        # Many times faster where prices tell kinds with sides apart, and slower elsewhere (measured); so is to begin
        # anew there, rather than at a corner where earlier tiers have other values.
        inner = self.fleet.priced and self.fleet.sided
        again = again or like is not None
        case = case_of(tier, given, self._confined.limits)
        start = case_of(tier, given, like) if like is not None else case if inner or again else tier
        until = None if seconds is None else time.monotonic() + seconds
        lp, costs = self._lp, self._built.pose(tier, given)
        self._tier = tier
        pushed = self._confined.hold(costs, push=False)
        close = _CLOSE if self.fleet.sided else _CLOSE_ENOUGH
        nodes = any(one.counts_nodes for one in self.fleet.original.tiers if one.name == tier)
        value, least = -np.inf, np.inf
        self.possible = True
        for number in range(_ROUNDS):
            left = None if until is None else until - time.monotonic()
            found = lp.solve(inner=inner, warm=again, start=start, seconds=left, steps=steps)
            before, value = value, found - pushed
            if lp.infeasible:  # who is assumed to be there cannot be
                self.possible = False
                pushed = self._confined.hold(costs, push=True)
                value = lp.solve(inner=inner, seconds=left) - pushed
            if number and not lp.complete:  # the prices of a round before prove more than unfinished ones
                break
            dual = lp.duals()
            grown, loss = self._cut_better(dual)
            if value + loss < least:  # what that round's prices prove, which may be less than later ones do
                self._dual, least = dual, value + loss
            over = self._stop or (left is not None and left <= 0) or (nodes and least - value <= _PROVED * abs(value))
            if over or not grown or value <= before + close * abs(value):
                break
        lp.remember(case, tier)
        return value / self._built.scale[tier] + self.fleet.tiers[tier].constant

    def wander(self, source: Random, seconds: float | None = None) -> None:
        """Move to another solution that is worth as much in all tiers so far, if there is time; prices stay."""
        lp, terms, values = self._lp, self.fleet.tiers[self._tier].terms, self._lp.values()
        worth = sum(c * values[v] for v, c in terms.items())
        lp.bounds(self._built.floors[self._tier], worth - _CLOSE * abs(worth), np.inf)
        for variable in terms:
            lp.cost(variable, 0.0)
        for column in (c for side in self.sides for c in (*side.counts.values(), *side.patterns.values())):
            lp.cost(column, source.uniform(-1, 1))
        lp.solve(warm=True, seconds=seconds)

    def _cut_better(self, dual: Sequence[float]) -> tuple[bool, float]:
        """Add to every side the cuts of a GPU that pay more than a GPU costs there.

        The dearest cuts of each side are found exactly; they are offered to all sides that cut GPUs into the same
        sizes.

        Returns
        -------
        tuple[bool, float]
            Whether there are any, and how far, at the most, a proof from these prices is above the LP's value.
        """
        asking = [
            (side, group, self._gpu(side, group, dual)) for side in self.sides for group in range(len(side.loads))
        ]
        offers, grown, losses = paying(gpu for _, _, gpu in asking), False, dict[int, float]()
        for side, group, gpu in asking:
            kind = self.fleet.kinds[side.kind]
            lost = gpu.most / MILLION * kind.size * len(kind.node.healthy_gpus())
            losses[side.kind] = max(lost, losses.get(side.kind, 0.0))
            for cut in offers.get(gpu.sizes, ()):
                if gpu.gain(cut) > 0 and cut not in side.cuts[group]:
                    self._built.add_cut(side, group, cut)
                    grown = True
        return grown, sum(losses.values())

    def _gpu(self, side: Side, group: int, dual: Sequence[float]) -> PricedGpu:
        """Return a shared GPU of a side at some prices; it costs a little more, which need not be gained."""
        cost = sum(dual[row] for row in self._built.of_a_gpu(side))
        shares = side.loads[group]
        sizes = Sizes(side.parts[group], tuple(shares))
        useful = self.fleet.useful_of[side.kind]
        price = max(0.0, dual[side.use]) if side.use is not None else 0.0
        rest: tuple[int, ...] = ()
        if useful is not None and price:
            rest = tuple(round(price * MILLION * use) for use in useful.rests(side.parts[group]))
        return PricedGpu(sizes, millionths(dual, shares.values()), round(cost * MILLION * (1 + _CLOSE)) + 1, rest)

    def proof(self) -> FleetProof:
        """Return the dual solution of the last tier in integers."""
        prices = {}
        for block, side in enumerate(self.sides):
            found = {d: value for d, row in side.prices.items() if (value := self._built.whole(self._dual[row]))}
            if found:
                prices[block] = found
        return self._built.proof(self._dual, prices)

    @property
    def spent(self) -> bool:
        """Whether it has had all the work that it may take: there is no limit to that."""
        return False

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return self._lp.columns

    @property
    def work(self) -> float:
        """What a solution takes, in units of work."""
        return _COLUMN_WORK * self.columns

    @property
    def complete(self) -> bool:
        """Whether the last solution is one, and not what was at hand when time ran out."""
        return self._lp.complete

    @property
    def solved(self) -> bool:
        """Whether there is a solution to take targets from."""
        return bool(self._tier)

    def scarcity(self) -> Sequence[float]:
        """Return per kind what one more node of it would be worth by the last solution."""
        return [self._dual[row] for row in self._built.nodes]

    def targets(self) -> Iterator[Target]:
        """Yield what the last solution has on every plot of every side that it uses."""
        values = self._lp.values()
        by_kind: dict[int, list[Use]] = {}
        for side in self.sides:
            nodes = sum(values[column] for column in side.patterns.values())
            counts = {s: values[column] for s, column in side.counts.items() if values[column] > NOTHING}
            if nodes > NOTHING and counts:
                by_kind.setdefault(side.kind, []).append(Use(side, nodes, counts, self._pays(side, counts)))
        for kind, uses in by_kind.items():
            yield from by_plot(self.fleet, kind, uses, values)

    def admitted(self) -> dict[int, float]:
        """Return what the last solution admits of every shape."""
        values, shapes = self._lp.values(), self.fleet.problem.shapes
        terms = {shape.index: self.fleet.admitted_shape(shape.index).terms for shape in shapes}
        return {s: sum(values[variable] * each for variable, each in own.items()) for s, own in terms.items()}

    def _pays(self, side: Side, counts: Iterable[int]) -> dict[int, float]:
        """Return what a replica of each shape pays for its part of a node of a side."""
        shares = [row for group in side.loads for row in group.values()]
        rows = {*side.sizes.values(), *side.prices.values(), *shares}
        return {s: self._lp.cost_of(side.counts[s], rows, self._dual) for s in counts}
