"""Why a workload is where it is: what other places would change, tier by tier.

Two kinds of answer. Within the finished plan, what one node's replicas of a workload would change on another node,
everything else staying where it is: measured, so true of that one change and of nothing more. And planned anew,
where the workload keeps off its nodes, its domains or its accelerator: what the best plan found then is worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dovetail.objectives import Sense, Tier, tiers_of
from dovetail.placement import Makes, Place, Places, Room, View, mix_holds
from dovetail.plan import Plan
from dovetail.plan.forbidden import closed_nodes
from dovetail.plan.space import places_in
from dovetail.rules import Context, context_of
from dovetail.rules.require import Forbid
from dovetail.rules.reserve import places_of
from dovetail.spec import Node, NodeSelector, Policy, ReplicaId, Spec, Workload, WorkloadSelector
from dovetail.whatif import Solve
from dovetail.whynot.alike import Alike
from dovetail.whynot.effort import EFFORT, looks

MOST_TRIED: Final = 64
"""Nodes that are tried at the most; fewer in a large plan, where each takes longer."""

_MOST_PARTS: Final = 256
"""Places of shares that are tried where the first one on a node is forbidden."""

_POLICY: Final = "policy "
_BAN: Final = "explain elsewhere"
"""The name of the policy that keeps a workload off; no document can have one with a space in its name."""


@dataclass(frozen=True, slots=True)
class Change:
    """A tier that differs: its value here and there."""

    tier: str
    unit: str
    sense: Sense
    here: int
    there: int

    @property
    def worse(self) -> bool:
        """Whether the value there is the worse one."""
        return self.there < self.here if self.sense == "max" else self.there > self.here


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What another node would change, everything else staying where it is.

    Parameters
    ----------
    changes : the tiers that differ, in order; none where it is as good.
    obstacle : why the replicas cannot be there, empty where they can.
    places : where they would be.
    """

    node: str
    changes: tuple[Change, ...] = ()
    obstacle: str = ""
    places: Places = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tried:
    """The replicas of a workload on one of its nodes, tried on others.

    Parameters
    ----------
    hosts : how many other nodes could host such replicas if they were empty and no policy closed them.
    nodes : those that were tried, the best first; nodes that nothing tells apart are tried once.
    """

    node: str
    replicas: int
    hosts: int
    nodes: tuple[Elsewhere, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """What a plan is worth in which the workload keeps off some nodes.

    Parameters
    ----------
    what : the nodes, in words.
    changes : the tiers that differ from the plan, in order.
    certain : whether the first of them is proved, or that there is none.
    admitted : replicas of the workload that the plan admits, None where there is no plan.
    """

    what: str
    plan: Plan
    changes: tuple[Change, ...]
    certain: bool
    admitted: int | None


def tried(spec: Spec, plan: Plan, workload: Workload) -> Tried | None:
    """Return what other nodes would change for the replicas on one node, None for a workload that is nowhere."""
    held = Counter(place.node for replica, place in plan.placements.items() if replica.workload == workload.id)
    if not held:
        return None
    return _Trial(spec, plan, workload, min(held, key=lambda name: (-held[name], name))).run()


class _Trial:
    """Moves the replicas of a workload on one node to others, one node at a time, and measures."""

    def __init__(self, spec: Spec, plan: Plan, workload: Workload, node: str) -> None:
        self._spec, self._plan, self._workload, self._node = spec, plan, workload, node
        self._context: Context = context_of(spec)
        self._held = dict(places_of(plan.held, spec))
        self._view = self._context.view(plan.placements, self._held)
        self._own = [r for r in self._view.admitted(workload) if plan.placements[r].node == node]
        self._tiers: Sequence[Tier] = tiers_of(self._context)
        self._values = self._measured(self._view)
        self._broken = self._violations(self._view)
        self._left = min(_MOST_PARTS, EFFORT // (len(plan.placements) + 1))

    def run(self) -> Tried:
        """Try as many nodes as effort allows, those first that differ."""
        makes = Makes(self._spec.cluster.nodes, self._spec.accelerators)
        hosts = makes.nodes_for(self._workload) - {self._node}
        nodes = [node for node in self._spec.cluster.nodes if node.name in hosts]
        size = len(self._plan.placements)
        searches = any(p.rule.searches for p in self._spec.policies if p.enforcement.kind != "audit")
        most = looks(size, MOST_TRIED, searches=searches)
        alike = Alike(self._view, self._context, self._workload, self._spec.cluster.by_name[self._node])
        found = [self._on(node) for node in alike.distinct(nodes)[:most]]
        return Tried(self._node, len(self._own), len(nodes), tuple(sorted(found, key=self._rank)))

    def _rank(self, found: Elsewhere) -> tuple[bool, tuple[int, ...], str]:
        worse = {
            change.tier: abs(change.there - change.here) * (1 if change.worse else -1) for change in found.changes
        }
        return bool(found.obstacle), tuple(worse.get(tier.name, 0) for tier in self._tiers), found.node

    def _on(self, node: Node) -> Elsewhere:
        again = self._placed(node)
        if len(again) < len(self._own):
            return Elsewhere(node.name, obstacle=f"room for {len(again)} of {len(self._own)}")
        view = self._there(again)
        if obstacle := self._obstacle(view, node):
            again = self._allowed(node) if obstacle.startswith(_POLICY) else {}
            if not again:
                unsure = obstacle.startswith(_POLICY) and self._left <= 0
                return Elsewhere(node.name, obstacle=f"no place found that keeps {obstacle}" if unsure else obstacle)
            view = self._there(again)
        values = self._measured(view)
        changes = (
            Change(tier.name, tier.unit, tier.sense, self._values[tier.name], values[tier.name])
            for tier in self._tiers
            if values[tier.name] != self._values[tier.name]
        )
        return Elsewhere(node.name, tuple(changes), places=again)

    def _there(self, again: Places) -> View:
        return self._context.view({**self._plan.placements, **again}, self._held)

    def _placed(self, node: Node) -> Places:
        """Return places on a node for as many of the replicas as it has room for."""
        room = self._room(node)
        found: dict[ReplicaId, Place] = {}
        for replica in self._own:
            request = self._view.role(replica).request
            fits = next(places_in(room, request), None)
            if fits is not None:
                room.take(request, fits.gpus, fits.instance)
                found[replica] = fits
        return found

    def _allowed(self, node: Node) -> Places:
        """Return places on a node that nothing forbids, none where no GPU of it does for one of the replicas.

        GPUs as a whole are alike, so that parts of GPUs alone are tried one after the other.
        """
        room = self._room(node)
        found: dict[ReplicaId, Place] = {}
        for replica in self._own:
            request = self._view.role(replica).request
            options = places_in(room, request) if request.partial else ()
            fits = next((p for p in options if self._may_be({**found, replica: p}, node)), None)
            if fits is None:
                return {}
            room.take(request, fits.gpus, fits.instance)
            found[replica] = fits
        return found

    def _may_be(self, again: Places, node: Node) -> bool:
        self._left -= 1
        return self._left >= 0 and not self._obstacle(self._there(again), node)

    def _room(self, node: Node) -> Room:
        """Return what a node has left for the replicas, to be changed."""
        room = Room(node, self._spec.accelerators)
        there = [(r, place) for r, place in self._view.places.items() if place.node == node.name]
        for replica, place in (*there, *(pair for pair in self._view.placeholders if pair[1].node == node.name)):
            room.take(self._view.role(replica).request, place.gpus, place.instance)
        return room

    def _obstacle(self, view: View, node: Node) -> str:
        """Return what keeps the replicas off a node that has room for them."""
        if self._own and not self._context.today.fixed.isdisjoint(self._own):
            return "it never moves"
        closed = closed_nodes(self._context, self._workload)
        if any(r in self._context.today.fixed for w in self._spec.workloads for r in view.moved(w)):
            return "what never moves would have to restart"
        if not mix_holds(self._spec, self._workload, view.places):
            return "its accelerators must not mix"
        worse = [name for name, count in self._violations(view).items() if count > self._broken.get(name, 0)]
        if not worse and node.name not in closed:
            return ""
        return f"{_POLICY}{', '.join(worse)}" if worse else "a policy closes the node"

    def _violations(self, view: View) -> Mapping[str, int]:
        """Return how much each hard policy is broken beyond what today excuses."""
        found = {}
        for policy in self._spec.policies:
            if policy.enforcement.kind == "hard":
                excused = self._context.tolerated.get(policy.name, {})
                told = policy.rule.check(view, self._context.scopes[policy.name])
                found[policy.name] = sum(max(0, count - excused.get(subject, 0)) for subject, count in told.items())
        return found

    def _measured(self, view: View) -> Mapping[str, int]:
        return {tier.name: tier.measure(view, self._context) for tier in self._tiers}


def without(
    spec: Spec, plan: Plan, workload: Workload, solve: Solve, most: int, over: Callable[[], bool] = lambda: False
) -> Iterator[Without]:
    """Yield what plans are worth in which a workload keeps off where it is, at most so many plans made for them.

    Parameters
    ----------
    over : tells, before each plan, that no more are to be made.
    """
    for what, nodes in list(_bans(spec, plan, workload))[:most]:
        if over():
            return
        ban = Policy(_BAN, Forbid(), WorkloadSelector(names=(workload.id,)), NodeSelector(names=tuple(sorted(nodes))))
        policies = tuple(sorted((*spec.policies, ban), key=lambda policy: policy.name))
        found = solve(replace(spec, policies=policies))
        if found.outcome.status in ("infeasible", "unknown"):
            yield Without(what, found, (), found.outcome.status == "infeasible", None)
            continue
        own = [place.node for replica, place in found.placements.items() if replica.workload == workload.id]
        if nodes.isdisjoint(own):  # else today excuses that it stays, and it could not leave
            yield Without(what, found, *_compared(plan, found), len(own))


def _bans(spec: Spec, plan: Plan, workload: Workload) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the nodes, domains and accelerators that a workload is on, where there are others, narrowest first."""
    by_name = spec.cluster.by_name
    held = {place.node for replica, place in plan.placements.items() if replica.workload == workload.id}
    hosts = Makes(spec.cluster.nodes, spec.accelerators).nodes_for(workload)
    asked = [(_named("node", held), frozenset(held))]
    for level in reversed(spec.cluster.levels[:-1]):
        paths = {path for name in held if (path := by_name[name].domain(level)) is not None}
        members = spec.cluster.members(level)
        asked.append((_named(level, paths), frozenset(node.name for path in paths for node in members[path])))
    cards = {card for name in held if (card := by_name[name].accelerator) is not None}
    inside = frozenset(node.name for node in spec.cluster.nodes if node.accelerator in cards)
    asked.append((_named("accelerator", cards), inside))
    told: set[frozenset[str]] = set()
    for what, nodes in asked:
        closed = nodes & hosts
        if closed and closed < hosts and closed not in told:
            told.add(closed)
            yield what, nodes


def _named(what: str, names: set[str]) -> str:
    first = min(names, default="")
    return f"{what} {first}" if len(names) == 1 else f"its {len(names):,} {what}s"


def _compared(plan: Plan, other: Plan) -> tuple[tuple[Change, ...], bool]:
    """Return the tiers that differ, and whether the first of them, or that there is none, is proved."""
    values = {tier.name: tier for tier in other.tiers}
    changes: list[Change] = []
    certain = True
    for tier in plan.tiers:
        found = values.get(tier.name)
        if found is None:
            continue
        if not changes:
            certain = certain and found.proved and tier.proved
        if found.value != tier.value:
            changes.append(Change(tier.name, tier.unit, tier.sense, tier.value, found.value))
    return tuple(changes), certain
