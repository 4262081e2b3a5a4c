"""Ranks: the place of each replica among those of its gang that are placed, and of its GPUs (S2.5).

Ranks are what a launcher counts: the replicas of a gang group by group, in the order of its roles and their indices,
and their GPUs one after the other. Consecutive replicas share a group's domain, as the plan's indices are given out
that way. Groups and the order of roles are told by documents alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dovetail.placement import Place
from dovetail.plan.model import Plan
from dovetail.spec import ReplicaId, Spec, Workload

_Turn = tuple[tuple[int, ...], ReplicaId, Place]


@dataclass(frozen=True, slots=True)
class Rank:
    """A replica of a gang, its place, and its position among the gang's replicas; `gpu` is that of its first GPU.

    `known` tells whether the position is: without documents the order of several roles is not.
    """

    replica: ReplicaId
    place: Place
    number: int
    gpu: int
    known: bool = True

    @property
    def gpus(self) -> range:
        """The ranks of its GPUs, in the order of `place.gpus`."""
        return range(self.gpu, self.gpu + len(self.place.gpus))


def ranks_of(plan: Plan, spec: Spec | None) -> Mapping[str, Sequence[Rank]]:
    """Return the ranks of each gang in order, gangs by name.

    A gang is a workload of that type, and any other whose replicas gather (S5.1); without documents every workload
    with several replicas in the plan is taken for one.
    """
    found: dict[str, list[_Turn]] = {}
    for replica, place in plan.placements.items():
        workload = spec.by_id.get(replica.workload) if spec else None
        if workload is None or workload.type == "gang" or workload.gathers:
            turn = _turn(workload, replica) if workload else (replica.ordinal,)
            found.setdefault(replica.workload, []).append((turn, replica, place))
    whole = {name: sorted(rows, key=lambda row: (row[0], row[1])) for name, rows in sorted(found.items())}
    return {name: tuple(_numbered(rows, spec)) for name, rows in whole.items() if spec or len(rows) > 1}


def _turn(workload: Workload, replica: ReplicaId) -> tuple[int, ...]:
    """Return what sorts a gang's replicas: group by group, in each group inside by group; then by role and index."""
    order = {role.name: position for position, role in enumerate(workload.roles)}
    turn: list[int] = []
    nests = workload.topology.nests if workload.topology else ()
    while (nest := next((each for each in nests if replica.role in each.group.sizes), None)) is not None:
        turn += [min(order[role] for role in nest.group.sizes), replica.ordinal // nest.group.sizes[replica.role]]
        nests = nest.inner
    return (*turn, order.get(replica.role, len(order)), replica.ordinal)


def _numbered(rows: Sequence[_Turn], spec: Spec | None) -> Iterator[Rank]:
    gpu, known = 0, spec is not None or len({replica.role for _, replica, _ in rows}) == 1
    for number, (_, replica, place) in enumerate(rows):
        yield Rank(replica, place, number, gpu, known)
        gpu += len(place.gpus)
