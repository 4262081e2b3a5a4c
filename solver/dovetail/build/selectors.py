"""Selectors of workloads and nodes, names resolved (S4.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor, frozen
from dovetail.build.domains import find_domain, paths_by_name
from dovetail.build.names import spelt_out
from dovetail.spec import Cluster, NodeSelector, Requirement, Workload, WorkloadSelector


@dataclass(frozen=True)
class Known:
    """What selectors may name. `tenants` is None where the project does not list them."""

    cluster: Cluster
    models: Models
    workloads: Mapping[str, Workload]
    tenants: tuple[str, ...] | None = None
    classes: Collection[str] = ()

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
    for each in here.items("sloClasses"):
        each.refer("DT1319", "service class", known.classes)
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
        accelerators=_resolved(known.models.resolve(each) for each in here.items("accelerators")),
        slo_classes=_sorted(here, "sloClasses"),
    )


def _sorted(here: Cursor, key: str) -> tuple[str, ...]:
    return tuple(sorted(here.raw(key, ())))


def _priorities(here: Cursor) -> tuple[int | None, int | None]:
    place = here.get("priority")
    if place is None:
        return None, None
    low, high = place.raw("min"), place.raw("max")
    if low is not None and high is not None and low > high:
        hint = f"did you mean min: {high} and max: {low}?"
        place["min"].fault("DT1609", f"no priority is at least {low} and at most {high}", hint)
    return low, high


def _requirements(here: Cursor) -> tuple[Requirement, ...]:
    found = []
    for each in here.items("matchExpressions"):
        operator = each.raw("operator")
        if operator in ("Exists", "DoesNotExist") and "values" in each.value:
            message = f"'values' with 'operator: {operator}', which looks at the key alone"
            each["values"].fault("DT1610", message, "leave 'values' out, or write In or NotIn", of_key=True)
        elif operator in ("Gt", "Lt") and not _is_one_integer(each.raw("values")):
            each["values"].fault("DT1612", f"'operator: {operator}' compares with one integer", _INTEGER_HINT)
        else:
            found.append(Requirement(each.raw("key"), operator, _sorted(each, "values")))
    return tuple(sorted(found, key=lambda r: (r.key, r.operator, r.values)))


_INTEGER_HINT: Final = 'write one integer in quotes, such as values: ["8"]'


def _is_one_integer(values: Sequence[str]) -> bool:
    return len(values) == 1 and values[0].isascii() and values[0].isdigit() and len(values[0]) <= 18


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
