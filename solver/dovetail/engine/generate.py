"""Re-planning all interchangeable empty nodes at once by column generation over node patterns (E2, E3).

Patterns start from what the nodes hold now and grow by pricing: one node of a kind, filled with what the LP pays most
for. A dive makes whole nodes of the LP's mixture. Rules that reach beyond a node are kept where nodes are filled in
the end, replica by replica; what they keep out is placed elsewhere by construction, if there is room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from dovetail.engine.budget import Budget
from dovetail.engine.construct import construct
from dovetail.engine.diving import Chosen, dive, dive_again, worth
from dovetail.engine.first_prices import first_prices
from dovetail.engine.patterns import Master, Pattern, pattern_of
from dovetail.engine.pricing import Pricing
from dovetail.model.state import NO_GPU, Fill, State
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.proof.kinds import Kind, kinds_of
from dovetail.rules import Guard

_ROUNDS = 60
_CLOSE = 1e-5
_CLOSEST = 2e-6
_PATIENCE = 6  # dives that find nothing better
_LIGHT = 0.005  # worth of a replica without GPU, per milli-core, where GPU work is worth its milli-GPU
_BAND = 0.03  # worth of the next band, where that of a band is 1
_LEAST = 1e-6


@dataclass(slots=True)
class Generation:
    """A run of column generation over the free nodes of a state.

    Free are nodes that hold nothing of today's and no part of a workload that stands or falls together.

    Parameters
    ----------
    prices : what a replica of each shape is about worth to the LP, where anybody knows already.
    """

    problem: Problem
    state: State
    stop: Stop
    prices: Mapping[int, float] | None = None
    free: list[list[int]] = field(init=False)
    kinds: list[Kind] = field(init=False)
    demand: dict[int, int] = field(init=False)
    worth: dict[int, float] = field(init=False)

    def __post_init__(self) -> None:
        joint = {s.index for s in self.problem.shapes if s.workload.joint or s.workload.holds}
        self._find_nodes(joint)
        inside = {node for nodes in self.free for node in nodes}
        fixed: Counter[int] = Counter()
        for node, fill in self.state.fills.items():
            if node not in inside:
                fixed.update(fill.counts())
        shapes = [s for s in self.problem.shapes if s.index not in joint and s.demand > fixed[s.index]]
        self.demand = {s.index: s.demand - fixed[s.index] for s in shapes}
        self.worth = {s.index: self._worth(s) for s in shapes}

    def _find_nodes(self, joint: set[int]) -> None:
        self.free, self.kinds = [], []
        of = self.problem.class_of
        for kind in kinds_of(self.problem, {}):
            nodes = [
                node
                for node in kind.members
                if self.problem.classes[of[node]].empty
                and not any(slot.shape in joint for slot in self.state.fill(node).slots)
            ]
            if nodes:
                self.kinds.append(kind)
                self.free.append(nodes)

    def _worth(self, shape: Shape) -> float:
        """Return what the LP counts for a replica: earlier tiers weigh more, as far as arithmetic stays sound."""
        rank = self.problem.spec.bands.index(self.problem.spec.band_of(shape.workload))
        return shape.role.value * max(_BAND**rank, _LEAST) * (1.0 if shape.request.gpu_count else _LIGHT)

    def run(self, budget: Budget) -> Iterator[State]:
        """Yield whole states, the first from patterns at hand, the next from all that pricing finds."""
        if not self.free or not self.demand:
            return
        sizes = {position: len(nodes) for position, nodes in enumerate(self.free)}
        master = Master(sizes, self.demand, self.worth)
        for position, nodes in enumerate(self.free):
            master.add(position, ())
            for node in nodes:
                master.add(position, pattern_of(self.problem, self.state.fill(node)))
        first = first_prices(self.problem, [*zip(self.kinds, sizes.values(), strict=True)], self.demand, self.worth)
        pricing = Pricing(self.problem, self.kinds, self.prices or first.prices, first.bound, budget, self.stop)
        yield self._quick(master, pricing)
        mixture = pricing.settle(master, pricing.solve(master), _ROUNDS, first.bound * (1 - _CLOSE))
        if not pricing.over:
            yield self._quick(master, pricing)
            mixture = pricing.solve(master)
        chosen = dive(master, mixture, pricing)
        yield self.filled(chosen, budget)
        for better in self._improve(master, chosen, pricing):
            yield self.filled(better, budget)

    def _quick(self, master: Master, pricing: Pricing) -> State:
        """Return a state from the patterns at hand, in case the search ends before it has better ones."""
        sizes, demand = dict(master.sizes), dict(master.demand)
        chosen = dive(master, pricing.solve(master), pricing, rounds=0)
        master.reset(sizes, demand)
        master.refresh()
        return self.filled(chosen, pricing.budget)

    def _improve(self, master: Master, chosen: Chosen, pricing: Pricing) -> Iterator[Chosen]:
        """Yield ever better choices from diving again for some nodes, until that fails several times in a row."""
        source, idle = Random(1), 0
        best = worth(master, chosen)
        everything = Counter(self.demand)
        while idle < _PATIENCE and best < pricing.bound * (1 - _CLOSEST) and not pricing.over:
            found = dive_again(master, chosen, everything, pricing, source)
            value = worth(master, found)
            idle = 0 if value > best else idle + 1
            if value > best:
                best, chosen = value, found
                yield chosen

    def filled(self, chosen: Chosen, budget: Budget) -> State:
        """Return a state whose free nodes hold what was chosen, filled up with what else fits."""
        free = [list(nodes) for nodes in self.free]
        gate = _Gate(self.problem, self.state, {node for nodes in free for node in nodes})
        fills = {node: Fill() for nodes in free for node in nodes}
        left = dict(self.demand)
        for column, times in chosen:
            for _ in range(times):
                node = free[column.node_class].pop(0)
                fills[node] = self._fill(node, column.pattern, left, gate)
        found = self.state.with_fills(fills)
        return found if budget.out_of_time() or self.stop else construct(self.problem, found, self.stop)

    def _fill(self, node: int, pattern: Pattern, left: dict[int, int], gate: _Gate) -> Fill:
        """Return a node's contents after a pattern, without what nobody asks for or rules keep out."""
        healthy = self.problem.nodes[node].healthy_gpus()
        fill = Fill()
        for slot, count in pattern:
            gpu = healthy[slot.gpu] if slot.gpu != NO_GPU else NO_GPU
            served = gate.admit(slot.shape, node, gpu, min(count, left.get(slot.shape, 0)))
            if served:
                fill.slots[slot._replace(gpu=gpu)] = served
                left[slot.shape] -= served
        return fill


class _Gate:
    """The running accounts of all hard rules, what stays on other nodes counted in."""

    def __init__(self, problem: Problem, state: State, free: set[int]) -> None:
        self._problem = problem
        self._guards: list[Guard] = []
        for policy in problem.spec.policies:
            if policy.enforcement.kind == "hard":
                guard = policy.rule.guard(problem.context.scopes[policy.name])
                if guard is not None:
                    self._guards.append(guard)
        for node, fill in state.fills.items() if self._guards else ():
            for slot, count in fill.slots.items() if node not in free else ():
                self._add(slot.shape, node, slot.gpu, count)

    def _add(self, shape: int, node: int, gpu: int, count: int) -> None:
        member = self._problem.shapes[shape].members[0]
        for guard in self._guards:
            seen = None if gpu == NO_GPU else gpu
            guard.add(member.workload, member.role, self._problem.nodes[node], seen, count)

    def admit(self, shape: int, node: int, gpu: int, count: int) -> int:
        """Count in as many replicas as no rule keeps out, and return how many."""
        if not self._guards:
            return count
        member = self._problem.shapes[shape].members[0]
        place = member.workload, member.role, self._problem.nodes[node], None if gpu == NO_GPU else gpu
        for admitted in range(count):
            if any(guard.bars(*place[:2]) or guard.blocks(*place) for guard in self._guards):
                return admitted
            self._add(shape, node, gpu, 1)
        return count
