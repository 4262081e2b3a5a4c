"""What policies permit: written onto the nodes and shares that they are about, so that nobody asks policies again.

A Spec does this whenever it is made, from its policies alone, so that one with other policies has other permits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import is_
from typing import NamedTuple

from dovetail.spec.cluster import Cluster, Node
from dovetail.spec.policy import Policy
from dovetail.spec.workload import MILLI, Lean, Role, Workload


class Ratios(NamedTuple):
    """Thousandths of what there is that may be promised of each node, None where nothing is said."""

    cpu: int | None = None
    memory: int | None = None
    compute: int | None = None


_Matched = Callable[[Policy], tuple[Workload, ...]]


def with_leans(
    cluster: Cluster,
    workloads: tuple[Workload, ...],
    policies: Iterable[Policy],
    matched: _Matched,
    tiers: tuple[str, ...],
) -> tuple[Cluster, tuple[Workload, ...]]:
    """Return nodes and workloads that know what binding policies say of the modes of shares (S4.1)."""
    about = [p for p in policies if p.rule.closes() and p.enforcement.kind != "audit"]
    leans: dict[str, list[Lean]] = {}
    for policy in about:
        own = policy.enforcement
        rank = tiers.index(own.tier) if own.tier in tiers else len(tiers)
        lean = Lean(policy.name, policy.rule.closes(), own.weight, policy.nodes is None, rank)
        for workload in matched(policy):
            leans.setdefault(workload.id, []).append(lean)
    local = [policy for policy in about if policy.nodes is not None]
    return _led(cluster, local), _leant(workloads, leans)


def _led(cluster: Cluster, local: list[Policy]) -> Cluster:
    if not local and not any(node.leaning for node in cluster.nodes):
        return cluster
    nodes = tuple(_with(node, _selecting(node, local)) for node in cluster.nodes)
    return replace(cluster, nodes=nodes)


def _selecting(node: Node, local: list[Policy]) -> tuple[str, ...]:
    return tuple(p.name for p in local if p.nodes is not None and p.nodes.selects(node))


def _with(node: Node, leaning: tuple[str, ...]) -> Node:
    return node if node.leaning == leaning else replace(node, leaning=leaning)


def _leant(workloads: tuple[Workload, ...], leans: Mapping[str, list[Lean]]) -> tuple[Workload, ...]:
    return tuple(_with_roles(workload, tuple(leans.get(workload.id, ()))) for workload in workloads)


def _with_roles(workload: Workload, leans: tuple[Lean, ...]) -> Workload:
    roles = tuple(_leaning(role, leans) for role in workload.roles)
    return workload if all(map(is_, roles, workload.roles)) else replace(workload, roles=roles)


def _leaning(role: Role, leans: tuple[Lean, ...]) -> Role:
    share = role.request.share
    if share is None or share.leans == leans:
        return role
    return replace(role, request=replace(role.request, share=replace(share, leans=leans)))


def with_promises(cluster: Cluster, policies: Iterable[Policy]) -> Cluster:
    """Return nodes that have to give what hard policies let be promised of them (S2.7, S3.6)."""
    hard = [(p, ratios) for p in policies if p.enforcement.kind == "hard" and (ratios := p.rule.promises())]
    if not hard and not any(node.promised for node in cluster.nodes):
        return cluster
    nodes = tuple(
        _promising(node, [r for p, r in hard if p.nodes is None or p.nodes.selects(node)]) for node in cluster.nodes
    )
    return replace(cluster, nodes=nodes)


def _promising(node: Node, ratios: list[Ratios]) -> Node:
    """Return a node of which the least of some ratios may be promised, None standing for what it has."""
    own = node.owned
    least = [min((r for r in each if r is not None), default=None) for each in zip(*ratios, strict=True)]
    cpu, memory, compute = least or (None, None, None)
    if (cpu, memory, compute) == (None, None, None):
        return node if node.promised is None else replace(node, **own._asdict(), promised=None)
    sharing = own.sharing
    if sharing is not None and compute is not None:
        sharing = replace(sharing, oversubscription=compute, mps_oversubscription=compute)
    return replace(
        node,
        cpu=own.cpu * (cpu or MILLI) // MILLI,
        memory=own.memory * (memory or MILLI) // MILLI,
        sharing=sharing,
        promised=own,
    )
