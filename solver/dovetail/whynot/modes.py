"""Why the GPUs of a node are shared in the mode that a plan tells (S3.5): who needs it, and what rules out others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from dovetail.placement.clients import MODES, Terms, pool_of, terms_of
from dovetail.plan import Plan
from dovetail.rules import context_of
from dovetail.spec import Node, ReplicaId, Setting, Spec


class Shared(NamedTuple):
    """GPUs of a node that are set alike, and why they are, in words."""

    gpus: tuple[int, ...]
    setting: Setting
    why: tuple[str, ...]


def modes_of(spec: Spec, plan: Plan, node: Node) -> Iterator[Shared]:
    """Yield what the GPUs of a node that clients share are set to, those that are set together as one."""
    pools: dict[int, list[int]] = {}
    for gpu in node.healthy_gpus():
        if f"{node.name}/{gpu}" in plan.shared:
            pools.setdefault(pool_of(node, gpu), []).append(gpu)
    today = context_of(spec).today.settings if pools else {}
    for pool, gpus in pools.items():
        setting = plan.shared[f"{node.name}/{gpus[0]}"]
        on = {r: p for r, p in plan.placements.items() if p.node == node.name and not p.instance and p.gpus}
        clients = {replica: place.gpus[0] for replica, place in on.items() if place.gpus[0] in gpus}
        yield Shared(tuple(gpus), setting, tuple(_why(spec, node, setting, clients, today.get((node.name, pool)))))


def _why(
    spec: Spec, node: Node, setting: Setting, clients: dict[ReplicaId, int], today: Setting | None
) -> Iterator[str]:
    counts = Counter(clients.values())
    gpu, most = min(counts.items(), key=lambda item: (-item[1], item[0]), default=(0, 0))
    if setting == today:
        yield "as today, which is enough"
    elif node.sharing is not None and node.sharing.parts is not None:
        yield f"gpu {gpu} has {most} clients, and shared GPUs have {node.sharing.parts} parts here"
    else:
        yield f"gpu {gpu} has {most} clients"
    for mode in MODES[1:]:
        other = Setting(mode, setting.clients)
        barred = sorted({r.workload for r in clients if not _suffers(spec, node, r, other)})
        closed = sorted({name for r in clients for name in _closing(spec, node, r, mode)})
        if mode != setting.mode and closed:
            yield f"{mode} is closed by {', '.join(closed)}"
        if mode != setting.mode and barred:
            yield f"{mode} does not do for {', '.join(barred[:3])}{' and others' if len(barred) > 3 else ''}"


def _closing(spec: Spec, node: Node, replica: ReplicaId, mode: str) -> Iterator[str]:
    """Yield the hard policies that close a mode to a client."""
    share = spec.by_id[replica.workload].by_role[replica.role].request.share
    for lean in share.leans if share is not None else ():
        if mode in lean.closed and not lean.weight and (lean.everywhere or lean.policy in node.leaning):
            yield lean.policy


def _suffers(spec: Spec, node: Node, replica: ReplicaId, setting: Setting) -> bool:
    card = spec.accelerators[node.accelerator or ""].memory
    request = spec.by_id[replica.workload].by_role[replica.role].request
    terms: Terms | None = terms_of(request, node, card)
    return terms is not None and terms.suffice(setting)
