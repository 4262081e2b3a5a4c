"""What services serve while replicas are added and taken off, and replicas that they can do without (S2.8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dovetail.model.state import Fill, Slot, State
from dovetail.problem import Problem
from dovetail.spec import Node, Slo
from dovetail.spec.slo import host_of


class Rates:
    """The rates that are served so far by services that ask for a rate and not for replicas.

    Parameters
    ----------
    problem : whose shapes are counted.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.asked: Mapping[int, Slo] = {
            shape.index: shape.workload.slo
            for shape in problem.shapes
            if shape.workload.slo is not None and shape.workload.asks_rate
        }
        self._served: Counter[int] = Counter()

    def count(self, node: Node, slot: Slot, count: int) -> None:
        """Enter replicas that come to a node, or leave it."""
        if slot.shape in self.asked:
            self._served[slot.shape] += count * self.of(node, slot)

    def of(self, node: Node, slot: Slot) -> int:
        """Return the rate of one replica in a slot of a node."""
        return self.asked[slot.shape].rates.get(host_of(node.accelerator, slot.profile), 0)

    def wanted(self, shape: int, admitted: int) -> int:
        """Return how many more replicas are of use, each at the lowest rate, beyond the fewest that there must be."""
        slo = self.asked[shape]
        missing = slo.rate - self._served[shape]
        slowest = min((rate for rate in slo.rates.values() if rate), default=0)
        more = -(-missing // slowest) if missing > 0 and slowest else 0
        few = slo.floors.replicas
        if missing > 0:
            few = max(few, self._problem.shapes[shape].workload.min_replicas)
        return max(more, few - admitted, 0)

    def served(self) -> Mapping[int, int]:
        """Return what is served so far, by shape, which later changes leave as it is."""
        return self._served.copy()

    def earned(self, shape: int, before: Mapping[int, int]) -> int:
        """Return by how much more a service is worth than with what it served before."""
        slo, role = self.asked[shape], self._problem.shapes[shape].role
        value = role.worth(role.replicas)
        return slo.worth(value, self._served[shape]) - slo.worth(value, before.get(shape, 0))

    def spare(self, shape: int) -> int:
        """Return the rate that is served beyond what is asked."""
        return self._served[shape] - self.asked[shape].rate


def all_served(problem: Problem, state: State) -> frozenset[int]:
    """Return the shapes that serve all of the rate that is asked of them."""
    rates = Rates(problem)
    for index, fill in state.fills.items() if rates.asked else ():
        for slot, count in fill.slots.items():
            rates.count(problem.nodes[index], slot, count)
    return frozenset(shape for shape in rates.asked if rates.spare(shape) >= 0)


def without_surplus(problem: Problem, state: State) -> State:
    """Return a state without the replicas that services can do without: no fewer than run today, nor than must be."""
    rates, fills = Rates(problem), dict[int, Fill]()
    if not rates.asked:
        return state
    admitted = state.admitted()
    places = []
    for index, fill in sorted(state.fills.items()):
        for slot, count in sorted(fill.slots.items()):
            rates.count(problem.nodes[index], slot, count)
            if slot.shape in rates.asked and count:
                places.append((rates.of(problem.nodes[index], slot), index, slot))
    for rate, index, slot in sorted(places):
        shape = slot.shape
        promised = max(rates.asked[shape].floors.replicas, problem.shapes[shape].workload.min_replicas)
        least = max(promised, problem.running[shape] + problem.lost[shape])
        fill = fills.get(index) or state.fill(index)
        staying = sum(n for place, n in fill.kept.items() if place.shape == shape)
        useless = rates.spare(shape) // rate if rate else fill.slots[slot]
        gone = min(useless, fill.slots[slot] - staying, admitted[shape] - least)
        if gone > 0:
            fills[index] = fill.copy()
            fills[index].slots[slot] -= gone
            rates.count(problem.nodes[index], slot, -gone)
            admitted[shape] -= gone
    return state.with_fills({i: Fill(+fill.slots, fill.kept) for i, fill in fills.items()}) if fills else state
