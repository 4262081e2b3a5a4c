"""What the layouts of a plan waste, GPU by GPU, for people: nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.mig import Instance, parse_instance
from dovetail.mig.waste import Need, Waste, wasted
from dovetail.placement.instances import share_memory
from dovetail.plan.model import Plan
from dovetail.spec import Request, Spec
from dovetail.spec.workload import MILLI


def wasted_by_gpu(spec: Spec, plan: Plan) -> Iterator[tuple[str, tuple[Waste, ...]]]:
    """Yield the GPUs of a plan, by `node/index`, whose layouts waste something, with what.

    A GPU that nothing runs on is idle, which is no waste of its layout, and is left out.
    """
    needs = _needs(spec, plan)
    for gpu, layout in sorted(plan.gpus.items()):
        node = spec.cluster.by_name.get(gpu.rpartition("/")[0])
        card = spec.accelerators.get(node.accelerator or "") if node else None
        if gpu in needs and card is not None and card.mig is not None:
            found = wasted(card.mig, layout, needs[gpu])
            if found:
                yield gpu, found


def _needs(spec: Spec, plan: Plan) -> Mapping[str, Mapping[Instance, Need]]:
    """Return what runs on instances asked for, by GPU."""
    found: dict[str, dict[Instance, Need]] = {}
    for replica, place in plan.placements.items():
        workload = spec.by_id.get(replica.workload)
        role = workload.by_role.get(replica.role) if workload else None
        node = spec.cluster.by_name.get(place.node)
        card = spec.accelerators.get(node.accelerator or "") if node else None
        if place.instance and role is not None and card is not None and card.mig is not None:
            instance = parse_instance(place.instance)
            profile = card.mig.by_name.get(instance.profile)
            own = (0, 0) if profile is None else (profile.milli, profile.memory)
            found.setdefault(f"{place.node}/{place.gpus[0]}", {})[instance] = _need(role.request, card.memory, own)
    return found


def _need(request: Request, card: int, own: tuple[int, int]) -> Need:
    """Return what a request asks of an instance; one for a profile asks for all that it has."""
    if request.share is None:
        return Need(*own)
    memory = -(-share_memory(request, card) // MILLI)
    return Need(max(request.share.peak, request.share.compute), memory)
