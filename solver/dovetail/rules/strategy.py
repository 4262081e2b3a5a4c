"""`mig-strategy`: nodes whose device plugin knows one kind of GPU only, MIG instances of one profile or whole ones.

No document names this rule: `strategy_of` makes one hard policy of all nodes with `migStrategy: single`, so that
models, parts and checks treat it like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from dovetail.linear import Linear
from dovetail.placement import View, profiles_for
from dovetail.rules.base import Guard, NodeTerms, Part, RuleDefaults, Violations
from dovetail.rules.guards import Plain
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Policy, Role, Spec, Workload
from dovetail.spec.cluster import NODE_LEVEL

NAME: Final = "mig-strategy"


@dataclass(frozen=True, slots=True)
class OneProfile(RuleDefaults):
    """Keep what has GPUs of a node of the strategy `single` to one kind of them: one MIG profile, or no MIG.

    The violation of a node is `max(0, k - 1)`, k the number of profiles in use on it, and one more where anything has
    GPUs, or shares, that are not cut.
    """

    kind: ClassVar[str] = "mig-strategy"
    unit: ClassVar[str] = "extra kinds of GPU on a node"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the number of kinds in use on each node, less one."""
        found = {}
        everybody = scope.spec.everything
        for domain in part.domains(NODE_LEVEL):
            node = scope.spec.cluster.by_name.get(domain.nodes[0]) if domain.nodes else None
            if node is None or node.mig_strategy != "single":
                continue
            kinds = [domain._replace(uncut=True), *(domain._replace(profile=name) for name in _profiles(node, scope))]
            counts = [part.requested(everybody, "gpus", each) for each in kinds]
            able = [count for count in counts if part.model.range_of(count)[1] > 0]
            if len(able) > 1:
                present = Linear(dict.fromkeys((part.model.at_least_one(c).variable for c in able), 1), -1)
                found[domain.path] = part.model.positive_part(present)
        return found

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the kinds in use on each node."""
        kinds: dict[str, set[str]] = {}
        for _, place in (*view.places.items(), *view.placeholders):
            if place.gpus and scope.spec.cluster.by_name[place.node].mig_strategy == "single":
                kinds.setdefault(place.node, set()).add(place.instance.partition("@")[0])
        return {node: len(found) - 1 for node, found in kinds.items() if len(found) > 1}

    def lifted(self, spec: Spec) -> Spec:
        """Return the Spec with nodes whose GPUs may be of several kinds."""
        cluster = spec.cluster
        groups = tuple(replace(group, template=_mixed(group.template)) for group in cluster.groups)
        return replace(spec, cluster=replace(cluster, nodes=tuple(map(_mixed, cluster.nodes)), groups=groups))

    def guard(self, scope: Scope) -> Guard | None:
        """Keep other kinds off a node that holds one; a share is taken for one on the least instance for it."""
        return _OneKind(scope)

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish no workloads: kinds follow from requests."""
        return None

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish nodes by their strategy."""
        return node.mig_strategy

    def node_terms(self, scope: Scope) -> NodeTerms:
        """Let a node have one profile, or none."""
        return NodeTerms(one_profile=True)


def _mixed(node: Node) -> Node:
    return node if node.mig_strategy == "mixed" else replace(node, mig_strategy="mixed")


def _profiles(node: Node, scope: Scope) -> tuple[str, ...]:
    card = scope.spec.accelerators.get(node.accelerator or "")
    return () if card is None or card.mig is None else tuple(profile.name for profile in card.mig.profiles)


@dataclass(slots=True)
class _OneKind(Plain):
    """Blocks a node for a kind while another one is there."""

    scope: Scope
    held: dict[str, Counter[str]] = field(default_factory=dict)

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where another kind is in use."""
        kind = self._kind(role, node)
        return kind is not None and bool(set(self.held.get(node.name, ())) - {kind})

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas by kind."""
        kind = self._kind(role, node)
        if kind is None:
            return
        held = self.held.setdefault(node.name, Counter())
        held[kind] += count
        if not held[kind]:
            del held[kind]

    def _kind(self, role: Role, node: Node) -> str | None:
        """Return the profile that a replica would have, empty for none; None where the node does not care."""
        if node.mig_strategy != "single" or not role.request.gpu_count:
            return None
        able = profiles_for(role.request, self.scope.spec.accelerators.get(node.accelerator or ""))
        return min(able, key=lambda profile: (profile.compute, profile.size, profile.name)).name if able else ""


def strategy_of(nodes: Iterable[Node]) -> Policy | None:
    """Return the hard policy that holds nodes to the strategy `single`, None where none has it."""
    if not any(node.mig_strategy == "single" for node in nodes):
        return None
    return Policy(NAME, OneProfile(), origin="nodes")
