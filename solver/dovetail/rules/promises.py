"""`sharing` with `oversubscribe`: how much more than there is may be promised of nodes and GPUs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.placement.clients import equal_parts
from dovetail.rules.base import Part, RuleDefaults, Violations
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Policy, Spec, Workload, WorkloadSelector
from dovetail.spec.cluster import GPU_LEVEL, NODE_LEVEL
from dovetail.spec.permits import Ratios
from dovetail.spec.workload import MILLI


@dataclass(frozen=True, slots=True)
class Promises(RuleDefaults):
    """Promise no more of CPU, main memory and shared GPUs than some ratio of what there is (S2.7, S3.6).

    A hard policy lets as much be promised: a node has `ratio` times its CPU to give, a GPU that is shared by MPS or
    time-slicing `ratio` times its compute; of several the least counts. The violation of a node's CPU, of its memory,
    and of a GPU is max(0, ceil(1000 x requested / owned) - ratio), in thousandths, which a soft policy weighs.
    """

    kind: ClassVar[str] = "sharing"
    unit: ClassVar[str] = "thousandths promised too many"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    ratios: Ratios

    @property
    def lets_more(self) -> bool:
        """Let more be promised than there is."""
        return True

    def promises(self) -> Ratios:
        """Return the ratios that a hard policy lets be promised."""
        return self.ratios

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return how much too much is promised of each node and GPU of the part."""
        found: dict[str, Linear] = {}
        for domain in part.domains(NODE_LEVEL):
            node = scope.spec.cluster.by_name.get(domain.nodes[0]) if domain.nodes else None
            for name, owned, ratio in self._of(node, scope) if node is not None else ():
                used = part.requested(scope.workloads, name, domain)
                found |= _over(part, f"{domain.path} {name}", used, owned, ratio)
        shares = self.ratios.compute is not None and any(map(_shares, scope.workloads))
        for domain in part.domains(GPU_LEVEL) if shares else ():
            node = scope.spec.cluster.by_name.get(domain.nodes[0]) if domain.nodes else None
            if node is not None and equal_parts(node) and _matched(node, scope):
                used = part.requested(scope.workloads, "gpus", domain._replace(uncut=True))
                found |= _over(part, domain.path, used, MILLI, self.ratios.compute or MILLI)
        return found

    def check(self, view: View, scope: Scope) -> Violations:
        """Add up what is promised of each node and GPU."""
        used: dict[tuple[str, str], int] = {}
        for workload in scope.workloads:
            for replica in view.admitted(workload):
                place, request = view.places[replica], view.role(replica).request
                for name, amount in (("cpu", request.cpu), ("memory", request.memory)):
                    used[place.node, name] = used.get((place.node, name), 0) + amount
                if request.share is not None and not place.instance:
                    key = place.node, f"/{place.gpus[0]}"
                    asked = request.on(scope.spec.cluster.by_name[place.node].accelerator)
                    used[key] = used.get(key, 0) + asked.gpu_milli
        return {subject: over for subject, over in self._judged(used, scope) if over > 0}

    def _judged(self, used: Mapping[tuple[str, str], int], scope: Scope) -> Iterator[tuple[str, int]]:
        for (name, what), amount in sorted(used.items()):
            node = scope.spec.cluster.by_name[name]
            if what.startswith("/"):
                if self.ratios.compute is not None and equal_parts(node) and _matched(node, scope):
                    yield f"{name}{what}", amount - self.ratios.compute
            else:
                for resource, owned, ratio in self._of(node, scope):
                    if resource == what:
                        yield f"{name} {what}", -(-MILLI * amount // owned) - ratio

    def _of(self, node: Node, scope: Scope) -> Iterator[tuple[str, int, int]]:
        """Yield what of a matched node is limited: what it is, how much the node has of its own, and the ratio."""
        owned = node.owned
        for name, has, ratio in (("cpu", owned.cpu, self.ratios.cpu), ("memory", owned.memory, self.ratios.memory)):
            if ratio is not None and has and _matched(node, scope):
                yield name, has, ratio

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish no workloads: all amounts count alike."""
        return None

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish matched nodes from others, and what they have of their own."""
        return _matched(node, scope), node.owned

    def unsound(self, spec: Spec) -> str | None:
        """Refuse ratios below 1."""
        low = [name for name, ratio in self.ratios._asdict().items() if ratio is not None and ratio < MILLI]
        return f"less is promised of {low[0]} than there is; a ratio is at least 1" if low else None

    def unsound_beside(self, own: Policy, spec: Spec) -> str | None:
        """Refuse policies about some workloads only, and compute where no GPU is shared by equal parts."""
        if own.workloads != WorkloadSelector():
            return "what a node promises it promises to all: match nodes, and all workloads ({})"
        nodes = [node for node in spec.cluster.nodes if own.nodes is None or own.nodes.selects(node)]
        if self.ratios.compute is not None and not any(node.gpus and equal_parts(node) for node in nodes):
            return "'compute' is about GPUs shared by MPS or time-slicing, and no matched node group has any"
        return None

    def never_lifted(self, own: Policy) -> str | None:
        """Refuse waivers of a hard policy: what nodes promise they promise to all."""
        return "what a node promises it promises to all" if own.enforcement.kind == "hard" else None


def _matched(node: Node, scope: Scope) -> bool:
    return scope.nodes is None or node.name in scope.nodes


def _shares(workload: Workload) -> bool:
    """Tell whether any replica of a workload is a share."""
    return any(role.request.share for role in workload.roles)


def _over(part: Part, subject: str, used: Linear, owned: int, ratio: int) -> dict[str, Linear]:
    """Return the thousandths of what there is by which an amount is above a ratio, nothing where it never is."""
    high = -(-MILLI * part.model.range_of(used)[1] // owned) - ratio
    if high <= 0:
        return {}
    over = Linear.of(part.model.integer(0, high))
    part.model.require(over.scaled(owned).minus(used.scaled(MILLI)).plus(ratio * owned), lower=0)
    return {subject: over}
