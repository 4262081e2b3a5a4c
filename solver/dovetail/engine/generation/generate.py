"""Re-planning all interchangeable empty nodes at once by column generation over node patterns.

Patterns start from what the nodes hold now and grow by pricing: one node of a lot, filled with what the LP pays most
for. Rules and totals are rows of that LP as far as a whole fleet's bound knows them. A dive makes whole nodes of the
LP's mixture; where nodes cost and it has room for all that asks, of the mixture of least cost. What rules still keep
out there is placed elsewhere by construction, if there is room.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from dovetail.engine.budget import Budget
from dovetail.engine.construction.holding import held_shapes
from dovetail.engine.construction.served import all_served
from dovetail.engine.construction.tier_order import promises_first
from dovetail.engine.contents.idling import Idling
from dovetail.engine.contents.patterns import Mixture, Pattern, Wish, pattern_of
from dovetail.engine.generation.diving import TAILS, Chosen, dive
from dovetail.engine.generation.filling import filled
from dovetail.engine.generation.fleet_rows import FleetRows, fleet_rows
from dovetail.engine.generation.master import Master
from dovetail.engine.generation.pricing import Pricing
from dovetail.engine.parts.jobs import Jobs
from dovetail.model.state import Fill, State
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.proof.fleet import FleetModel
from dovetail.spec.workload import MILLI

_ROUNDS = 60, 1000  # of pricing; and where what is on each instance has a price of its own
_ALMOST = 1e-6
_GRAIN = 1e-7, 1e-4  # of what is asked for in all, and in the band that is worth least
_GRAIN_OF_COST = 1e-4  # of what all nodes cost
_GRAIN_OF_USE = 1e-5  # of the use of all nodes while they are empty
_LACKING = 0.03  # of the replicas that ask, for which there may be no room where the least cost is wished for
_DEAREST = 100.0  # what the dearest node costs, where cost is left to decide: an LP's tolerances are absolute
_MISSED = 2.0  # of the dearest node, what it costs to leave a replica out: no replica takes more than a node
_MIXING = 0.4, 0.7  # of the time, and of the work, that are left, for a mixture before the first dive
_AMPLE = 20.0  # times what it takes to fill nodes: so much time, and a state in haste costs little of it
_ENDS = 2  # of the first dive, that nodes are filled for
_LIGHT = 0.005  # worth of a replica without GPU, per milli-core, where GPU work is worth its milli-GPU
_BAND = 0.005  # worth of the next band, where that of a band is 1
_LEAST = 1e-6
_COST = 0.1, 0.01  # of the least worth of a GPU's work, what the dearest node costs per GPU; and beside promises
_PROMISE = 0.5  # of that worth, what it costs that all of a promise is missing
_BROKEN = 10.0  # the same of the dearest node, where the least cost is wished for


class Mixed(NamedTuple):
    """What mixing patterns came to.

    Parameters
    ----------
    states : be they taken or not.
    planned : replicas per shape that LPs have.
    settled : whether nothing is left of the least cost for LPs of the fleet to tell.
    worth : of GPU work, by band, that the LP admits; nothing where there was none.
    """

    states: list[State]
    planned: Counter[int]
    settled: bool = False
    worth: Mapping[int, float] = {}


@dataclass(slots=True)
class Generation:
    """A run of column generation over the free nodes of a state.

    Free are nodes that hold nothing of today's, be it in place or elsewhere, and no part of a workload that stands or
    falls together.

    Parameters
    ----------
    state : what stays where it is not free.
    fleet : the rows that bind all nodes together.
    best : the best state at hand, if that is another one: its patterns are among those to begin with.
    jobs : where nodes are priced.
    full : whether no plan admits more than that one, so that what it admits is all to wish for.
    roomy : whether all that asks seems to have room, so that the least cost is to be wished for at once.
    brief : whether there is no time for the least cost, so that nothing is found where that is left to wish for.
    """

    problem: Problem
    state: State
    fleet: FleetModel
    stop: Stop
    best: State | None = None
    jobs: Jobs = field(default_factory=Jobs)
    full: bool = False
    roomy: bool = False
    brief: bool = False
    rows: FleetRows = field(init=False)
    wish: Wish = field(init=False)
    spares: bool = field(init=False)  # whether all to wish for is at hand, and cost left to decide
    planned: Counter[int] = field(init=False)  # replicas per shape that the last mixture has
    worth: Mapping[int, float] = field(init=False, default_factory=dict)  # of GPU work, by band, that it admits
    priced: Master | None = field(init=False, default=None)  # the patterns at hand
    _millis: Mapping[int, int] = field(init=False)
    _lenient: set[int] = field(init=False)  # shapes of places held for policies that are not hard: once all is filled

    def __post_init__(self) -> None:
        self._millis = {s.index: s.request.gpu_milli for s in self.problem.shapes}
        self.planned = Counter()
        joint = {s.index for s in self.problem.shapes if s.workload.joint or s.workload.holds}
        self._lenient = {shape.index for shape in held_shapes(self.problem, hard=False)}
        free = self._free(joint - self._lenient)
        fixed: Counter[int] = Counter()
        for node, fill in self.state.fills.items():
            if node not in free:
                fixed.update(fill.counts())
        self.rows = fleet_rows(self.fleet, self.state, free)
        there = (self.best or self.state).admitted()
        serving = {s.index for s in self.problem.shapes if s.workload.asks_rate}
        limited = {s.index: min(s.demand, there[s.index]) for s in self.problem.shapes if s.index not in serving}
        most = {s.index: limited.get(s.index, s.demand) if self.full else s.demand for s in self.problem.shapes}
        if self.full:
            self._ask_at_most(most)
        demand = {s: n - fixed[s] for s, n in most.items() if s not in joint and n > fixed[s]}
        served = all_served(self.problem, self.best or self.state)
        complete = self.roomy or all(there[s] >= n + fixed[s] or s in served for s, n in demand.items())
        spare = self._spare(demand) if complete else None
        self.spares = spare is not None
        self.wish = spare or self._ask(demand)

    def _ask_at_most(self, most: Mapping[int, int]) -> None:
        """Let no more of shapes count than so many replicas."""
        limits = [sum(most.get(s, inf) for s in c.alike) if c.alike else inf for c in self.rows.counted]
        self.rows.counted = [replace(c, high=min(c.high, n)) for c, n in zip(self.rows.counted, limits, strict=True)]

    def _free(self, joint: set[int]) -> frozenset[int]:
        empty = (node for group in self.problem.classes if group.empty for node in group.nodes)
        tied = joint | self.problem.running.keys()
        return frozenset(n for n in empty if not any(slot.shape in tied for slot in self.state.fill(n).slots))

    def _seen(self) -> Iterator[tuple[Sequence[int], Pattern]]:
        """Yield the patterns of the best state, each with the node that has it, as far as they may be mixed."""
        for node, fill in self.best.fills.items() if self.best is not None else ():
            pattern = self.pattern(fill)
            if not any(slot.shape not in self.wish.demand for slot, _ in pattern):
                yield (node,), pattern

    def pattern(self, fill: Fill) -> Pattern:
        """Return what a node holds as a pattern, without places that need not be held."""
        if not self._lenient.isdisjoint(slot.shape for slot in fill.slots):
            fill = Fill(Counter({slot: n for slot, n in fill.slots.items() if slot.shape not in self._lenient}))
        return pattern_of(self._millis, fill)

    def _prices(self) -> list[float]:
        """Return what a node of each lot costs in use, with all its GPUs."""
        return [lot.kind.node.full_price for lot in self.rows.lots]

    def _spare(self, demand: Mapping[int, int]) -> Wish | None:
        """Return what to wish for where all that asks finds room: the same on cheaper nodes, where these cost.

        Where none does, it is the same with the most use of what is left idle, if a tier asks for that.
        """
        prices, sizes = self._prices(), [len(lot.nodes) for lot in self.rows.lots]
        total = sum(price * size for price, size in zip(prices, sizes, strict=True))
        short = _BROKEN * _DEAREST / MILLI if self._promises else 0.0
        worst = MILLI * short * max((counted.short for counted in self.rows.counted), default=0)
        missed = dict.fromkeys(demand, _MISSED * _DEAREST + worst)
        if self.fleet.priced and total:
            scale = _DEAREST / max(prices)
            costs = [scale * price for price in prices]
            return Wish(demand, missed, costs, _GRAIN_OF_COST * scale * total, per_short=short)
        idling = [Idling.of(self.problem, lot.kind) for lot in self.rows.lots]
        most = [0 if each is None else each.most for each in idling]
        if not any(most):
            return None
        per_use, total = _DEAREST / max(most), sum(use * size for use, size in zip(most, sizes, strict=True))
        nothing = [0.0] * len(idling)
        grain = _GRAIN_OF_USE * per_use * total
        return Wish(demand, missed, nothing, grain, idling=idling, per_use=per_use, per_short=short)

    def _ask(self, demand: Mapping[int, int]) -> Wish:
        """Return what to wish for where not all that asks is there."""
        worth = {s.index: self._worth(s) for s in self.problem.shapes}
        short = _PROMISE * self._least_worth() / MILLI if self._promises else 0.0
        return Wish(demand, worth, self._costs(), self._grain(demand, worth), per_short=short)

    @property
    def _promises(self) -> bool:
        """Tell whether what is missing of promises comes before what is left to decide once all is admitted."""
        return promises_first(self.problem) and any(counted.short for counted in self.rows.counted)

    def _worth(self, shape: Shape, *, highest: bool = False) -> float:
        """Return what the LP counts for a replica: earlier tiers weigh more, as far as arithmetic stays sound.

        Parameters
        ----------
        highest : whether it is to count as if it were of the highest band.
        """
        rank = 0 if highest else self.problem.spec.bands.index(self.problem.spec.band_of(shape.workload))
        return shape.role.value * max(_BAND**rank, _LEAST) * (1.0 if shape.request.gpu_count else _LIGHT)

    def _grain(self, demand: Mapping[int, int], worth: Mapping[int, float]) -> float:
        """Return what is no matter: little beside everything, and beside every single band."""
        bands: dict[int, float] = {}
        for s, count in demand.items():
            band = self.problem.spec.band_of(self.problem.shapes[s].workload)
            bands[band] = bands.get(band, 0.0) + count * worth[s]
        asked = [total for total in bands.values() if total > 0]
        return min(_GRAIN[0] * sum(asked), _GRAIN[1] * min(asked)) if asked else 0.0

    def _costs(self) -> list[float]:
        """Return what it costs to use a node of each lot: little beside the worth of what it may hold."""
        lots, prices = self.rows.lots, self._prices()
        dearest = max((price / lot.gpus for lot, price in zip(lots, prices, strict=True)), default=0.0)
        if not self.fleet.priced or not dearest:
            return [0.0] * len(lots)
        each = _COST[self._promises] * self._least_worth() / dearest
        return [each * price for price in prices]

    def _least_worth(self) -> float:
        """Return the least worth of work on a GPU, that of no worth aside, such as places held free."""
        asking = (shape for shape in self.problem.shapes if shape.request.gpu_milli and shape.role.value)
        return min((self._worth(s) * MILLI / s.request.gpu_milli for s in asking), default=0.0)

    def run(
        self, budget: Budget, known: Iterable[tuple[Sequence[int], Pattern]] = (), filling: float = 0.0
    ) -> Iterator[State]:
        """Yield whole states: one as soon as pricing ends, in haste where there is time for it, then those of dives.

        Where nodes cost and the mixture has all that asks, patterns are mixed for the least cost before any of these.

        Parameters
        ----------
        known : patterns to begin with beside those of the states, each with nodes that may take it.
        filling : seconds that it may take to fill nodes as patterns say.
        """
        if not self.rows.lots or not self.wish.demand:
            return
        master = self._master(known)
        pricing = Pricing(self.problem, self.rows.lots, budget, self.stop, self.jobs)
        mixture = _mixed(master, pricing)
        if self.spares and self._misses(mixture):
            self.spares, self.wish = False, self._ask(self.wish.demand)
            master = self._with_wish(master)
            mixture = _mixed(master, pricing)
        if self._saves(mixture):
            if self.brief:
                return
            master = self._with_wish(master)
            mixture = _mixed(master, pricing)
        self.priced = master
        self.planned = self._planned(mixture)
        self.worth = worth_of(self.problem, self._amounts(mixture))
        ample = (left := budget.seconds()) is None or left > _AMPLE * filling
        if ample and not self.spares:
            began = time.monotonic()
            yield self._quick(master, mixture, pricing)
            filling = time.monotonic() - began
        budget.hold_back(filling)  # for the last state
        if ample and pricing.hurried:
            return
        ends = dive(master, mixture, pricing, tails=() if self.spares else TAILS)
        for chosen in ends[:_ENDS]:  # which of them hard rules let be nobody can tell beforehand
            yield self.filled(chosen)

    def _misses(self, mixture: Mixture) -> bool:
        """Tell whether a mixture lacks anything of what is wished for, so that worth decides on what."""
        there = self._admitted(mixture)
        return any(there[s] < self.problem.shapes[s].demand for s in self.wish.demand.keys() - mixture.served)

    def _admitted(self, mixture: Mixture) -> Counter[int]:
        """Return the replicas per shape that a mixture admits, of alike shapes first those that run today."""
        found = Counter[int]()
        for counted in (counted for counted in self.rows.counted if counted.alike):
            left = int(mixture.admitted.get(counted.shape, 0.0) + _ALMOST)
            for most in (self.problem.running, {s: self.problem.shapes[s].demand for s in counted.alike}):
                for s in counted.alike:
                    more = max(0, min(left, most[s] - found[s]))
                    found[s] += more
                    left -= more
        return found

    def _amounts(self, mixture: Mixture) -> dict[int, float]:
        """Return how much of each shape a mixture admits, or of all shapes that are alike with it."""
        return {c.alike[0]: mixture.admitted.get(c.shape, 0.0) for c in self.rows.counted if c.alike}

    def _planned(self, mixture: Mixture) -> Counter[int]:
        """Return the replicas per shape that there may be for a mixture: any number of those that serve all they may.

        How many these are depends on the instances that they get in the end.
        """
        found = self._admitted(mixture)
        found.update({s: self.problem.shapes[s].demand - found[s] for s in mixture.served})
        return found

    def _saves(self, mixture: Mixture) -> bool:
        """Wish for the least cost where a mixture has all that asks; tell whether that is another wish.

        A few replicas may be too many, as for quotas: then what the mixture has is all to wish for.
        """
        asked = self.wish.demand
        there = self._admitted(mixture)
        fixed = {s: self.problem.shapes[s].demand - n for s, n in asked.items()}
        demand = {s: n if s in mixture.served else min(n, there.get(s, 0) - fixed[s]) for s, n in asked.items()}
        complete = sum(demand.values()) >= (1 - _LACKING) * sum(asked.values())
        spare = self._spare({s: n for s, n in demand.items() if n > 0}) if complete and not self.spares else None
        if spare is None:
            return False
        self._ask_at_most({s: n + fixed[s] for s, n in demand.items()})
        self.wish, self.spares = spare, True
        return True

    def _with_wish(self, master: Master) -> Master:
        """Return an LP over the same patterns for what is wished for now."""
        found = Master(self.rows, self.wish)
        for column in master.columns:
            found.add(column.lot, column.pattern)
        return found

    def _master(self, known: Iterable[tuple[Sequence[int], Pattern]]) -> Master:
        """Return the LP over the patterns of both states, and others that are known."""
        master = Master(self.rows, self.wish)
        for position, lot in enumerate(self.rows.lots):
            master.add(position, ())
            for node in lot.nodes:
                master.add(position, self.pattern(self.state.fill(node)))
        lot_of = {node: position for position, lot in enumerate(self.rows.lots) for node in lot.nodes}
        for nodes, pattern in (*known, *self._seen()):
            for position in sorted({lot_of[node] for node in nodes if node in lot_of}):
                master.add(position, pattern)
        return master

    @property
    def known(self) -> list[tuple[Sequence[int], Pattern]]:
        """The patterns at hand after a run, each with nodes that may take it."""
        columns = () if self.priced is None else self.priced.columns
        return [(self.rows.lots[column.lot].nodes, column.pattern) for column in columns if not column.stays]

    def _quick(self, master: Master, mixture: Mixture, pricing: Pricing) -> State:
        """Return a state from the patterns at hand, in case the search ends before it has better ones."""
        chosen = dive(master, mixture, pricing, rounds=0)[0]
        master.reset()
        master.refresh()
        return self.filled(chosen)

    def filled(self, chosen: Chosen) -> State:
        """Return a state whose free nodes hold what was chosen, filled up with what is planned and what else fits."""
        free = [list(lot.nodes) for lot in self.rows.lots]
        fills = {node: Fill() for nodes in free for node in nodes}
        wished: list[tuple[int, Pattern]] = []
        for column, times in chosen:
            nodes = free[column.lot]
            taken, nodes[:times] = nodes[:times], []
            wished += [(node, column.pattern) for node in taken]
        base = self.state.with_fills(fills)
        return filled(self.problem, base, wished, self.planned, self.stop)


def worth_of(problem: Problem, admitted: Mapping[int, float]) -> dict[int, float]:
    """Return what GPU work is worth, by band, of which there is so much per shape."""
    found = dict.fromkeys(problem.spec.bands, 0.0)
    for s, amount in admitted.items():
        shape = problem.shapes[s]
        found[problem.spec.band_of(shape.workload)] += shape.role.value * amount * bool(shape.request.gpu_count)
    return found


def _mixed(master: Master, pricing: Pricing) -> Mixture:
    """Return the LP with nothing settled, priced to its end or for its part of the time and work."""
    pricing.pause_after(*_MIXING)
    return pricing.settle(master, pricing.solve(master), _ROUNDS[bool(master.rows.keys)], inf)
