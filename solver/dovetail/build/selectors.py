"""Selectors of workloads and nodes: names resolved, and a warning where nothing is selected (S4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor, frozen
from dovetail.build.domains import find_domain, paths_by_name
from dovetail.build.names import spelt_out
from dovetail.spec import Cluster, Node, NodeSelector, Requirement, Workload, WorkloadSelector


@dataclass(frozen=True)
class Known:
    """What selectors may name. `tenants` is None where the project does not list them."""

    cluster: Cluster
    models: Models
    workloads: Mapping[str, Workload]
    tenants: tuple[str, ...] | None = None

    @cached_property
    def domains(self) -> Mapping[str, Sequence[str]]:
        """Domain paths by each name they go by."""
        distinct = {id(node.domains): node.domains for node in self.cluster.nodes}
        return paths_by_name(distinct.values())

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Names of node groups."""
        return tuple(group.name for group in self.cluster.groups)


def read_workload_selector(here: Cursor | None, known: Known) -> WorkloadSelector:
    """Return a selector of workloads; one that is left out selects all."""
    if here is None:
        return WorkloadSelector()
    for each in here.items("names"):
        each.refer("DT1312", "workload", known.workloads)
    if known.tenants is not None:
        for each in here.items("tenants"):
            each.refer("DT1313", "tenant", known.tenants)
    low, high = _priorities(here)
    return WorkloadSelector(
        match_labels=frozen(here.raw("matchLabels", {})),
        match_expressions=_requirements(here),
        tenants=_sorted(here, "tenants"),
        namespaces=_sorted(here, "namespaces"),
        names=_sorted(here, "names"),
        types=_sorted(here, "types"),
        priority_min=low,
        priority_max=high,
    )


def _sorted(here: Cursor, key: str) -> tuple[str, ...]:
    return tuple(sorted(here.raw(key, ())))


def _priorities(here: Cursor) -> tuple[int | None, int | None]:
    place = here.get("priority")
    if place is None:
        return None, None
    low, high = place.raw("min"), place.raw("max")
    if low is not None and high is not None and low > high:
        place["min"].fault("DT1609", f"no priority is at least {low} and at most {high}")
    return low, high


def _requirements(here: Cursor) -> tuple[Requirement, ...]:
    found = []
    for each in here.items("matchExpressions"):
        operator = each.raw("operator")
        if operator in ("Exists", "DoesNotExist") and "values" in each.value:
            message = f"'values' with 'operator: {operator}', which looks at the key alone"
            each["values"].fault("DT1610", message, of_key=True)
        found.append(Requirement(each.raw("key"), operator, _sorted(each, "values")))
    return tuple(sorted(found, key=lambda r: (r.key, r.operator, r.values)))


def read_node_selector(here: Cursor, known: Known) -> NodeSelector:
    """Return a selector of nodes, with hostlists spelt out and aliases and domains resolved."""
    for each in here.items("groups"):
        each.refer("DT1311", "node group", known.groups)
    return NodeSelector(
        match_labels=frozen(here.raw("matchLabels", {})),
        match_expressions=_requirements(here),
        groups=_sorted(here, "groups"),
        accelerators=_resolved(known.models.resolve(each) for each in here.items("accelerators")),
        names=_resolved(name for each in here.items("names") for name in _nodes(each, known.cluster)),
        domains=_resolved(find_domain(each, known.domains) for each in here.items("domains")),
    )


def _resolved(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name is not None}))


def _nodes(here: Cursor, cluster: Cluster) -> list[str]:
    nodes = cluster.by_name
    names = spelt_out(here, len(nodes), f"the cluster has ({len(nodes):,})")
    unknown = [name for name in names if name not in nodes]
    if unknown:
        others = f" (nor {len(unknown) - 1} more that are named here)" if len(unknown) > 1 else ""
        here.fault("DT1308", f"there is no node '{unknown[0]}'{others}", here.log.suggest(unknown[0], nodes))
    return names


def warn_if_no_workload(place: Cursor, selector: WorkloadSelector, known: Known) -> None:
    """Warn at a selector that selects no workload, with what was probably meant."""
    workloads = known.workloads.values()
    if not workloads or not place.log.may_select(len(workloads)):
        return
    if not any(selector.selects(workload) for workload in workloads):
        place.warn("DT1911", "this selects no workload", _meant(place, selector, workloads), of_key=True)


def _meant(place: Cursor, selector: WorkloadSelector, workloads: Iterable[Workload]) -> str | None:
    there: list[tuple[Iterable[str], set[str]]] = [
        (selector.tenants, {w.tenant for w in workloads}),
        (selector.namespaces, {w.namespace for w in workloads}),
        (selector.types, {w.type for w in workloads}),
    ]
    return _first_hint(place, there) or _label_hint(place, selector.match_labels, [w.labels for w in workloads])


def warn_if_no_node(place: Cursor, selector: NodeSelector, known: Known) -> None:
    """Warn at a selector that selects no node, with what was probably meant."""
    nodes: Sequence[Node] = known.cluster.nodes
    if not nodes or not place.log.may_select(len(nodes)):
        return
    if not any(selector.selects(node) for node in nodes):
        labels = {id(node.labels): node.labels for node in nodes}.values()
        hint = _label_hint(place, selector.match_labels, list(labels))
        place.warn("DT1912", "this selects no node", hint, of_key=True)


def _first_hint(place: Cursor, pairs: Iterable[tuple[Iterable[str], set[str]]]) -> str | None:
    wrong = ((name, there) for names, there in pairs for name in names if name not in there)
    return next((hint for name, there in wrong if (hint := place.log.suggest(name, there))), None)


def _label_hint(place: Cursor, wanted: Mapping[str, str], labels: Sequence[Mapping[str, str]]) -> str | None:
    keys = {key for each in labels for key in each}
    values = ((key, value, {each[key] for each in labels if key in each}) for key, value in wanted.items())
    return _first_hint(place, [([key], keys) for key in wanted]) or _first_hint(
        place, [([value], there) for key, value, there in values if there]
    )
