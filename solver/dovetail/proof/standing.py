"""A whole fleet beside what runs today: what it costs to keep it where it is, and what must move for others.

The relaxation to counts per kind of node (`fleet`), and beside every count how many of those replicas stay where they
run. Nodes of a kind are told apart by what is protected on them: what one can hold beside all of that, and what it
could hold without some of it. Every plan is a point of this model with values no worse, so its bounds bind plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from dovetail.linear import Linear
from dovetail.objectives import Tier
from dovetail.objectives.disruption import GpuTimeLost, Moves, lost_with_each
from dovetail.placement import Place
from dovetail.problem import Problem
from dovetail.proof.cells import Plot
from dovetail.proof.certificate import Prices
from dovetail.proof.contents import Contents, Lot, Stay
from dovetail.proof.fleet import FleetModel
from dovetail.proof.kinds import Kind
from dovetail.proof.lagrangian import plain_ends
from dovetail.proof.limits import tighten_box
from dovetail.proof.stays import StayingLimit
from dovetail.proof.tree import LARGEST
from dovetail.spec import ReplicaId


class StandingModel(FleetModel):
    """Counts of every shape on every kind of node, and of those that stay in place.

    Parameters
    ----------
    original : the Problem to bound. `kept_of` are, per kind, the variables of how many protected replicas of each
        shape stay on its nodes; `new_of` those of how many come that are more than are protected, of shapes that may
        be more, with their number in all.
    """

    def __init__(self, original: Problem) -> None:
        super().__init__(original, priced=True)
        self.lots_of = [tuple(self._lot(k, plot) for plot in plots) for k, plots in enumerate(self.plots_of)]
        self.kept_of = [
            {s: self.model.integer(0, most) for s, most in sorted(self._present(found).items())}
            for found in self.lots_of
        ]
        more = {s.index: s.demand - self._protected[s.index] for s in self.problem.shapes}
        self.new_of = [
            {s: (self.model.integer(0, more[s]), more[s]) for s in counts if more[s] > 0} for counts in self.counts_of
        ]
        self._arrivals = {s: self._arrive(s) for s, count in more.items() if count > 0}

    def _arrive(self, shape: int) -> int:
        """Count those that come among all that are more than are protected; return the row that says so."""
        found = Linear({new[shape][0]: 1 for new in self.new_of if shape in new})
        self.model.require(found.minus(self.admitted_shape(shape)), lower=-self._protected[shape])
        return len(self.model.rows) - 1

    @cached_property
    def arrivals(self) -> Mapping[int, int]:
        """By shape, the row by which no fewer come than are more than are protected."""
        ends = plain_ends(self.model)
        return {shape: ends[row] - 1 for shape, row in self._arrivals.items()}

    def _present(self, lots: tuple[Lot, ...]) -> Counter[int]:
        return sum((Counter(lot.protected) for lot in lots), Counter[int]())

    def _lot(self, kind: int, plot: Plot) -> Lot:
        counts = {}
        for shape, count in self.counts_of[kind].items():
            here = (
                cell.variable for cell in self.cells_of[kind][shape] if cell.answers.items() <= plot.answers.items()
            )
            counts[shape] = tuple(dict.fromkeys((count, *here)))
        contents = tuple(self._contents(plot.members))
        upper = self.model.upper
        closed = frozenset(s for s, counted in counts.items() if any(upper[variable] <= 0 for variable in counted))
        return Lot(counts, closed, len(plot.members) - sum(each.times for each in contents), contents)

    def _contents(self, members: tuple[int, ...]) -> Iterator[Contents]:
        """Yield what is protected on some nodes, alike contents once."""
        alike: dict[Hashable, list[Contents]] = {}
        for member in members:
            if stays := self._stays.get(member):
                found = Contents(self.problem, member, stays)
                alike.setdefault(found.form, []).append(found)
        for first, *others in alike.values():
            yield replace(first, times=1 + len(others))

    @cached_property
    def _stays(self) -> Mapping[int, list[Stay]]:
        """Per node, what is protected there."""
        found: dict[int, list[Stay]] = {}
        for replica, place in sorted(self._protected_places.items()):
            shape = self.problem.shapes_of_role[replica.workload, replica.role]
            cut = bool(place.instance) or self.problem.shapes[shape].request.may_use_mig
            stay = Stay(shape, place.gpus, cut)
            found.setdefault(self.problem.node_index[place.node], []).append(stay)
        return found

    @cached_property
    def _protected_places(self) -> Mapping[ReplicaId, Place]:
        today = self.original.context.today
        return {replica: today.places[replica] for replica in today.protected}

    def _told(self, tier: Tier) -> Linear | None:
        """Write a tier, those that count moves as well, at the least; None where that is not told."""
        if isinstance(tier, Moves):
            return self._lost(lambda role: 1)
        if isinstance(tier, GpuTimeLost):
            context = self.original.context
            return self._lost(lost_with_each(context).__getitem__).plus(tier.limit(context))
        return super()._told(tier)

    def _lost(self, each: Callable[[tuple[str, str]], int]) -> Linear:
        """Return what is lost at the least where not all that is protected stays, so much by each of a role."""
        amounts: dict[int, int] = {}
        for role in {(replica.workload, replica.role) for replica in self._protected_places}:
            shape = self.problem.shapes_of_role[role]
            amounts[shape] = min(amounts.get(shape, LARGEST), each(role))
        total = Linear()
        for kept in self.kept_of:
            for shape, variable in kept.items():
                total.add(Linear.of(variable).scaled(-1).plus(self.model.upper[variable]), amounts[shape])
        return total

    @property
    def tells_modes(self) -> bool:
        """Whether it counts on which instances of a GPU replicas are: not here."""
        return False

    @property
    def tells_settings(self) -> bool:
        """Whether it counts how the GPUs of a node are shared or cut as a whole: not here."""
        return False

    @cached_property
    def relaxed(self) -> tuple[str, ...]:
        """What the model forgets, also who may share a GPU."""
        scopes = self.context.scopes
        weighed = (policy for policy in self.spec.policies if policy.enforcement.kind != "audit")
        cards = {policy.name for policy in weighed if policy.rule.node_terms(scopes[policy.name]).by_gpu}
        return tuple(dict.fromkeys((*super().relaxed, *sorted(cards))))

    def box(self, earlier: Mapping[str, int]) -> tuple[Sequence[int], Sequence[int]]:
        """Return the limits of all variables that rows and earlier tiers leave, in whole numbers."""
        rows = [*self.rows, *self.floors(earlier)]  # before the limits are copied: tiers make variables of their own
        lower, upper = list(self.model.lower), list(self.model.upper)
        tighten_box(rows, lower, upper)
        return lower, upper

    def blocks(self, prices: Prices) -> Sequence[StayingLimit]:
        """Return what the nodes of each kind can earn; CPU and memory have no prices here."""
        return self._blocks

    def _limit(self, k: int, kind: Kind) -> StayingLimit:
        used = self.used_of[k], self.gpus_used_of[k]
        return StayingLimit(self.problem, kind, self.lots_of[k], self.kept_of[k], self.new_of[k], *used)

    @cached_property
    def _blocks(self) -> tuple[StayingLimit, ...]:
        return tuple(self._limit(k, kind) for k, kind in enumerate(self.kinds))
