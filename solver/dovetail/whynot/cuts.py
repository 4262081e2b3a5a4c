"""Why replicas of a plan are on MIG instances, and on those profiles (S2.7, S3.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dovetail.mig import Profile
from dovetail.placement import profiles_for
from dovetail.placement.clients import equal_parts
from dovetail.placement.instances import memory_of
from dovetail.plan import Plan
from dovetail.quantities import format_memory, format_milli
from dovetail.spec import Accelerator, Node, Request, Share, Spec, Workload
from dovetail.spec.workload import MILLI


class Cut(NamedTuple):
    """Replicas of a workload on instances of one profile of a node, and why they are, in words."""

    workload: str
    profile: str
    gpus: tuple[int, ...]
    replicas: int
    why: tuple[str, ...]


def cuts_of(spec: Spec, plan: Plan, node: Node) -> Iterator[Cut]:
    """Yield who is on instances of a node's GPUs, by workload, role and profile."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for replica, place in sorted(plan.placements.items()):
        if place.node == node.name and place.instance:
            key = replica.workload, replica.role, place.instance.partition("@")[0]
            found.setdefault(key, []).append(place.gpus[0])
    for (name, role, profile), gpus in sorted(found.items()):
        workload = spec.by_id[name]
        request = workload.by_role[role].request.on(node.accelerator)
        why = tuple(_why(spec, node, workload, request, profile))
        yield Cut(name, profile, tuple(sorted(set(gpus))), len(gpus), why)


def _why(spec: Spec, node: Node, workload: Workload, request: Request, profile: str) -> Iterator[str]:
    share = request.share
    if share is None:
        yield "asks for this profile"
        return
    yield _why_mig(node, workload, share)
    card = spec.accelerators[node.accelerator or ""]
    able = profiles_for(request, card)
    own = next((each for each in able if each.name == profile), None)
    if own is not None:
        yield _why_profile(node, share, own, able, card)


def _why_mig(node: Node, workload: Workload, share: Share) -> str:
    if share.modes == ("mig",):
        return "only MIG isolates faults" if workload.isolation == "fault" else "its service lists instances alone"
    if not equal_parts(node) and node.mechanism != "fraction":
        return f"GPUs of group {node.group} are shared as instances alone"
    closing = sorted({lean.policy for lean in share.leans if "mig" not in lean.closed})
    return f"policy {', '.join(closing)} is for it" if closing else "the tiers gain by it, a shared GPU would do"


def _why_profile(node: Node, share: Share, own: Profile, able: tuple[Profile, ...], card: Accelerator) -> str:
    need = f"{'its peak of ' if share.peak else ''}{format_milli(max(share.peak, share.compute))} GPU"
    if share.memory is not None:
        need += f" and {format_memory(share.memory)}"
    smaller = [p for p in able if _size(p) < _size(own)]
    if share.rated and (rate := share.rate(node.accelerator, own.name)):
        return f"a replica sustains {format_milli(rate)}/s on it"
    if not smaller:
        return f"no smaller instance has {need}{_implied(share, own, card)}"
    if node.mig_strategy == "single":
        return f"the node is cut into one profile; {need} would fit {smaller[-1].name}"
    return f"larger than {need} needs ({format_milli(own.milli)} GPU)"


def _size(profile: Profile) -> tuple[int, int]:
    return profile.compute, profile.size


def _implied(share: Share, own: Profile, card: Accelerator) -> str:
    """Return the memory that goes with a share that names none, where a smaller instance lacks nothing else."""
    peak = max(share.peak, share.compute)
    profiles = card.mig.profiles if card.mig else ()
    if share.memory is not None or all(p.milli < peak for p in profiles if _size(p) < _size(own)):
        return ""
    return f" and the {format_memory(-(-memory_of(share, card.memory) // MILLI))} that go with it"
