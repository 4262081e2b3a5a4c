"""Whether work that is left out would be admitted if more replicas moved, and only limits on moves forbid that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from dovetail.placement import Place, Room, View, mix_holds
from dovetail.plan.forbidden import closed_nodes
from dovetail.plan.space import Space, Wanting, part_of, places_in
from dovetail.plan.stranded import gpus_that_fit
from dovetail.rules import Context
from dovetail.spec import Node, Policy, ReplicaId, Request, Role, Workload

MOST_TRIALS: Final = 64
"""Nodes per plan that are cleared on trial; after them nothing more is claimed about moves."""


class Moving:
    """Looks for a placement that admits more by moves, everything else admitted as it is.

    What it finds is a proof: that placement breaks limits on moves and nothing else. What it does not find may exist.
    """

    def __init__(self, view: View, context: Context, space: Space) -> None:
        self.view = view
        self.context = context
        self.space = space
        self.left = MOST_TRIALS
        hard = [p for p in context.spec.policies if p.enforcement.kind == "hard"]
        self.limits = [p for p in hard if p.rule.needs_current]
        self.others = [p for p in hard if not p.rule.needs_current]
        self._usable: dict[tuple[str, str], Sequence[Node]] = {}
        self._board: _Board | None = None

    def only_limits_forbid(self, workload: Workload, missing: Sequence[Wanting], needed: int) -> bool:
        """Tell whether it is certain that `needed` more replicas want for nothing but moves above the limits."""
        if not self.limits or not self.context.today.places or not self._admission_comes_first():
            return False
        wanted = list(islice(self._absent(workload, missing), needed))
        if len(wanted) < needed or (len(missing) > 1 and needed < sum(wanting.replicas for wanting in missing)):
            return False  # which roles would join is open
        board = self._board = self._board or _Board(self.view)
        try:
            return self._fit(board, workload, wanted)
        finally:
            board.undo(0)

    def _admission_comes_first(self) -> bool:
        """Tell whether no tier may keep replicas where they are at the price of admitting less."""
        tiers = self.context.spec.objective.tiers
        return set(tiers[: tiers.index("admitted")]) <= {"mend"} if "admitted" in tiers else False

    def _absent(self, workload: Workload, missing: Sequence[Wanting]) -> Iterator[ReplicaId]:
        for wanting in missing:
            every = (ReplicaId(workload.id, wanting.role.name, index) for index in range(wanting.role.replicas))
            yield from (replica for replica in every if replica not in self.view.places)

    def _fit(self, board: _Board, workload: Workload, wanted: Sequence[ReplicaId]) -> bool:
        """Put replicas on a board one after the other; the last one on every node that can be cleared for it."""
        for replica in wanted[:-1]:
            if not next(self._ways(board, workload, replica, wanted), False):
                return False
        return any(self._breaks_limits_only(board) for _ in self._ways(board, workload, wanted[-1], wanted))

    def _ways(
        self, board: _Board, workload: Workload, replica: ReplicaId, new: Sequence[ReplicaId]
    ) -> Iterator[bool]:
        """Put a replica on one node after the other, what is in its way elsewhere; the next way undoes one."""
        role = workload.by_role[replica.role]
        mark = len(board.changed)
        nodes = sorted(self._nodes(workload, role), key=lambda node: len(board.on[node.name]))
        for node in nodes:
            if self.left <= 0:
                return
            self.left -= 1
            if self._cleared(board, node, replica, role.request, new):
                yield True
            board.undo(mark)

    def _cleared(
        self, board: _Board, node: Node, replica: ReplicaId, request: Request, new: Sequence[ReplicaId]
    ) -> bool:
        """Put a replica on a node that is cleared of all that may move, then what was there back or elsewhere."""
        fixed = self.context.today.fixed
        held = {r: board.places[r] for r in sorted(board.on[node.name]) if r not in fixed and r not in new}
        for each in held:
            board.lift(each)
        crowd = [gpu for place in held.values() for gpu in place.gpus]
        gpus = _least_crowded(board.room(node.name), request, crowd)
        part = request.partial and gpus
        place = part_of(board.room(node.name), request, gpus[0]) if part else Place(node.name, gpus)
        if not board.put(replica, place):
            return False
        largest = sorted(held, key=lambda r: -self.view.role(r).request.gpu_milli)
        return all(self._put_back(board, each, held[each]) for each in largest)

    def _put_back(self, board: _Board, replica: ReplicaId, place: Place) -> bool:
        if board.put(replica, place):
            return True
        workload, role = self.view.spec.by_id[replica.workload], self.view.role(replica)
        here = [node for node in self._nodes(workload, role) if node.name == place.node]
        for node in (*here, *self._nodes(workload, role)):
            for option in places_in(board.room(node.name), role.request):
                if board.put(replica, option):
                    return True
        return False

    def _nodes(self, workload: Workload, role: Role) -> Sequence[Node]:
        key = workload.id, role.name
        if key not in self._usable:
            closed = closed_nodes(self.context, workload)
            self._usable[key] = self.space.usable(workload, role, closed)
        return self._usable[key]

    def _breaks_limits_only(self, board: _Board) -> bool:
        spec = self.view.spec
        touched = {replica.workload for replica, _ in board.changed}
        if not all(mix_holds(spec, spec.by_id[name], board.places) for name in touched):
            return False
        view = View(spec, board.places, self.view.today, self.view.held)
        return any(self._broken(p, view) for p in self.limits) and not any(self._broken(p, view) for p in self.others)

    def _broken(self, policy: Policy, view: View) -> bool:
        """Tell whether a policy has more violation than today excuses."""
        excused = self.context.tolerated.get(policy.name, {})
        found = policy.rule.check(view, self.context.scopes[policy.name])
        return any(count > excused.get(subject, 0) for subject, count in found.items())


class _Board:
    """A placement that changes on trial, and back: `changed` tells replicas in order, with the places they had."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.places = dict(view.places)
        self.changed: list[tuple[ReplicaId, Place | None]] = []
        self.on: defaultdict[str, set[ReplicaId]] = defaultdict(set)
        for replica, place in self.places.items():
            self.on[place.node].add(replica)
        self._rooms = view.fresh_rooms()

    def room(self, name: str) -> Room:
        """Return what a node has left."""
        if name not in self._rooms:
            self._rooms[name] = Room(self.view.spec.cluster.by_name[name], self.view.spec.accelerators)
        return self._rooms[name]

    def put(self, replica: ReplicaId, place: Place) -> bool:
        """Put a replica on a place if it fits there."""
        if self.room(place.node).lacks(self.view.role(replica).request, place.gpus, place.instance) is not None:
            return False
        self.changed.append((replica, None))
        self._set(replica, place)
        return True

    def lift(self, replica: ReplicaId) -> None:
        """Take a replica off."""
        self.changed.append((replica, self.places[replica]))
        self._unset(replica)

    def undo(self, mark: int) -> None:
        """Take changes back until `mark` of them are left."""
        while len(self.changed) > mark:
            replica, place = self.changed.pop()
            if place is None:
                self._unset(replica)
            else:
                self._set(replica, place)

    def _set(self, replica: ReplicaId, place: Place) -> None:
        self.room(place.node).take(self.view.role(replica).request, place.gpus, place.instance)
        self.places[replica] = place
        self.on[place.node].add(replica)

    def _unset(self, replica: ReplicaId) -> None:
        place = self.places.pop(replica)
        self.room(place.node).give(self.view.role(replica).request, place.gpus, place.instance)
        self.on[place.node].discard(replica)


def _least_crowded(room: Room, request: Request, crowd: Sequence[int]) -> tuple[int, ...]:
    """Return GPUs for a request of which those that were lifted from a node had the fewest; none where none do."""
    if not request.gpu_count:
        return ()
    blocks = room.choices(request) if request.gpus else [gpus_that_fit(room, request)]
    options = (sorted(block, key=crowd.count)[: request.gpu_count] for block in blocks)
    return tuple(sorted(min(options, key=lambda gpus: sum(map(crowd.count, gpus)), default=[])))
