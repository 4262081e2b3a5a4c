"""Nodes chosen by what they cost, onto which all that is admitted is planned anew.

Where cost is left to decide, sets of a few nodes seldom empty one of them: what it holds has to go where many others
have a little room each. So the LP over kinds of nodes says how many nodes of each kind are in use at the least cost,
in whole numbers, and the same Problem with these nodes alone is one of admission: with nothing to save any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.model.state import State
from dovetail.problem import Problem, compile_problem

FEW_NODES: Final = 100
"""On more of them half of five minutes finds nothing that sets of nodes do not (measured)."""


def only_on(problem: Problem, nodes: Collection[int]) -> Problem:
    """Return a Problem with these nodes free of charge and all others cordoned; numbers stay as they are."""
    spec = problem.spec
    numbered = enumerate(spec.cluster.nodes)
    made = tuple(replace(n, cordoned=n.cordoned or i not in nodes, price=0, gpu_price=0) for i, n in numbered)
    spec = replace(spec, cluster=replace(spec.cluster, nodes=made))
    scopes = {name: replace(scope, spec=spec) for name, scope in problem.context.scopes.items()}
    return compile_problem(replace(problem.context, spec=spec, scopes=scopes))


@dataclass(slots=True)
class Choice:
    """Some nodes to use, and the plan at hand that is to be beaten by what they cost.

    Parameters
    ----------
    state : that plan's, which admits all that there can be; nothing runs today.
    """

    fleet: FleetBounds
    state: State
    nodes: set[int]

    @classmethod
    def of(cls, fleet: FleetBounds, state: State, numbers: Mapping[int, int]) -> Choice:
        """Return so many nodes of each kind of `FleetBounds.priced_model`, those first that are in use.

        Of kinds that are not told, which have no price, all are chosen.
        """
        used = _used(state)
        nodes = set[int]()
        for position, kind in enumerate(fleet.priced_model.kinds):
            order = sorted(kind.members, key=lambda node: (node not in used, node))
            nodes.update(order[: numbers.get(position, kind.size)])
        return cls(fleet, state, nodes)

    @property
    def cheaper(self) -> bool:
        """Whether these nodes cost less than those in use."""
        return self._price(self.nodes) < self._price(_used(self.state))

    def add(self, state: State) -> bool:
        """Choose one more node, the cheapest that may host what a state lacks, or any; tell whether there is one."""
        there = state.admitted()
        lacking = {shape for shape, count in self.state.admitted().items() if there[shape] < count}
        kinds = self.fleet.priced_model.kinds
        hosts = {node for kind in kinds if not lacking.isdisjoint(kind.shapes) for node in kind.members}
        every = {node for kind in kinds for node in kind.members}
        more = hosts - self.nodes or every - self.nodes
        if more:
            self.nodes.add(min(more, key=lambda node: (self._price([node]), node)))
        return bool(more)

    def _price(self, nodes: Collection[int]) -> int:
        return sum(self.fleet.problem.nodes[node].price for node in nodes)


def _used(state: State) -> set[int]:
    return {node for node, fill in state.fills.items() if fill.slots}
