"""Re-planning all interchangeable empty nodes at once by column generation over node patterns (E2, E3).

Patterns start from what the nodes hold now and grow by pricing: one node of a class, exact with all rules, filled
with what the LP pays most for. The LP's solution rounded down fixes most nodes; the rest are filled by a small
integer master and by construction. Rules that reach beyond a node are checked afterwards, by the caller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dovetail.engine.answer import Effort
from dovetail.engine.budget import Budget
from dovetail.engine.construct import construct
from dovetail.engine.cpsat import CpSat
from dovetail.engine.patterns import Master, Mixture, Pattern, counts_of, pattern_of
from dovetail.linear import Linear, Model
from dovetail.model.part import PartModel
from dovetail.model.state import Fill, Slot, State
from dovetail.problem import NodeClass, Problem
from dovetail.progress import Stop

_SCALE = 1000
_KEEP = 0.6  # share of the best prices so far in the prices that pricing sees
_PRICING_WORK = 0.1
_MASTER_WORK = 1.0
_CLOSE = 5e-4
_LIGHT = 0.02  # worth of a replica without GPU, per milli-core, where GPU work is worth its milli-GPU


@dataclass(slots=True)
class Generation:
    """A run of column generation over the free nodes of a state.

    Free are nodes that hold nothing of today's and no part of a workload that stands or falls together.
    """

    problem: Problem
    state: State
    stop: Stop
    free: dict[int, list[int]] = field(init=False)
    master: Master = field(init=False)
    _pricers: dict[int, Pricer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        joint = {s.index for s in self.problem.shapes if s.workload.atomic or s.workload.min_replicas > 1}
        self.free = _free_nodes(self.problem, self.state, joint)
        inside = {node for nodes in self.free.values() for node in nodes}
        fixed: Counter[int] = Counter()
        for node, fill in self.state.fills.items():
            if node not in inside:
                fixed.update(fill.counts())
        shapes = [s for s in self.problem.shapes if s.index not in joint and s.demand > fixed[s.index]]
        bands = {band: 2.0**-rank for rank, band in enumerate(self.problem.spec.bands)}
        self.master = Master(
            {c: len(nodes) for c, nodes in self.free.items()},
            {s.index: s.demand - fixed[s.index] for s in shapes},
            {
                s.index: s.role.value
                * bands[self.problem.spec.band_of(s.workload)]
                * (1.0 if s.request.gpu_count else _LIGHT)
                for s in shapes
            },
        )
        for node_class, nodes in self.free.items():
            self.master.add(node_class, ())
            for node in nodes:
                self.master.add(node_class, pattern_of(self.problem, self.state.fill(node)))

    def run(self, budget: Budget) -> Iterator[State]:
        """Yield a rounded, filled-up state from the patterns at hand, then one when new patterns pay no more."""
        mixture = self.master.solve()
        yield self.round(mixture, budget)
        if not budget.spent():
            yield self.round(self._generate(mixture, budget), budget)

    def _generate(self, mixture: Mixture, budget: Budget) -> Mixture:
        """Price and solve in turn until patterns pay no more or the budget is gone."""
        centre = dict(mixture.prices)
        best = float("inf")
        while not self.stop and not budget.spent():
            prices = {s: _KEEP * centre.get(s, 0.0) + (1 - _KEEP) * p for s, p in mixture.prices.items()}
            bound, grown = self._price(prices, budget)
            if bound < best:
                best, centre = bound, prices
            mixture = self.master.solve()
            if not grown or mixture.value >= best * (1 - _CLOSE):
                break
        return mixture

    def _price(self, prices: Mapping[int, float], budget: Budget) -> tuple[float, bool]:
        """Price every class; return the Lagrangian value of the prices and whether any pattern is new."""
        bound = sum(max(0.0, self.master.worth[s] - p) * self.master.demand[s] for s, p in prices.items())
        grown = False
        for node_class, nodes in self.free.items():
            if self.stop or budget.spent():
                return float("inf"), grown
            pricer = self._pricers.get(node_class)
            if pricer is None:
                pricer = self._pricers[node_class] = Pricer(self.problem, self.problem.classes[node_class])
            value, found = pricer.price(prices, budget, self.stop)
            bound += len(nodes) * value
            grown |= sum(self.master.add(node_class, pattern) for pattern in found) > 0
        return bound, grown

    def round(self, mixture: Mixture, budget: Budget) -> State:
        """Return a state that follows the LP, rounded down, the nodes left over filled by a small integer master."""
        left = dict(self.master.demand)
        free = {c: list(nodes) for c, nodes in self.free.items()}
        fills: dict[int, Fill] = {}
        for (node_class, position), times in sorted(mixture.uses.items()):
            for _ in range(int(times + 1e-6)):
                node = free[node_class].pop(0)
                fills[node] = self._fill(node, self.master.patterns[node_class][position], left)
        for node_class, position in self._choose(free, left, budget):
            node = free[node_class].pop(0)
            fills[node] = self._fill(node, self.master.patterns[node_class][position], left)
        for nodes in free.values():
            fills.update({node: Fill() for node in nodes})
        rounded = self.state.with_fills(fills)
        return rounded if budget.out_of_time() else construct(self.problem, rounded, self.stop)

    def _fill(self, node: int, pattern: Pattern, left: dict[int, int]) -> Fill:
        """Return a node's contents after a pattern, without what nobody asks for any more; take it off `left`."""
        healthy = self.problem.nodes[node].healthy_gpus()
        fill = Fill()
        for slot, count in pattern:
            served = min(count, left.get(slot.shape, 0))
            if served:
                fill.slots[Slot(slot.shape, healthy[slot.gpu] if slot.gpu >= 0 else slot.gpu)] = served
                left[slot.shape] -= served
        return fill

    def _choose(
        self, free: Mapping[int, list[int]], left: Mapping[int, int], budget: Budget
    ) -> list[tuple[int, int]]:
        """Return the patterns for the nodes that rounding left over: an integer master over all known patterns."""
        model = Model()
        supply = {shape: Linear() for shape in left}
        uses: dict[tuple[int, int], int] = {}
        for node_class, nodes in free.items():
            total = Linear()
            for position, pattern in enumerate(self.master.patterns[node_class]) if nodes else ():
                variable = uses[node_class, position] = model.integer(0, len(nodes))
                total.add_term(variable)
                for shape, count in counts_of(pattern).items():
                    if shape in supply:
                        supply[shape].add_term(variable, count)
            model.require(total, upper=len(nodes))
        objective = Linear()
        for shape, amount in supply.items():
            served = model.integer(0, left[shape])
            model.require(Linear.of(served).minus(amount), upper=0)
            objective.add_term(served, round(_SCALE * self.master.worth[shape]))
        answer = CpSat(model).solve(
            objective, "max", Effort(max(0.05, min(_MASTER_WORK, budget.work)), budget.seconds()), None, self.stop
        )
        budget.work -= answer.work
        if answer.values is None:
            return []
        return [key for key, variable in uses.items() for _ in range(answer.values[variable])]


class Pricer:
    """The exact model of one empty node of a class, solved for changing prices of shapes."""

    def __init__(self, problem: Problem, node_class: NodeClass) -> None:
        self.problem = problem
        self.node = node_class.nodes[0]
        relaxed = frozenset(p.name for p in problem.spec.policies if not p.rule.judges_node_alone)
        self._part = PartModel(problem, [self.node], State(), relaxed, demands=False)
        self._engine = CpSat(self._part.model)

    def price(self, prices: Mapping[int, float], budget: Budget, stop: Stop) -> tuple[float, list[Pattern]]:
        """Return an upper bound on what a node can earn, and the patterns found on the way."""
        variables = self._part.variables
        objective = Linear(
            {v: round(_SCALE * prices.get(slot.shape, 0.0)) for slot, v in variables.slots[self.node].items()}
        )
        found: list[list[int]] = []
        answer = self._engine.solve(objective, "max", Effort(_PRICING_WORK, budget.seconds()), None, stop, found)
        budget.work -= max(answer.work, 0.001)
        if answer.values is None or answer.bound is None:
            return float("inf"), []
        fills = [variables.fills(values)[self.node] for values in found]
        return answer.bound / _SCALE, [pattern_of(self.problem, fill) for fill in fills]


def _free_nodes(problem: Problem, state: State, joint: set[int]) -> dict[int, list[int]]:
    free: dict[int, list[int]] = {}
    for node_class in problem.classes:
        if node_class.empty and problem.hosted[node_class.index]:
            for node in node_class.nodes:
                if not any(slot.shape in joint for slot in state.fill(node).slots):
                    free.setdefault(node_class.index, []).append(node)
    return free
