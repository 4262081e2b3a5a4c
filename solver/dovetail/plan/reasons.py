"""Why work is not admitted, as far as a finished placement tells it honestly (S6.1).

Every code states a fact of the plan. Where nothing is proved about a workload's band, DT4100 comes first: a longer
search might have admitted it, whatever stands in its way now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from dovetail.placement import Obstacle, View, hardware_obstacle, obstacle
from dovetail.placement.served import served
from dovetail.plan.forbidden import Trials, closed_nodes
from dovetail.plan.model import AdmissionResult, TierResult
from dovetail.plan.moving import Moving
from dovetail.plan.space import Space, Wanting
from dovetail.plan.stranded import gpus_that_fit
from dovetail.plan.summary import state_of
from dovetail.plan.together import too_few_together
from dovetail.rules import Context
from dovetail.spec import Node, Request, Role, Workload

UNPROVED = "DT4100"
TOO_FEW_GPUS = "DT4101"
SCATTERED = "DT4102"
CPU = "DT4103"
RESOURCES = "DT4104"
KEPT_AWAY = "DT4105"
FORBIDDEN = "DT4106"
OUTRANKED = "DT4107"
TOO_FEW_FIT = "DT4108"
MECHANISM = "DT4109"
MOVES = "DT4110"
NO_GPU_FREE = "DT4111"
HELD_FREE = "DT4112"
TOO_FEW_TOGETHER = "DT4113"
NO_ISLAND = "DT4114"
STAYS = "DT4115"


def admitted_of(view: View, context: Context, tiers: Sequence[TierResult]) -> Mapping[str, AdmissionResult]:
    """Return the workloads that are not admitted in full, with the reasons, by id."""
    judge = _Judge(view, context, tiers)
    found = {}
    for workload in view.spec.workloads:
        state = state_of(view, workload)
        if state != "full":
            count = len(view.admitted(workload))
            found[workload.id] = AdmissionResult(
                state, count, workload.replicas, judge.reasons(workload), *_rates(view, workload)
            )
    return found


def _rates(view: View, workload: Workload) -> tuple[int | None, int | None]:
    """Return what a service serves and was promised to, nothing where nothing was promised."""
    if workload.slo is None or not workload.slo.rate:
        return None, None
    return served(view, workload), workload.slo.rate


class _Judge:
    """Finds reasons on one finished placement."""

    def __init__(self, view: View, context: Context, tiers: Sequence[TierResult]) -> None:
        self.view = view
        self.context = context
        self.space = Space(view)
        self.trials = Trials(view, context)
        self.moving = Moving(view, context, self.space)
        self.open_bands = open_bands(context, tiers)
        self._shortages: dict[tuple[int, Hashable], str] = {}

    def reasons(self, workload: Workload) -> tuple[str, ...]:
        """Return the codes for a workload, the dominant one first."""
        missing = self._missing(workload)
        hopeless = [self._hopeless(workload, wanting.role) for wanting in missing if not wanting.nodes]
        if hopeless:
            return tuple(dict.fromkeys(hopeless))
        facts = self._facts(workload, missing)
        unproved = not facts or self.view.spec.band_of(workload) in self.open_bands
        return tuple(dict.fromkeys([*([UNPROVED] if unproved else []), *facts]))

    def _missing(self, workload: Workload) -> list[Wanting]:
        held = Counter(replica.role for replica in self.view.admitted(workload))
        closed = closed_nodes(self.context, workload)
        return [
            Wanting(role, role.replicas - held[role.name], self.space.usable(workload, role, closed))
            for role in workload.roles
            if role.replicas > held[role.name]
        ]

    def _hopeless(self, workload: Workload, role: Role) -> str:
        """Return why no node could take a role even if the cluster were empty."""
        nodes = self.view.spec.cluster.nodes
        walls = [obstacle(workload, role, node, self.view.spec.accelerators) for node in nodes]
        if None in walls:
            return FORBIDDEN
        kept_away = [node for node, wall in zip(nodes, walls, strict=True) if wall in _KEEPING_AWAY]
        return (
            KEPT_AWAY if any(self._could_hold(role, node) for node in kept_away) else _first_wall(role, walls, nodes)
        )

    def _could_hold(self, role: Role, node: Node) -> bool:
        """Tell whether a node's make would do for a role, cordon, taints and failures aside."""
        whole = replace(node, down=False, failed_gpus=frozenset())
        return hardware_obstacle(role, whole, self.view.spec.accelerators) is None

    def _facts(self, workload: Workload, missing: Sequence[Wanting]) -> list[str]:
        blocked = [wanting for wanting in missing if not self.space.has_room(wanting)]
        needed = self._needed(workload, missing)
        if blocked and self.view.held and self._has_room(self._unheld, workload, missing, needed):
            return [HELD_FREE]
        if blocked:
            closed = self._behind_closed_nodes(workload, missing, blocked, needed)
            short = [self._shortage(wanting) for wanting in blocked if wanting not in closed]
            if closed:
                return [FORBIDDEN, *short]
            if self.moving.only_limits_forbid(workload, missing, needed):
                return [MOVES, *short]
            outranked = any(self._outranked(workload, wanting.nodes) for wanting in blocked)
            return [*short, *([OUTRANKED] if outranked else [])]
        if needed > 1 and self.space.too_few_fit(workload, missing, needed):
            limited = self.moving.only_limits_forbid(workload, missing, needed)
            if limited:
                return [MOVES, TOO_FEW_FIT]
            outranked = any(self._filled_above(workload, wanting) for wanting in missing)
            return [TOO_FEW_FIT, *([OUTRANKED] if outranked else [])]
        if needed > 1 and too_few_together(self.space, workload, missing, needed):
            limited = self.moving.only_limits_forbid(workload, missing, needed)
            return [*([MOVES] if limited else []), TOO_FEW_TOGETHER]
        if self._forbidden(workload, missing, needed):
            return [FORBIDDEN]
        return [STAYS] if workload.id in self._fixed and not self.view.admitted(workload) else []

    def _needed(self, workload: Workload, missing: Sequence[Wanting]) -> int:
        """Return how many more replicas are the fewest that a workload may have: up to its least, then a step."""
        more = workload.min_replicas - len(self.view.admitted(workload))
        return more if more > 0 else min((wanting.role.step for wanting in missing), default=1)

    def _forbidden(self, workload: Workload, missing: Sequence[Wanting], needed: int) -> bool:
        """Tell whether hard policies forbid a workload to have more; of one that runs, any one more as well."""
        counts = (needed, 1) if needed > 1 and self.view.admitted(workload) else (needed,)
        return any(self.trials.all_forbidden(workload, missing, count, self.space) for count in counts)

    @cached_property
    def _unheld(self) -> Space:
        """What the plan leaves free if nothing were held."""
        return Space(replace(self.view, held={}))

    def _behind_closed_nodes(
        self, workload: Workload, missing: Sequence[Wanting], blocked: Sequence[Wanting], needed: int
    ) -> list[Wanting]:
        """Return the roles without room for which nodes that hard policies close have some.

        None where these have room for single replicas and not for `needed` of them: no policy forbids that then.
        """
        everywhere = {w.role.name: self.space.usable(workload, w.role, frozenset()) for w in missing}
        behind = (w for w in blocked if len(everywhere[w.role.name]) > len(w.nodes))
        found = [w for w in behind if self.space.has_room(w._replace(nodes=everywhere[w.role.name]))]
        opened = [wanting._replace(nodes=everywhere[wanting.role.name]) for wanting in missing]
        return found if found and self._fits_together(self.space, workload, opened, needed) else []

    def _has_room(self, space: Space, workload: Workload, missing: Sequence[Wanting], needed: int) -> bool:
        """Tell whether every role finds room, and nothing is known that keeps `needed` replicas from it together."""
        return all(map(space.has_room, missing)) and self._fits_together(space, workload, missing, needed)

    def _fits_together(self, space: Space, workload: Workload, missing: Sequence[Wanting], needed: int) -> bool:
        """Tell whether nothing is known that keeps `needed` replicas together from the room for single ones."""
        if needed == 1:
            return True
        return not (
            space.too_few_fit(workload, missing, needed) or too_few_together(space, workload, missing, needed)
        )

    def _shortage(self, wanting: Wanting) -> str:
        """Return what runs short first on the nodes a role may use: GPUs in all, on one node, cpu, the rest."""
        if wanting.key not in self._shortages:
            self._shortages[wanting.key] = self._shortage_on(wanting)
        return self._shortages[wanting.key]

    def _shortage_on(self, wanting: Wanting) -> str:
        request, nodes = wanting.role.request, wanting.nodes
        if request.gpu_count:
            if self._too_few_gpus(request, nodes):
                return TOO_FEW_GPUS
            nodes = [node for node in self.space.open_to(request, nodes) if self.space.gpus_fit(node, request)]
            if not nodes:
                return NO_GPU_FREE if request.partial else self._apart(request, wanting.nodes)
        return RESOURCES if any(request.cpu <= self.space.room(node).cpu for node in nodes) else CPU

    def _too_few_gpus(self, request: Request, nodes: Sequence[Node]) -> bool:
        """Tell whether nodes have, together, fewer GPUs free than a request asks for: untouched ones, or parts."""
        if request.gpus:
            return sum(len(gpus_that_fit(self.space.room(node), request)) for node in nodes) < request.gpus
        return self.space.free_milli(nodes) < request.gpu_milli

    def _apart(self, request: Request, nodes: Sequence[Node]) -> str:
        """Return whether enough GPUs are free on no node, or on some, and there in no one island or socket."""
        free = (len(gpus_that_fit(self.space.room(node), request)) for node in nodes)
        return NO_ISLAND if any(count >= request.gpu_count for count in free) else SCATTERED

    def _filled_above(self, workload: Workload, wanting: Wanting) -> bool:
        """Tell whether a node that a role may use hosts work of a higher priority and has no room for a replica."""
        above = self._above(workload, wanting.nodes)
        return not all(self.space.any_room([wanting._replace(nodes=(node,))]) for node in above)

    def _outranked(self, workload: Workload, nodes: Sequence[Node]) -> bool:
        return any(True for _ in self._above(workload, nodes))

    def _above(self, workload: Workload, nodes: Sequence[Node]) -> Iterator[Node]:
        """Yield the nodes that host work of a higher priority."""
        return (node for node in nodes if self.space.top_priority(node) > workload.priority)

    @cached_property
    def _fixed(self) -> frozenset[str]:
        """The workloads of which anything runs that may not move."""
        return frozenset(replica.workload for replica in self.context.today.fixed)


def _first_wall(role: Role, met: Sequence[Obstacle | None], nodes: Sequence[Node]) -> str:
    """Return the reason for a role that no make of node can host: the last wall that the best node puts up."""
    if Obstacle.HOST in met:
        able = [n for n, wall in zip(nodes, met, strict=True) if wall is Obstacle.HOST]
        return RESOURCES if any(role.request.cpu <= node.cpu for node in able) else CPU
    if Obstacle.GPU_MEMORY in met:
        return NO_GPU_FREE
    if any(wall in met for wall in (Obstacle.MECHANISM, Obstacle.MIG, Obstacle.RATE)):
        return MECHANISM
    if Obstacle.INSIDE in met:
        return NO_ISLAND
    if (
        Obstacle.NO_GPU in met
        and sum(len(n.healthy_gpus()) for n, wall in zip(nodes, met, strict=True) if wall is Obstacle.NO_GPU)
        >= role.request.gpu_count
    ):
        return SCATTERED
    return TOO_FEW_GPUS if role.request.gpu_count else RESOURCES


_KEEPING_AWAY = frozenset({Obstacle.DOWN, Obstacle.CORDONED, Obstacle.TAINT})


def open_bands(context: Context, tiers: Sequence[TierResult]) -> frozenset[int]:
    """Return the bands whose admission is not proved: their tiers, or earlier ones, have a gap."""
    proved: set[str] = set()
    for tier in tiers:
        if not tier.proved:
            break
        proved.add(tier.name)
    told = {tier.name for tier in tiers}
    return frozenset(
        band
        for band in context.spec.bands
        for name in (f"admitted[{band}]", f"admitted-cpu[{band}]")
        if name in told and name not in proved
    )
