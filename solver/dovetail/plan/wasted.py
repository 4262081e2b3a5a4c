"""What the layouts of a plan waste, GPU by GPU, for people: nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dovetail.mig import Instance, Profile, parse_instance
from dovetail.mig.waste import Need, Waste, wasted
from dovetail.placement.instances import share_memory
from dovetail.plan.model import Plan
from dovetail.spec import Accelerator, Request, Share, Spec
from dovetail.spec.slo import host_of
from dovetail.spec.workload import MILLI


def wasted_by_gpu(spec: Spec, plan: Plan) -> Iterator[tuple[str, tuple[Waste, ...]]]:
    """Yield the GPUs of a plan, by `node/index`, whose layouts waste something, with what.

    A GPU that nothing runs on is idle, which is no waste of its layout, and is left out.
    """
    needs = _needs(spec, plan)
    for gpu, layout in sorted(plan.gpus.items()):
        node = spec.cluster.by_name.get(gpu.rpartition("/")[0])
        card = spec.accelerators.get(node.accelerator or "") if node else None
        if node is not None and gpu in needs and card is not None and card.mig is not None:
            found = wasted(card.mig, layout, needs[gpu])
            if node.mig_strategy == "single":  # another profile would have to be that of the whole node
                found = tuple(replace(each, swaps=()) for each in found if each.kind != "larger")
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
            need = Need(0, 0) if profile is None else _need(role.request.on(card.name), card, profile)
            found.setdefault(f"{place.node}/{place.gpus[0]}", {})[instance] = need
    return found


def _need(request: Request, card: Accelerator, own: Profile) -> Need:
    """Return what a request asks of an instance; one for a profile asks for all that it has."""
    if request.share is None:
        return Need(own.milli, own.memory)
    memory = -(-share_memory(request, card.memory) // MILLI)
    least = Need(max(request.share.peak, request.share.compute), memory)
    return least if request.share.rated is None else _need_of_rate(request.share, card, own)


def _need_of_rate(share: Share, card: Accelerator, own: Profile) -> Need:
    """Return what the smallest instance has on which a service has the rate that it has here."""
    rates = dict(share.rated or ())
    here = rates.get(host_of(card.name, own.name), 0)
    profiles = card.mig.profiles if card.mig else ()
    able = [p for p in profiles if rates.get(host_of(card.name, p.name), -1) >= here]
    least = min([*able, own], key=lambda p: (p.compute, p.size))
    return Need(least.milli, least.memory)
