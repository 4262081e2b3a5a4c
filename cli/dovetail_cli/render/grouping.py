"""A plan's rows by node, workload, tenant, or domain of a level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dovetail.placement import Place
from dovetail.plan import Plan
from dovetail.spec import ReplicaId, Spec
from dovetail_cli.problems import usage
from dovetail_cli.render.words import printable

_UNKNOWN = "(not in the documents)"
_FROM_PLAN = ("node", "workload", "gang")
_FROM_DOCUMENTS = ("tenant", "topology")


@dataclass(slots=True)
class Group:
    """What lies in one group."""

    name: str
    replicas: int = 0
    gpus: set[tuple[str, int]] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    workloads: set[str] = field(default_factory=set)


def groups(plan: Plan, spec: Spec | None, by: str) -> list[Group]:
    """Return the groups of a plan's rows, by name.

    `node` and `workload` are in the plan itself; `tenant` and levels are known to the documents only.
    """
    key = _key(spec, by)
    found: dict[str, Group] = {}
    for replica, place in plan.placements.items():
        name = key(replica, place)
        group = found.setdefault(name, Group(name))
        group.replicas += 1
        group.gpus.update((place.node, index) for index in place.gpus)
        group.nodes.add(place.node)
        group.workloads.add(replica.workload)
    return [found[name] for name in sorted(found)]


def _key(spec: Spec | None, by: str) -> Callable[[ReplicaId, Place], str]:
    if by == "node":
        return lambda replica, place: place.node
    if by == "workload":
        return lambda replica, place: replica.workload
    if spec is None:
        raise usage(
            f"--by {printable(by)} needs the documents: give PATH", f"a plan alone knows {', '.join(_FROM_PLAN)}"
        )
    if by == "tenant":
        return lambda replica, place: _tenant(spec, replica)
    if by not in spec.cluster.levels:
        known = dict.fromkeys((*_FROM_PLAN, *_FROM_DOCUMENTS, *spec.cluster.levels))
        raise usage(f"--by {printable(by)}: there is no such level", f"known here: {', '.join(known)}")
    return lambda replica, place: _domain(spec, place, by)


def _tenant(spec: Spec, replica: ReplicaId) -> str:
    workload = spec.by_id.get(replica.workload)
    return _UNKNOWN if workload is None else workload.tenant or "(none)"


def _domain(spec: Spec, place: Place, level: str) -> str:
    node = spec.cluster.by_name.get(place.node)
    return _UNKNOWN if node is None else node.domain(level) or "(none)"
