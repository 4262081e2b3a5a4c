"""Tiers on disruption: workloads evicted, GPU time lost, moves (S5.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, TierPart
from dovetail.placement import View
from dovetail.rules import Context
from dovetail.spec import Spec, Workload


@dataclass(frozen=True, slots=True)
class Evicted:
    """Workloads that lose at least one running replica altogether."""

    kind: ClassVar[str] = "disruption"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "disruption.evicted"
    sense: Sense = "min"
    unit: str = "workloads"

    def encode(self, part: TierPart) -> Linear:
        """Return the number of workloads with an evicted replica."""
        total = Linear()
        for workload in part.changing(part.spec.workloads):
            gone = Linear.total(part.evicted(workload, role) for role in workload.roles)
            if part.model.range_of(gone)[1] > 0:
                total.add_term(part.model.at_least_one(gone).variable)
        return total

    def measure(self, view: View, context: Context) -> int:
        """Count the workloads with an evicted replica."""
        return sum(bool(view.evicted(workload)) for workload in view.spec.workloads)

    def limit(self, context: Context) -> int:
        """Nobody need go."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from what runs today."""
        return True


@dataclass(frozen=True, slots=True)
class GpuTimeLost:
    """Work lost by moves, evictions and places that are gone, in milli-GPU seconds.

    A replica loses half its checkpoint interval on average, all elapsed work where it keeps no checkpoints, and
    its restart time when it moves. An atomic workload loses the work of all its running replicas with any of them,
    once, and the time of a restart where any of them moves while all places stand.
    What is lost with a place that is gone no plan can help; it is counted, and is the tier's lower bound.
    """

    kind: ClassVar[str] = "disruption"
    limit_needs_current: ClassVar[bool] = True
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "disruption.gpuTimeLost"
    sense: Sense = "min"
    unit: str = "milli-GPU s"

    def encode(self, part: TierPart) -> Linear:
        """Return the milli-GPU seconds lost."""
        total = Linear(constant=self.limit(part.context))
        for workload, running in at_stake(part.context, part.changing(part.spec.workloads)):
            encode = _atomic_loss if workload.atomic else _replica_loss
            total.add(encode(part, workload, running))
        return total

    def measure(self, view: View, context: Context) -> int:
        """Add up the milli-GPU seconds lost."""
        by_plan = sum(
            _measured_loss(view, workload, running) for workload, running in at_stake(context, view.spec.workloads)
        )
        return self.limit(context) + by_plan

    def limit(self, context: Context) -> int:
        """Return what is lost already with the places that are gone."""
        spec = context.spec
        gone: dict[str, int] = {}
        for replica in context.today.lost:
            role = spec.by_id[replica.workload].by_role[replica.role]
            gone[replica.workload] = gone.get(replica.workload, 0) + role.request.gpu_milli
        for workload, running in context.running.items():
            if workload in gone and spec.by_id[workload].atomic:
                gone[workload] += _gpu_milli(spec.by_id[workload], running)
        return sum(gpu * lost_seconds(spec, spec.by_id[workload], moved=False) for workload, gpu in gone.items())

    def needs_current(self, spec: Spec) -> bool:
        """Count from what runs today."""
        return True


@dataclass(frozen=True, slots=True)
class Moves:
    """Running replicas that are admitted on another place than today's."""

    kind: ClassVar[str] = "disruption"
    limit_needs_current: ClassVar[bool] = True
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "disruption.moves"
    sense: Sense = "min"
    unit: str = "replicas"

    def encode(self, part: TierPart) -> Linear:
        """Return the number of moves."""
        return Linear.total(part.moved(workload) for workload in part.changing(part.spec.workloads))

    def measure(self, view: View, context: Context) -> int:
        """Count the moves."""
        return sum(len(view.moved(workload)) for workload in view.spec.workloads)

    def limit(self, context: Context) -> int:
        """Nobody need move."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from what runs today."""
        return True


@dataclass(frozen=True, slots=True)
class Recut:
    """GPUs whose MIG layout changes, so that nothing is cut anew that nobody asked for (S5.3, S5.4).

    It is no tier of an objective: searches follow it behind all others. The model counts no more than there are.
    """

    kind: ClassVar[str] = "disruption"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "disruption.recut"
    sense: Sense = "min"
    unit: str = "GPUs"

    def encode(self, part: TierPart) -> Linear:
        """Return at most the number of GPUs of the part that are cut anew."""
        return Linear.total(part.recut(node.name) for node in part.free_nodes())

    def measure(self, view: View, context: Context) -> int:
        """Count the GPUs that are cut in another way than today."""
        return len(view.recut)

    def limit(self, context: Context) -> int:
        """No GPU need be cut anew."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from what GPUs are cut into today."""
        return True


def lost_seconds(spec: Spec, workload: Workload, *, moved: bool) -> int:
    """Return the seconds of work one replica loses by an eviction or by a move, rounded up."""
    if workload.checkpoint_every is not None:
        lost = (workload.checkpoint_every + 1) // 2
    else:
        lost = spec.current.elapsed.get(workload.id, 0)
    return -(-(lost + (workload.restart if moved else 0)) // 1000)


def at_stake(context: Context, workloads: Iterable[Workload]) -> Iterator[tuple[Workload, Mapping[str, int]]]:
    """Yield those workloads whose running work a plan can still lose, with their running replicas by role.

    An atomic workload that lost a place has lost its work already, whatever becomes of the rest.
    """
    hit = {replica.workload for replica in context.today.lost}
    for workload in workloads:
        if workload.id in context.running and not (workload.atomic and workload.id in hit):
            yield workload, context.running[workload.id]


def lost_with_all(spec: Spec, workload: Workload, running: Mapping[str, int]) -> int:
    """Return the milli-GPU seconds lost with any of the running replicas of an atomic workload, if none moves."""
    return _gpu_milli(workload, running) * lost_seconds(spec, workload, moved=False)


def lost_with_each(context: Context) -> Mapping[tuple[str, str], int]:
    """Return, per running workload and role, the milli-GPU seconds lost at the least with each replica that moves.

    Of what loses all at once, its part of that; nothing where all is lost already with a place that is gone.
    """
    found = {(name, role): 0 for name, running in context.running.items() for role in running}
    for workload, running in at_stake(context, context.spec.workloads):
        seconds = lost_seconds(context.spec, workload, moved=True)
        shared = _gpu_milli(workload, running) * seconds // sum(running.values())
        for role in running:
            own = workload.by_role[role].request.gpu_milli * seconds
            found[workload.id, role] = shared if workload.atomic else own
    return found


def _gpu_milli(workload: Workload, running: Mapping[str, int]) -> int:
    return sum(role.request.gpu_milli * running.get(role.name, 0) for role in workload.roles)


def _replica_loss(part: TierPart, workload: Workload, running: Mapping[str, int]) -> Linear:
    by_move = lost_seconds(part.spec, workload, moved=True)
    by_eviction = lost_seconds(part.spec, workload, moved=False)
    total = Linear()
    for role in workload.roles:
        gone = Linear(constant=running.get(role.name, 0)).minus(part.retained(workload, role))
        total.add(part.moved_role(workload, role), by_move * role.request.gpu_milli)
        total.add(gone, by_eviction * role.request.gpu_milli)
    return total


def _atomic_loss(part: TierPart, workload: Workload, running: Mapping[str, int]) -> Linear:
    """Return what is lost by a move of any replica, or where none moves by an eviction of any: never both."""
    gpu, total = _gpu_milli(workload, running), Linear()
    by_move = gpu * lost_seconds(part.spec, workload, moved=True)
    by_eviction = gpu * lost_seconds(part.spec, workload, moved=False)
    moved = _any_of(part, part.moved(workload)) if by_move else Linear()
    total.add(moved, by_move)
    if by_eviction:
        here = Linear(constant=sum(running.values()))
        gone = here.minus(Linear.total(part.retained(workload, role) for role in workload.roles))
        total.add(part.model.positive_part(_any_of(part, gone).minus(moved)), by_eviction)
    return total


def _any_of(part: TierPart, expression: Linear) -> Linear:
    """Return 1 where an expression is 1 or more, else 0."""
    possible = part.model.range_of(expression)[1] > 0
    return Linear.of(part.model.at_least_one(expression).variable) if possible else Linear()


def _measured_loss(view: View, workload: Workload, running: Mapping[str, int]) -> int:
    moved = view.moved(workload)
    gone = [replica for replica in view.evicted(workload) if replica in view.today.places]
    if workload.atomic:
        seconds = lost_seconds(view.spec, workload, moved=bool(moved)) if moved or gone else 0
        return _gpu_milli(workload, running) * seconds
    return sum(
        view.role(replica).request.gpu_milli * lost_seconds(view.spec, workload, moved=replica in moved)
        for replica in (*moved, *gone)
    )
