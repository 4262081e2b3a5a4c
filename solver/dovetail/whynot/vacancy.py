"""Where a finished placement has a place for more of a workload, and which hard policies would have to go for it.

One more replica is tried on every place there is room for, so that what is found is all there is. Several together
are put down one after the other, and what does not come to pass that way is not known to be impossible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from dovetail.placement import Held, Place, Places
from dovetail.plan.forbidden import MOST_TRIALS, Trials
from dovetail.plan.space import Space, Wanting, places_in
from dovetail.plan.together import too_few_together
from dovetail.rules import Context
from dovetail.spec import Policy, ReplicaId, Request, Workload
from dovetail.whynot.effort import looks
from dovetail.whynot.filling import Filling, areas

MOST_PLACES: Final = 20_000
"""Places that one replica is tried on, or nodes that several are; after them nothing is claimed to be impossible."""


class Lifts(NamedTuple):
    """Sets of hard policies; without those of one there is a place, of an empty one there is one anyway.

    Parameters
    ----------
    idle : policies that certainly forbid nothing of it.
    unknown : policies without which there may be a place, alone or with others, for all that is known.
    spent : policies that forbid so many more replicas as such, wherever they would be (a quota).
    """

    sets: frozenset[frozenset[str]]
    idle: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    spent: frozenset[str] = frozenset()


class Vacancy:
    """Looks for places in what replicas leave free if nothing is held."""

    def __init__(self, context: Context, places: Places, held: Held, workload: Workload, needed: int) -> None:
        self.context, self.workload, self.needed = context, workload, needed
        self.places, self.held = places, {name: rows for name, rows in held.items() if rows}
        self.view = context.view(places)
        self.space = Space(self.view)
        self.trials = Trials(self.view, context)
        searches = any(p.rule.searches and p.enforcement.kind == "hard" for p in context.spec.policies)
        self.trials.left = looks(len(places), MOST_TRIALS, searches=searches)
        self.left = MOST_PLACES
        self._beside: dict[frozenset[str], Space] = {}
        hard = [p for p in context.spec.policies if p.enforcement.kind == "hard" and not p.rule.needs_current]
        scopes = context.scopes
        own = [p for p in hard if workload.id in scopes[p.name].ids]
        self.closing = {p.name: closed for p in own if (closed := p.rule.closed_nodes(scopes[p.name]))}
        others = (p for p in own if p.name not in self.closing and p.rule.promises() is None)
        self.asked = [*self.trials.hard, *(p for p in others if self.trials.guard(p) is None)]
        there = Counter(replica.role for replica in self.view.admitted(workload))
        self.missing = [
            Wanting(role, role.replicas - there[role.name], self.space.usable(workload, role, frozenset()))
            for role in workload.roles
            if role.replicas > there[role.name]
        ]

    def lifts(self) -> Lifts:
        """Return what would have to go."""
        found = self._of_several() if self.needed > 1 else self._of_one()
        return found._replace(spent=self._amounts()[0])

    def beside(self, holding: Collection[str]) -> Space:
        """Return what is free beside what some policies hold."""
        key = frozenset(name for name in holding if name in self.held)
        if not key:
            return self.space
        if key not in self._beside:
            self._beside[key] = Space(self.context.view(self.places, {name: self.held[name] for name in key}))
        return self._beside[key]

    # One more replica.

    def _of_one(self) -> Lifts:
        found: set[frozenset[str]] = set()
        for wanting in self.missing:
            for names in self._sets(wanting):
                if names is None:
                    return Lifts(frozenset(found), unknown=self._names())
                found.add(names)
                if not names:
                    return Lifts(frozenset([names]))
        return Lifts(frozenset(found))

    def _sets(self, wanting: Wanting) -> Iterator[frozenset[str] | None]:
        """Yield for each place with room the hard policies that forbid it, None where that is not known."""
        replica = self.absent(wanting, 1)[0]
        everywhere: list[Policy] | None = None
        for place in self.space.options(wanting):
            self.left -= 1
            if everywhere is None:
                asked = [policy for policy in self.asked if not policy.rule.judges_places]
                everywhere = self.trials.forbidding(self.workload, {replica: place}, asked)
            asked = [policy for policy in self.asked if policy.rule.judges_places]
            here = self.trials.forbidding(self.workload, {replica: place}, asked) if self.left >= 0 else None
            if everywhere is None or here is None:
                yield None
                return
            closing = [name for name, closed in self.closing.items() if place.node in closed]
            holding = self._holding(wanting.role.request, place)
            yield frozenset([*(policy.name for policy in (*everywhere, *here)), *closing, *holding])

    def _holding(self, request: Request, place: Place) -> Iterator[str]:
        """Yield the policies that hold free what a place would take."""
        node = self.context.spec.cluster.by_name[place.node]
        for name in self.held:
            room = self.beside([name]).room(node)
            if request.partial:
                free = room.lacks(request, place.gpus, place.instance) is None
            else:
                free = next(places_in(room, request), None) is not None
            if not free:
                yield name

    # Several together.

    def _of_several(self) -> Lifts:
        if self._too_few():
            return Lifts(frozenset())
        able = {node.name for wanting in self.missing for node in wanting.nodes}
        amounts, clear = self._amounts()
        idle = frozenset(name for name, closed in self.closing.items() if closed.isdisjoint(able))
        idle |= frozenset() if amounts else clear
        if not amounts and self._fit(frozenset()):
            return Lifts(frozenset([frozenset()]))
        candidates = sorted(self._names() - idle - clear)
        alone = {frozenset([name]) for name in candidates if amounts <= {name} and self._fit({name})}
        sets = frozenset(alone or self._together(candidates))
        unknown = amounts if len(amounts) == 1 else frozenset[str]() if amounts else frozenset(candidates)
        return Lifts(sets, idle, unknown)

    def _names(self) -> frozenset[str]:
        return frozenset([*(policy.name for policy in self.asked), *self.closing, *self.held])

    def _too_few(self) -> bool:
        """Tell whether it is certain that there is too little room, whatever policies say."""
        several = self.workload, self.missing, self.needed
        return self.space.too_few_fit(*several) or too_few_together(self.space, *several)

    def _amounts(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the policies that forbid so many replicas as such, and those that judge no places and do not."""
        total = sum(wanting.replicas for wanting in self.missing)
        if len(self.missing) > 1 and self.needed < total:
            return frozenset(), frozenset()  # which roles would join is open
        more: dict[ReplicaId, Place] = {}
        for wanting in self.missing:
            some = [Place(node.name, (0,)) for node in wanting.nodes[:1]]  # which place it is does not matter
            more |= dict.fromkeys(self.absent(wanting, min(wanting.replicas, self.needed)) if some else (), *some)
        asked = self.trials.amounts
        found = self.trials.forbidding(self.workload, more, asked) if len(more) == self.needed else None
        if found is None:
            return frozenset(), frozenset()
        names = frozenset(policy.name for policy in found)
        return names, frozenset(policy.name for policy in asked) - names

    def _together(self, candidates: Sequence[str]) -> set[frozenset[str]]:
        """Return a set of policies without which there are places, of which none is found to be spared; or none."""
        lifted = frozenset(candidates)
        if len(lifted) < 2 or not self._fit(lifted):
            return set()
        for name in candidates:
            if self._fit(lifted - {name}):
                lifted -= {name}
        return {lifted}

    def _fit(self, lifted: Collection[str]) -> bool:
        """Tell whether the replicas find places one after the other without some hard policies."""
        for area in areas(self.workload, self.missing, lifted):
            more = Filling(self, lifted, area).run()
            if len(more) >= self.needed:
                hard = (p for p in self.asked if p.name not in lifted)
                asked = [p for p in hard if self.trials.guard(p) is None or p.rule.closes()]
                if self.trials.forbidding(self.workload, more, asked) == []:
                    return True
        return False

    def absent(self, wanting: Wanting, count: int) -> list[ReplicaId]:
        """Return some of the replicas that are missing of a role, the first ones."""
        role = wanting.role
        every = (ReplicaId(self.workload.id, role.name, index) for index in range(role.replicas))
        return [replica for replica in every if replica not in self.view.places][:count]
