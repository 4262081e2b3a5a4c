"""The LP over contents of single nodes under a fleet's own rows: the closest bounds, of few nodes.

Where the LP over kinds (`fleet_lp`) knows a node's CPU and memory by sums and classes, this one knows what a node may
hold as a whole (Gilmore and Gomory 1961), found by branch and bound (`node_search`). So it knows when two large
replicas do not go together. The cases of that search are the proof: what each kind of node earns at the LP's prices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.contents.knapsack import Knapsack
from dovetail.engine.contents.node_search import Content, NodeSide, Outcome
from dovetail.engine.contents.patterns import Pattern, counts_of
from dovetail.engine.contents.width import NARROW
from dovetail.engine.fleet.confining import Confinement
from dovetail.engine.fleet.tier_rows import TierRows
from dovetail.engine.solvers.highs import FEW_STEPS
from dovetail.progress import Stop
from dovetail.proof.certificate import Fork, Forks, Multipliers, Prices
from dovetail.proof.fleet import FleetModel
from dovetail.proof.fleet_models import FleetProof, Within

FEW: Final = 40
"""Nodes: of more the LP takes long, and says hardly more than the one over kinds (measured)."""

ENOUGH: Final = 40_000
"""Cases of contents that are looked at for a tier where time does not end that, some 10 s."""

_ROUNDS = 200
_CHEAP = 20  # cases that a call of cheap pricing counts as
_CLOSE = 1e-4  # of the LP's value, that its proof may be above it
_CASES = 400, 6_000  # that a node's contents are told apart in, at first and once more
_STEPS = 3_000  # of the simplex algorithm, which may stall; then it starts anew
_STEPS_A_CASE = 2  # that take as long as to look at one
_GAIN = 1e-6  # of what a node costs, that contents must be worth more
_OFFERED = 4  # contents of a search that join the LP


def suits(fleet: FleetModel) -> bool:
    """Tell whether the LP over contents of nodes knows what a fleet's tiers and rows ask of these."""
    return fleet.sided and fleet.idle_use is None and not any(fleet.modes_of)


class _Offer(NamedTuple):
    """What a side of a kind is priced at: its replicas by shape, a GPU in use, and a node."""

    kind: int
    worth: NDArray[np.float64]
    per_gpu: float
    price: float


class NodeLp:
    """An LP that is built once and solved for one tier after the other; see `FleetLp`.

    `left` is how many more cases of contents it may look at.
    """

    def __init__(self, fleet: FleetModel, stop: Stop) -> None:
        self.fleet = fleet
        self._stop = stop
        in_use = (v for v in (*fleet.used_of, *fleet.gpus_used_of) if v is not None)
        held = (v for counts in fleet.counts_of for v in counts.values())
        self._built = built = TierRows(fleet, {*held, *in_use})
        self._lp = lp = built.lp
        self._links = [{s: lp.row(-np.inf, 0.0, {v: 1.0}) for s, v in counts.items()} for counts in fleet.counts_of]
        self._sizes = [lp.row(-np.inf, float(kind.size)) for kind in fleet.kinds]
        self._used = [None if v is None else lp.row(-np.inf, 0.0, {v: -1.0}) for v in fleet.used_of]
        self._gpus_used = [None if v is None else lp.row(-np.inf, 0.0, {v: -1.0}) for v in fleet.gpus_used_of]
        sides = ((packing, side) for packing in fleet.packings for side in packing.kind.sides)
        self._sides = [NodeSide(packing, side) for packing, side in sides]
        self._cheap = [Knapsack(fleet.problem, each.kind, each.side) for each in self._sides]
        self._known: set[tuple[int, Content]] = set()
        self._confined = Confinement(lp, fleet)
        self._turn = 0
        self.left = inf
        self._proof: FleetProof | None = None

    def confine(self, limits: Within) -> None:
        """Say of some variables that no node has a part in that they have closer limits, of no others."""
        self._confined.limits = dict(limits)

    def values(self) -> Sequence[float]:
        """Return the last solution, the fleet's variables first."""
        return self._lp.values()

    def proof(self) -> FleetProof:
        """Return what proves most of what the last tier was optimised for."""
        assert self._proof is not None
        return self._proof

    def optimise(
        self,
        tier: str,
        given: Mapping[str, int],
        *,
        seconds: float | None = None,
        like: Within | None = None,
        steps: int = FEW_STEPS,
    ) -> float:
        """Maximise a tier, earlier ones held at given values; return the LP's value over all contents that pay.

        Parameters
        ----------
        seconds, like, steps : as for `FleetLp.optimise`; what was solved before is no matter here.
        """
        until = None if seconds is None else time.monotonic() + seconds
        late = partial(self._late, until)
        lp, costs = self._lp, self._built.pose(tier, given)
        pushed, least, value = self._confined.hold(costs, push=False), np.inf, -np.inf
        self._proof = None
        for _ in range(_ROUNDS):
            left = None if until is None else until - time.monotonic()
            value = lp.solve(warm=True, seconds=left, steps=_STEPS, stalls=True) - pushed
            if lp.infeasible:  # who is assumed to be there cannot be
                pushed = self._confined.hold(costs, push=True)
                value = lp.solve(seconds=left, steps=_STEPS, stalls=True) - pushed
            if self._proof is not None and (late() or not lp.complete):
                break
            self.left -= lp.steps // _STEPS_A_CASE
            dual, close = lp.duals(), _CLOSE * abs(value)
            offers = list(self._offers(dual))
            if not late() and self._cheaply_grown(offers):
                continue
            found, grown = self._searched(offers, close / max(1, len(self.fleet.problem.nodes)), late)
            proof, loss = self._proved(dual, offers, found)
            if self._proof is None or value + loss < least:
                self._proof, least = proof, value + loss
            if late() or not grown or least - value <= close:
                break
        return value / self._built.scale[tier] + self.fleet.tiers[tier].constant

    @property
    def spent(self) -> bool:
        """Whether it has looked at all cases that it may."""
        return self.left <= 0

    def _late(self, until: float | None) -> bool:
        return bool(self._stop) or self.spent or (until is not None and time.monotonic() >= until)

    def _offers(self, dual: Sequence[float]) -> Iterator[_Offer]:
        """Yield what the nodes of each side earn and cost at some prices."""
        fleet, unit = self.fleet, self._built.unit
        costs = self._built.proof(dual, {}).costs(fleet)
        for (kind, _), side in zip(fleet.sides, self._sides, strict=True):
            per_node, per_gpu = (
                0.0 if v is None else costs.get(v, 0) / unit for v in (fleet.used_of[kind], fleet.gpus_used_of[kind])
            )
            counts = fleet.counts_of[kind]
            worth = np.array([costs.get(counts[s], 0) / unit if s in counts else 0.0 for s in side.shapes.tolist()])
            yield _Offer(kind, worth, min(0.0, per_gpu), dual[self._sizes[kind]] - per_node)

    def _cheaply_grown(self, offers: Sequence[_Offer]) -> bool:
        """Add what cheap pricing finds to be worth more than a node costs; tell whether there is anything."""
        grown = False
        for offer, side, node in zip(offers, self._sides, self._cheap, strict=True):
            shapes, own = side.shapes.tolist(), offer.worth.tolist()
            worth = dict(zip(shapes, own, strict=True))
            with_gpus = {s: value + offer.per_gpu * side.whole_of[s] for s, value in worth.items()}
            self.left -= _CHEAP
            for _, pattern in node.price(with_gpus, None, NARROW):
                content = _content(pattern, side)
                earned = sum(worth[s] * n for s, n in content.counts) + offer.per_gpu * content.gpus
                if earned > offer.price + _GAIN * abs(offer.price):
                    grown |= self._add(offer.kind, content)
        return grown

    def _searched(
        self, offers: Sequence[_Offer], slack: float, late: Callable[[], bool]
    ) -> tuple[Sequence[Outcome], bool]:
        """Search what each side best holds at what it is offered, for longer where nothing better is found soon.

        Once the LP has grown, or it is late, the sides that are left are only bounded.

        Parameters
        ----------
        slack : what a node may earn beyond its price.

        Returns
        -------
        tuple[Sequence[Outcome], bool]
            What was found, side by side, and whether the LP has grown.
        """
        found, grown = dict[int, Outcome](), False
        turns = [(self._turn + block) % len(offers) for block in range(len(offers))]
        for block, most in ((block, most) for most in _CASES for block in turns):
            offer = offers[block]
            aim = max(0.0, offer.price + slack)
            if block in found and (grown or found[block].most <= aim):
                continue
            found[block] = self._sides[block].search(offer.worth, offer.per_gpu, aim, 1 if grown else most, late)
            self.left -= found[block].cases
            for _, content in found[block].contents[-_OFFERED:]:
                grown |= self._add(offer.kind, content)
            self._turn = block if grown else self._turn
        return [found[block] for block in range(len(offers))], grown

    def _proved(
        self, dual: Sequence[float], offers: Sequence[_Offer], found: Sequence[Outcome]
    ) -> tuple[FleetProof, float]:
        """Return what some prices prove, and about how far that is above the LP's value."""
        worst = [0.0] * len(self.fleet.kinds)
        for offer, outcome in zip(offers, found, strict=True):
            worst[offer.kind] = max(worst[offer.kind], outcome.most - offer.price)
        loss = sum(more * kind.size for more, kind in zip(worst, self.fleet.kinds, strict=True))
        prices: Prices = {block: self._forks(outcome) for block, outcome in enumerate(found)}
        return self._built.proof(dual, prices), loss

    def _forks(self, found: Outcome) -> Forks:
        return tuple(each if isinstance(each, Fork) else self._whole(each) for each in found.forks)

    def _whole(self, prices: Mapping[int, float]) -> Multipliers:
        return {d: value for d, price in prices.items() if (value := self._built.whole(price))}

    def _add(self, kind: int, content: Content) -> bool:
        """Add a column for nodes of a kind that hold something; tell whether it is new."""
        if (kind, content) in self._known:
            return False
        self._known.add((kind, content))
        entries = {self._sizes[kind]: 1.0}
        entries |= {self._links[kind][shape]: -float(count) for shape, count in content.counts}
        if (used := self._used[kind]) is not None:
            entries[used] = 1.0
        if (in_use := self._gpus_used[kind]) is not None:
            entries[in_use] = float(content.gpus)
        self._lp.column(0.0, np.inf, entries)
        return True


def _content(pattern: Pattern, side: NodeSide) -> Content:
    """Return a pattern as what a node holds."""
    counts = counts_of(pattern)
    shared = len({slot.gpu for slot, _ in pattern if slot.gpu >= 0})
    gpus = shared + sum(side.whole_of[s] * n for s, n in counts.items())
    return Content(tuple(sorted(counts.items())), gpus)
