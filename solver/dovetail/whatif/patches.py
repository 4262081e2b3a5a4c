"""The kinds of patch: typed changes to a project (S7.1); `TABLE` is the one place that lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from dovetail.build.cluster import MOST_NODES
from dovetail.build.workloads import DEFAULTS, least_of_widths
from dovetail.documents import READ_KINDS, Document, DocumentSet
from dovetail.quantities import QuantityError, parse_money
from dovetail.rules import without_policy
from dovetail.spec import Cluster, Node, NodeGroup, Role, Spec, Workload
from dovetail.whatif.base import CLUSTER, Patch, Subject
from dovetail.whatif.domains import new_homes, new_names, nodes_of
from dovetail.whatif.recut import Repartition
from dovetail.whatif.spot import SetDocument, Spot, Unfit, unknown


@dataclass(frozen=True, slots=True)
class Set(Patch):
    """Adds a document, or replaces the one of the same kind and identity."""

    document: Document

    def __str__(self) -> str:
        return f"{self.document.kind} {self.document.identity} set"

    @property
    def subject(self) -> Subject:
        """What is replaced."""
        kind = self.document.kind
        return CLUSTER if kind == "Cluster" else (kind, self.document.identity)

    def redeclared(self, documents: DocumentSet) -> DocumentSet:
        """Return the documents with this one among them, in canonical order."""
        key = _canonical(self.document)
        others = [document for document in documents.documents if _canonical(document) != key]
        return replace(documents, documents=tuple(sorted([*others, self.document], key=_canonical)))


def _canonical(document: Document) -> tuple[int, str, str]:
    return READ_KINDS.index(document.kind), document.namespace or "", document.name


@dataclass(frozen=True, slots=True)
class Add(Patch):
    """Adds nodes to a group: healthy ones, as its template says, without the overrides of single nodes."""

    group: str
    nodes: int

    def __str__(self) -> str:
        return f"{self.nodes:,} more {'node' if self.nodes == 1 else 'nodes'} in {self.group}"

    def applied(self, spec: Spec) -> Spec:
        """Return the Spec with the nodes right after those that the group has."""
        cluster = spec.cluster
        group = _group(cluster, self.group)
        if len(cluster.nodes) + self.nodes > MOST_NODES:
            raise Unfit("DT1805", f"{self.nodes:,} more nodes make more than {MOST_NODES:,} in all", "nodes")
        return replace(spec, cluster=_grown(cluster, group, self.nodes))


def _group(cluster: Cluster, name: str) -> NodeGroup:
    group = next((each for each in cluster.groups if each.name == name), None)
    if group is None:
        raise unknown("DT1804", "node group", name, [each.name for each in cluster.groups], "group")
    return group


def _grown(cluster: Cluster, group: NodeGroup, number: int) -> Cluster:
    names = new_names(cluster, group, number)
    homes = new_homes(cluster, group, number)
    new = [replace(group.template, name=name, domains=at) for name, at in zip(names, homes, strict=True)]
    end = max(index for index, node in enumerate(cluster.nodes) if node.group == group.name) + 1
    grown = replace(group, names=(*group.names, *names))
    return replace(
        cluster,
        nodes=(*cluster.nodes[:end], *new, *cluster.nodes[end:]),
        groups=tuple(grown if each is group else each for each in cluster.groups),
    )


@dataclass(frozen=True, slots=True)
class Fail(Patch):
    """A domain fails: its nodes are down, and what runs there has lost its place."""

    level: str
    domain: str

    def __str__(self) -> str:
        return f"{self.level} {self.domain} fails"

    def applied(self, spec: Spec) -> Spec:
        """Return the Spec with the nodes of the domain down."""
        return _with_nodes(spec, nodes_of(spec.cluster, self.level, self.domain), lambda n: replace(n, down=True))


@dataclass(frozen=True, slots=True)
class Cordon(Patch):
    """The nodes of a domain take nothing new; what runs there may stay (S3.7)."""

    level: str
    domain: str

    def __str__(self) -> str:
        return f"{self.level} {self.domain} cordoned"

    def applied(self, spec: Spec) -> Spec:
        """Return the Spec with the nodes of the domain cordoned."""
        names = nodes_of(spec.cluster, self.level, self.domain)
        return _with_nodes(spec, names, lambda node: replace(node, cordoned=True))


def _with_nodes(spec: Spec, names: frozenset[str], change: Callable[[Node], Node]) -> Spec:
    nodes = tuple(change(node) if node.name in names else node for node in spec.cluster.nodes)
    return replace(spec, cluster=replace(spec.cluster, nodes=nodes))


@dataclass(frozen=True, slots=True)
class Price(Patch):
    """Changes what the nodes of a group cost; a price that is not given stays."""

    group: str
    prices: Mapping[str, Any]

    def __str__(self) -> str:
        words = {"perHour": "per node and hour", "perGpuHour": "per GPU and hour"}
        return (
            f"{self.group} at {', '.join(f'{self.prices[key]} {words[key]}' for key in words if key in self.prices)}"
        )

    def applied(self, spec: Spec) -> Spec:
        """Return the Spec with the prices, nodes that later patches add included."""
        cluster = spec.cluster
        group = _group(cluster, self.group)
        fields = {"perHour": "price", "perGpuHour": "gpu_price"}
        new: dict[str, Any] = {fields[key]: _money(key, value) for key, value in self.prices.items()}
        changed = replace(group, template=replace(group.template, **new))
        groups = tuple(changed if each is group else each for each in cluster.groups)
        priced = replace(spec, cluster=replace(cluster, groups=groups))
        return _with_nodes(priced, frozenset(group.names), lambda node: replace(node, **new))


def _money(key: str, value: Any) -> int:
    try:
        return parse_money(value)
    except QuantityError as error:
        raise Unfit(error.code, error.message, key, hint=error.hint) from None


@dataclass(frozen=True, slots=True)
class Scale(Patch):
    """Changes how many replicas a workload, or one role of it, has.

    Parameters
    ----------
    least : `minReplicas` where the workload's document says it, known beside the documents alone.
    """

    workload: str
    replicas: int
    role: str = ""
    least: int | None = None

    def __str__(self) -> str:
        name = f"{self.workload}.{self.role}" if self.role else self.workload
        return f"workload {name} with {self.replicas:,} {'replica' if self.replicas == 1 else 'replicas'}"

    @property
    def subject(self) -> Subject:
        """The workload."""
        return ("Workload", self.workload)

    def beside(self, documents: DocumentSet) -> Scale:
        """Return the patch with what the workload's document asks for as its least replicas."""
        found = (each for each in documents.of_kind("Workload") if each.identity == self.workload)
        least = next((each.spec.get("minReplicas") for each in found), None)
        return self if least is None else replace(self, least=int(least))

    def applied(self, spec: Spec) -> Spec:
        """Return the Spec with the workload at its new size."""
        scaled = _scaled(_workload(spec, self.workload), self)
        return replace(spec, workloads=tuple(scaled if w.id == scaled.id else w for w in spec.workloads))

    def settled(self, spec: Spec) -> None:
        """Refuse roles that make unlike numbers of the groups that they share (S2.5)."""
        workload = spec.by_id[self.workload]
        for group in workload.topology.groups if workload.topology else ():
            numbers = group.numbers({role.name: role.replicas for role in workload.roles})
            if len(numbers) > 1:
                told = " and ".join(map(str, numbers))
                hint = "scale the other roles as well, to as many groups of each"
                raise Unfit("DT1816", f"the replicas of the roles make {told} groups", "replicas", hint=hint)


def _workload(spec: Spec, name: str) -> Workload:
    if name not in spec.declared:
        raise unknown("DT1806", "workload", name, spec.declared, "workload")
    return spec.declared[name]


def _scaled(workload: Workload, patch: Scale) -> Workload:
    if patch.role not in workload.by_role:
        raise _no_role(workload, patch.role)
    scaled = _role_of(workload, workload.by_role[patch.role], patch.replicas)
    roles = tuple(scaled if role.name == patch.role else role for role in workload.roles)
    if workload.elastic:
        least = least_of_widths(roles, atomic=workload.atomic, default=DEFAULTS[workload.type].least)
        return replace(workload, roles=roles, min_replicas=least)
    total = sum(role.replicas for role in roles)
    slo = None if workload.slo is None else replace(workload.slo, open=False)  # it asks for replicas now
    return replace(workload, roles=roles, min_replicas=_least(workload, total, patch.least), slo=slo)


def _role_of(workload: Workload, role: Role, replicas: int) -> Role:
    """Return a role at a new size, refusing one that makes no whole groups or steps (S2.5, S2.6)."""
    for group in workload.topology.groups if workload.topology else ():
        size = group.sizes.get(role.name, 1)
        if replicas % size:
            hint = f"make it a multiple of {size}"
            raise Unfit(
                "DT1816", f"{replicas} replicas are no whole number of groups of {size}", "replicas", hint=hint
            )
    nests = workload.topology.nests if workload.topology else ()
    nest = next((each for each in nests if role.name in each.group.sizes), None)
    floor = None if nest is None else nest.floor(role.name, replicas, workload.atomic)
    if floor is None:
        floor = replicas if role.least == role.replicas else role.least  # all of it stays all of it
    least = None if floor is None else min(floor, replicas)
    if least is not None and (replicas - least) % role.step:
        message = f"from {least} replicas on, steps of {role.step} do not reach {replicas}"
        raise Unfit("DT1816", message, "replicas")
    widths = (replicas - (least or 0)) // role.step + 1
    if role.worths and (least != role.least or widths > len(role.worths)):
        hint = f"from {role.least} to {role.replicas}"
        raise Unfit("DT1816", f"nothing tells what {replicas} replicas are worth", "replicas", hint=hint)
    return replace(role, replicas=replicas, least=least, worths=role.worths[:widths])


def _no_role(workload: Workload, role: str) -> Unfit:
    names = [each.name for each in workload.roles if each.name]
    if role and names:
        return unknown("DT1807", "role", role, names, "role")
    if role:
        return Unfit("DT1807", f"'{workload.id}' has no roles", "role", hint="leave 'role' out", of_key=True)
    message = f"'{workload.id}' has roles, and none is named"
    return Unfit("DT1807", message, "workload", hint=f"name one of {', '.join(names)}")


def _least(workload: Workload, total: int, asked: int | None) -> int:
    """Return `minReplicas` at a new size: as many as were asked for, else the type's default, the size at most."""
    least = DEFAULTS[workload.type].least if asked is None else asked
    return total if workload.atomic or least is None else min(least, total)


@dataclass(frozen=True, slots=True)
class Drop(Patch):
    """Takes a workload or a policy away; a dropped policy takes its waivers along."""

    workload: str | None = None
    policy: str | None = None

    def __str__(self) -> str:
        what = f"workload {self.workload}" if self.policy is None else f"policy {self.policy}"
        return f"{what} dropped"

    @property
    def subject(self) -> Subject:
        """The workload or the policy."""
        return ("Policy", self.policy) if self.policy is not None else ("Workload", self.workload or "")

    def applied(self, spec: Spec) -> Spec:
        """Return the Spec without it."""
        if self.policy is not None:
            return _without_policy(spec, self.policy)
        gone = _workload(spec, self.workload or "")
        return replace(spec, workloads=tuple(workload for workload in spec.workloads if workload is not gone))


def _without_policy(spec: Spec, name: str) -> Spec:
    known = [policy.name for policy in spec.policies]
    if name not in known:
        raise unknown("DT1808", "policy", name, known, "policy")
    return without_policy(spec, name)


Value = Mapping[str, Any]


def _set(value: Value, spot: Spot) -> Patch:
    assert spot.document is not None, "only documents set documents"
    return Set(SetDocument(spot.document, spot.path, dict(value)))


TABLE: Final[Mapping[str, Callable[[Value, Spot], Patch]]] = MappingProxyType(
    {
        "set": _set,
        "add": lambda value, _: Add(**value),
        "fail": lambda value, _: Fail(*_only(value)),
        "cordon": lambda value, _: Cordon(*_only(value)),
        "scale": lambda value, _: Scale(**value),
        "drop": lambda value, _: Drop(**value),
        "repartition": Repartition,
        "price": lambda value, _: Price(value["group"], {key: each for key, each in value.items() if key != "group"}),
    }
)
"""How each kind of patch is read from the value that a scenario gives it, which follows the schema."""


def _only(value: Value) -> tuple[str, str]:
    ((level, domain),) = value.items()
    return level, domain
