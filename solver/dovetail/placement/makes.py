"""Nodes by make: who may host what is judged once per make and kind of ask, not node by node."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from dovetail.placement.compat import obstacle
from dovetail.spec import Accelerator, Node, Request, Role, Workload
from dovetail.spec.inside import INNER_LEVELS, ISLAND_LEVEL, SOCKET_LEVEL


def make_of(node: Node) -> Hashable:
    """Return what decides which roles a node could host; nodes of one make are alike while they are empty."""
    resources = tuple(sorted(node.resources.items()))
    gpus = (len(node.healthy_gpus()), _inside(node))
    sharing = node.mechanism, node.sharing, node.leaning, node.mig_strategy
    hardware = (node.cpu, node.memory, resources, gpus, node.accelerator, sharing)
    return hardware, node.taints, node.cordoned, node.down


def _inside(node: Node) -> Hashable:
    """Return how many healthy GPUs the islands and sockets of a node have, None where it declares none."""
    if not (node.islands or node.sockets):
        return None
    healthy = node.healthy
    return tuple(
        tuple(sorted((mask & healthy).bit_count() for mask in node.blocks(inside)))
        for inside in ((ISLAND_LEVEL,), (SOCKET_LEVEL,), INNER_LEVELS)
    )


def ask_of(workload: Workload, role: Role) -> Hashable:
    """Return what decides which nodes could host a role; roles with equal asks have the same obstacles."""
    return amounts_of(role.request), frozenset(role.accelerators), frozenset(workload.tolerations)


def amounts_of(request: Request) -> Hashable:
    """Return all that a request asks for, as a key."""
    part = request.share, request.mig, request.mig_milli
    return request.cpu, request.memory, request.gpus, part, tuple(sorted(request.resources.items())), request.inside


class Makes:
    """Some nodes, grouped by make, and which makes each kind of ask has no obstacle on.

    `of` gives the make of each node, by the node's position; makes are numbered in the order of their first node.
    """

    def __init__(self, nodes: Sequence[Node], accelerators: Mapping[str, Accelerator]) -> None:
        self._accelerators = accelerators
        numbers: dict[Hashable, int] = {}
        self.of = tuple(numbers.setdefault(make_of(node), len(numbers)) for node in nodes)
        members: list[list[Node]] = [[] for _ in numbers]
        for make, node in zip(self.of, nodes, strict=True):
            members[make].append(node)
        self.members = tuple(tuple(group) for group in members)
        self._hosting: dict[Hashable, frozenset[int]] = {}
        self._names: dict[frozenset[int], frozenset[str]] = {}

    def hosting(self, workload: Workload, role: Role) -> frozenset[int]:
        """Return the makes that may newly take a role, whatever room their nodes have left."""
        ask = ask_of(workload, role)
        if ask not in self._hosting:
            self._hosting[ask] = frozenset(
                make
                for make, nodes in enumerate(self.members)
                if obstacle(workload, role, nodes[0], self._accelerators) is None
            )
        return self._hosting[ask]

    def nodes_for(self, workload: Workload) -> frozenset[str]:
        """Return the names of the nodes that may newly take a replica of a workload, of whichever role."""
        roles = [role for role in workload.roles if role.replicas]
        makes = frozenset[int]().union(*(self.hosting(workload, role) for role in roles))
        if makes not in self._names:
            self._names[makes] = frozenset(node.name for make in makes for node in self.members[make])
        return self._names[makes]
