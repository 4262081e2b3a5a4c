"""Clusters: a tree of domains whose leaves are nodes (S1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal, NamedTuple

from dovetail.mig import Geometry, Instance
from dovetail.spec.inside import INNER_LEVELS, ISLAND_LEVEL, Mask, Parts, blocks_of, mask_of, masks_of, sets_of

Mechanism = Literal["devicePlugin", "fraction", "dra"]
Unit = Literal["node", "gpu", "instance"]
Strategy = Literal["mixed", "single"]
Positions = Literal["enforced", "toolChosen"]
Layout = tuple[Instance, ...]
"""The MIG instances of one GPU, ascending by start; an empty one is a GPU in MIG mode without instances."""
SharedMode = Literal["whole", "mps", "time-slice"]
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

NODE_LEVEL = "node"
GPU_LEVEL = "gpu"


class Setting(NamedTuple):
    """How GPUs are shared by equal parts (S3.5): the mode, and the clients of one GPU; one where nobody shares it."""

    mode: SharedMode
    clients: int


@dataclass(frozen=True, slots=True)
class EqualParts:
    """How the GPUs of a node can be shared by equal parts, by the device plugin or by `dra` (S3.5).

    Parameters
    ----------
    mps, time_slicing : the most clients of one GPU in that mode, 0 where it is not offered.
    parts : how many clients there are wherever GPUs are shared, None for as many as are needed.
    oversubscription : thousandths of a GPU that may be promised of one that is shared by time-slicing.
    mps_oversubscription : the same for MPS, of which only policies let more than 1000 be promised.
    """

    mps: int = 48
    time_slicing: int = 1000
    parts: int | None = None
    oversubscription: int = 1000
    mps_oversubscription: int = 1000


class Owned(NamedTuple):
    """What a node has of what policies may let be promised more than once."""

    cpu: int
    memory: int
    sharing: EqualParts | None


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One GPU product (S1.4); `memory` in MiB, as usable by a tenant of the whole card.

    `mig` is what one GPU can be cut into, None where it cannot be cut or where nobody has verified how and the
    documents do not say `allowUnverified`. `throughput` is its speed in thousandths of the reference's,
    `nvlink` the bandwidth to GPUs of its island in MB/s, 0 for none.
    """

    name: str
    memory: int
    aliases: tuple[str, ...] = ()
    source: str = ""
    verified: bool = True
    mig: Geometry | None = None
    throughput: int = 1000
    nvlink: int = 0


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint in Kubernetes' shape; only `NoSchedule` and `NoExecute` keep replicas away."""

    key: str
    value: str = ""
    effect: TaintEffect = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A workload's toleration in Kubernetes' shape; an empty key with `Exists` tolerates everything."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether this toleration covers a taint, by Kubernetes' matching rules."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists"
        if self.key != taint.key:
            return False
        return self.operator == "Exists" or self.value == taint.value


@dataclass(frozen=True, slots=True)
class Node:
    """One node with what it can give to workloads: reserved amounts are already taken off (S1.3).

    Parameters
    ----------
    domains : mapping of level name to domain path, outermost first, without the node level itself.
    cpu, memory : allocatable milli-cores and MiB.
    price, gpu_price : millionths per hour for the node when it hosts anything, and per GPU in use.
    sharing : how its GPUs can be shared by equal parts, None where nobody says that they are.
    failed_gpus : indices that take nothing (S3.7).
    mig_layout : today's instances of the GPUs that are cut, by index; what is known of today's state goes before it.
    islands, sockets : GPU indices of each, empty where all GPUs are in one (S1.1).
    speed : in thousandths of the nominal one (S1.3).
    mig_strategy : how MIG instances are offered; of `single` all GPUs of the node are cut into one profile, or none.
    leaning : the policies on modes that name some nodes, this one among them; the Spec fills it in.
    promised : what it has where policies let more be promised, which `cpu`, `memory` and `sharing` tell then.
    """

    name: str
    group: str
    cpu: int
    memory: int
    gpus: int = 0
    accelerator: str | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    mechanism: Mechanism = "devicePlugin"
    sharing: EqualParts | None = None
    price: int = 0
    gpu_price: int = 0
    cordoned: bool = False
    down: bool = False
    failed_gpus: frozenset[int] = frozenset()
    mig_layout: Mapping[int, Layout] = field(default_factory=dict)
    islands: Parts = ()
    sockets: Parts = ()
    speed: int = 1000
    mig_strategy: Strategy = "mixed"
    leaning: tuple[str, ...] = ()
    promised: Owned | None = None

    @property
    def owned(self) -> Owned:
        """What the node has, however much more of it may be promised."""
        return self.promised or Owned(self.cpu, self.memory, self.sharing)

    def healthy_gpus(self) -> tuple[int, ...]:
        """Return the indices of the GPUs that can hold work, ascending."""
        if self.down:
            return ()
        if not self.failed_gpus:
            return _up_to(self.gpus)
        return tuple(index for index in range(self.gpus) if index not in self.failed_gpus)

    @property
    def full_price(self) -> int:
        """What the node costs with all its GPUs in use, in millionths per hour."""
        return self.price + len(self.healthy_gpus()) * self.gpu_price

    def domain(self, level: str) -> str | None:
        """Return the path of this node's domain at a level (`node`: its own name), None where it has none."""
        return self.name if level == NODE_LEVEL else self.domains.get(level)

    @property
    def healthy(self) -> Mask:
        """The GPUs that can hold work."""
        return mask_of(self.healthy_gpus())

    def parts(self, level: str) -> tuple[Mask, ...]:
        """Return the islands, or the sockets, of the node."""
        return masks_of(self.islands if level == ISLAND_LEVEL else self.sockets, self.gpus)

    def blocks(self, inside: tuple[str, ...]) -> tuple[Mask, ...]:
        """Return the largest sets of GPUs that lie in one domain of each of some inner levels."""
        if not inside or not (self.islands or self.sockets):
            return blocks_of((), (), self.gpus, ())
        return blocks_of(self.islands, self.sockets, self.gpus, inside)

    @property
    def sets(self) -> tuple[Mask, ...]:
        """The node, its islands and its sockets as sets of GPUs, the smaller ones first."""
        return sets_of(self.islands, self.sockets, self.gpus)

    def domains_inside(self, level: str, gpus: Mask) -> tuple[str, ...]:
        """Return the paths of the domains of an inner level that a replica on some GPUs spans, none without GPUs.

        One that no single domain holds spans all those of the smallest set of the node that holds it (S1.1).
        """
        if not gpus:
            return ()
        masks = self.parts(level)
        around = next(each for each in self.sets if not gpus & ~each)
        here = [position for position, mask in enumerate(masks) if mask & around]
        return tuple(f"{self.name}/{level}-{position}" for position in here)

    def spanned(self, level: str, gpus: Mask) -> tuple[str, ...]:
        """Return the paths of the domains of any level that a replica on some GPUs of the node spans."""
        if level in INNER_LEVELS:
            return self.domains_inside(level, gpus)
        path = self.domain(level)
        return () if path is None else (path,)

    def around(self, level: str, gpus: Mask) -> str | None:
        """Return the one domain of a level that a replica on some GPUs is in, None for none or several."""
        paths = self.spanned(level, gpus)
        return paths[0] if len(paths) == 1 else None


@cache
def _up_to(count: int) -> tuple[int, ...]:
    return tuple(range(count))


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """What the nodes of a group share, kept so that a scenario can add more of them (S7.1)."""

    name: str
    template: Node
    names: tuple[str, ...]
    generated: bool


@dataclass(frozen=True)
class Cluster:
    """The domain tree: `levels` outermost first and ending in `node`; `nodes` in document order, names unique.

    Parameters
    ----------
    reconfiguration : what restarts where a GPU is cut anew (S5.4), None where the documents do not say, which means
        `gpu`, and that GPUs are cut for those alone who ask for MIG or for isolation of faults.
    positions : whether the starts of instances are as planned, or up to the tool that makes them.
    bandwidth : MB/s per GPU to peers in the same domain, per level that says it (S1.2).
    """

    name: str
    levels: tuple[str, ...]
    nodes: tuple[Node, ...]
    groups: tuple[NodeGroup, ...] = ()
    reconfiguration: Unit | None = None
    positions: Positions = "enforced"
    bandwidth: Mapping[str, int] = field(default_factory=dict)

    @property
    def unit(self) -> Unit:
        """What restarts where a GPU is cut anew."""
        return self.reconfiguration or "gpu"

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The accelerators that any of its nodes has, by name."""
        return tuple(sorted({node.accelerator for node in self.nodes if node.accelerator}))

    @cached_property
    def capacity(self) -> Mapping[str, int]:
        """What the nodes that are up have in all: `gpus` as a number, `cpu`, `memory` and resources by name."""
        total: Counter[str] = Counter()
        for node in self.nodes:
            if not node.down:
                total["gpus"] += len(node.healthy_gpus())
                total["cpu"] += node.cpu
                total["memory"] += node.memory
                for name, amount in node.resources.items():
                    total[name] += amount
        return total

    @cached_property
    def _homeless(self) -> dict[str, frozenset[str]]:
        return {}

    def homeless(self, level: str) -> frozenset[str]:
        """Return the names of the nodes that lie in no domain of a level."""
        if level not in self._homeless:
            self._homeless[level] = frozenset(node.name for node in self.nodes if node.domain(level) is None)
        return self._homeless[level]

    def members(self, level: str) -> Mapping[str, tuple[Node, ...]]:
        """Return the nodes of every domain of a level, keyed by domain path, in node order."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            path = node.domain(level)
            if path is not None:
                found.setdefault(path, []).append(node)
        return {path: tuple(nodes) for path, nodes in found.items()}
