"""Nodes chosen by what they cost, onto which all that is admitted is planned anew.

Where cost is left to decide, sets of a few nodes seldom empty one of them: what it holds has to go where many others
have a little room each. So the LP over kinds of nodes says how many nodes of each kind are in use at the least cost,
in whole numbers, and the same Problem with these nodes alone is one of admission: with nothing to save any more. What
finds no place there gets one more node, as long as that is cheaper than the plan at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.engine.fleet.pursuit import WIDE
from dovetail.engine.generation.thrift import roomy
from dovetail.engine.record import Record
from dovetail.engine.sparing import FULL
from dovetail.model.state import State
from dovetail.objectives import sign_of
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop

_FEW_NODES = 100  # on more, half of five minutes finds nothing that sets of nodes do not (measured)
_SHARE = 0.5  # of the work and the time
_NUMBERS_SHARE = 0.5  # of that, to say how many nodes of each kind
_NUMBERS_LPS = 15  # that this takes
_TRY_SHARE = 0.5  # of what is left of both, until there is one node more
_VISITS = 300  # until nobody waits for the time to choose any more

Planning = Callable[[Problem, State, Budget], Record]


@dataclass(slots=True)
class Choosing:
    """The one time in a search that nodes are chosen.

    Parameters
    ----------
    plan : plans a Problem from a state on until all is admitted, with a budget.
    done : whether that time has been.
    """

    best: Record
    stop: Stop
    plan: Planning
    done: bool = False

    def due(self, budget: Budget) -> bool:
        """Tell whether it is time to: hardly more can be admitted, and there is ample time and work."""
        best, problem = self.best, self.best.problem
        if self.done or len(problem.nodes) > _FEW_NODES or best.unpaid or best.close_enough():
            return False
        if problem.spec.placeholders:  # which cost nothing elsewhere
            return False
        if not any(tier.counts_nodes for tier in problem.tiers):
            return False
        if not (roomy(problem, best.now, FULL) and best.full_but_for(WIDE)):
            return False
        ample = _SHARE * _NUMBERS_SHARE * budget.units() >= self._work_of_numbers
        return ample and bool(self._fleet.priced_model.in_use)

    def run(self, budget: Budget) -> None:
        """Choose nodes by what they cost, if it is time to, and plan all onto these, or onto a few more."""
        if not self.due(budget):
            return
        self.done = True
        best, tiers = self.best, self.best.problem.tiers
        place = next(i for i, tier in enumerate(tiers) if tier.counts_nodes)
        given = {tier.name: tier.value for tier in best.now[:place]}
        share = budget.part(_SHARE * budget.work, _SHARE)
        before, moment = share.work, share.moment(_NUMBERS_SHARE)
        share.work -= self._work_of_numbers
        numbers = self._fleet.nodes_in_use(tiers[place], given, moment)
        choice = None if numbers is None else Choice.of(self._fleet, best.state, numbers)
        state = State()
        while choice is not None and choice.cheaper and not (share.spent() or self.stop):
            found = self._only_on(choice.nodes, state, share)
            state = found.state
            best.offer(construct(best.problem, state, self.stop))
            if not _lacks(found, given) or not choice.add(state):
                break
        budget.work -= before - share.work

    def waiting(self, budget: Budget) -> Iterator[bool]:
        """Wait for the time to choose; yield whether it has been."""
        for _ in range(_VISITS):
            if self.done:
                break
            self.run(budget)
            yield self.done

    def _only_on(self, nodes: Collection[int], state: State, budget: Budget) -> Record:
        """Plan onto some nodes alone, from a state on, with a part of a budget."""
        share = budget.part(_TRY_SHARE * budget.work, _TRY_SHARE)
        budget.work -= share.work
        found = self.plan(only_on(self.best.problem, nodes), state, share)
        budget.work += share.work
        return found

    @property
    def _fleet(self) -> FleetBounds:
        return self.best.bounds.fleet

    @property
    def _work_of_numbers(self) -> float:
        """What it takes to say how many nodes of each kind to use; about as many seconds."""
        return _NUMBERS_LPS * self._fleet.plain.work


def _lacks(found: Record, given: Mapping[str, int]) -> bool:
    """Tell whether a state has less of any tier than is given."""
    return any(sign_of(t.sense) * (t.value - given[t.name]) < 0 for t in found.now if t.name in given)


def only_on(problem: Problem, nodes: Collection[int]) -> Problem:
    """Return a Problem with these nodes free of charge and all others cordoned; numbers stay as they are."""
    spec = problem.spec
    chosen = {problem.nodes[index].name for index in nodes}
    every = spec.cluster.nodes
    made = tuple(replace(n, cordoned=n.cordoned or n.name not in chosen, price=0, gpu_price=0) for n in every)
    return compile_problem(problem.context.about(replace(spec, cluster=replace(spec.cluster, nodes=made))))


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
