"""Which nodes a role may run on at all, apart from how much room they have (S2.4, S3.5-S3.7)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from dovetail.placement.clients import equal_parts, terms_of
from dovetail.placement.instances import profiles_for, share_memory
from dovetail.placement.place import Places
from dovetail.spec import Accelerator, Node, Request, Role, Spec, Workload
from dovetail.spec.workload import MILLI


class Obstacle(StrEnum):
    """Why a node can never host a role; the values read as a reason."""

    DOWN = "the node is down"
    CORDONED = "the node is cordoned"
    TAINT = "the node has a taint that is not tolerated"
    NO_GPU = "the node has too few healthy GPUs"
    INSIDE = "no island or socket of the node has enough healthy GPUs"
    ACCELERATOR = "the node's accelerator is not among those the workload accepts"
    MIG = "the node's GPUs cannot be cut into a MIG instance for it"
    RATE = "the service does not say what a replica sustains on the node's GPUs as they are shared"
    MECHANISM = "the node's sharing mechanism cannot hold a share"
    GPU_MEMORY = "the node's GPUs have less memory than the share asks for"
    HOST = "the node is too small in cpu, memory or resources"


def obstacle(
    workload: Workload, role: Role, node: Node, accelerators: Mapping[str, Accelerator], *, running: bool = False
) -> Obstacle | None:
    """Return why a role may not be on a node, None where it may.

    A replica that is already running there (`running`) is not driven away by a cordon, by a `NoSchedule` taint, or by
    islands and sockets that could not hold it (S2.5).
    """
    if node.down:
        return Obstacle.DOWN
    if node.cordoned and not running:
        return Obstacle.CORDONED
    if _repelled(workload, node, running):
        return Obstacle.TAINT
    return hardware_obstacle(role, node, accelerators, running=running)


def _repelled(workload: Workload, node: Node, running: bool) -> bool:
    effects = ("NoExecute",) if running else ("NoSchedule", "NoExecute")
    return any(
        taint.effect in effects and not any(t.tolerates(taint) for t in workload.tolerations) for taint in node.taints
    )


def hardware_obstacle(
    role: Role, node: Node, accelerators: Mapping[str, Accelerator], *, running: bool = False
) -> Obstacle | None:
    """Return why the healthy hardware of a node could not host a role even if it were empty, None where it could."""
    request = role.request
    if request.gpu_count:
        if role.accelerators and node.accelerator not in role.accelerators:
            return Obstacle.ACCELERATOR
        if len(node.healthy_gpus()) < request.gpu_count:
            return Obstacle.NO_GPU
        inside = () if running else request.inside
        if not any((mask & node.healthy).bit_count() >= request.gpu_count for mask in node.blocks(inside)):
            return Obstacle.INSIDE
        if wall := _part_obstacle(request, node, accelerators):
            return wall
    too_small = (
        request.cpu > node.cpu
        or request.memory > node.memory
        or any(amount > node.resources.get(name, 0) for name, amount in request.resources.items())
    )
    return Obstacle.HOST if too_small else None


def _part_obstacle(request: Request, node: Node, accelerators: Mapping[str, Accelerator]) -> Obstacle | None:
    """Return why no GPU of a node could give a part of itself to a request, None where one could."""
    card, request = accelerators.get(node.accelerator or ""), request.on(node.accelerator)
    if not request.partial or profiles_for(request, card):
        return None
    if request.share is None or "fraction" not in request.share.modes:
        return Obstacle.MIG
    if node.mechanism != "fraction" and not equal_parts(node):
        return Obstacle.MECHANISM
    share, model = request.share, node.accelerator
    listed = share.takes_fraction(model) if node.mechanism == "fraction" else share.rate(model) is not None
    if not listed:
        return Obstacle.RATE
    memory = card.memory if card else 0
    if share_memory(request, memory) > MILLI * memory:
        return Obstacle.GPU_MEMORY
    return Obstacle.MECHANISM if equal_parts(node) and terms_of(request, node, memory) is None else None


def mix_holds(spec: Spec, workload: Workload, places: Places) -> bool:
    """Tell whether an atomic workload's accelerators agree as its `mix` demands (S2.4): all, per role, or freely.

    Places of other workloads do not matter; who asks about many workloads sorts places by workload first.
    """
    if not workload.atomic or workload.mix == "any":
        return True
    found: dict[str, set[str | None]] = {}
    for replica, place in places.items():
        if replica.workload == workload.id and place.gpus:
            key = replica.role if workload.mix == "perRole" else ""
            found.setdefault(key, set()).add(spec.cluster.by_name[place.node].accelerator)
    return all(len(models) <= 1 for models in found.values())
