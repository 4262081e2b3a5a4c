"""Workloads by an attribute that rules group them by: tenant, namespace, a label, each alone, or all together."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.spec import Workload


def group_of(workload: Workload, by: str, label: str | None) -> str | None:
    """Return a workload's value of a grouping attribute, None where it lacks the label (then it is not a subject)."""
    if by == "label":
        return workload.labels.get(label or "")
    if by == "all":
        return "all"
    return {"tenant": workload.tenant, "namespace": workload.namespace, "workload": workload.id}[by]


def grouped(workloads: Iterable[Workload], by: str, label: str | None) -> dict[str, list[Workload]]:
    """Return workloads by their value of a grouping attribute, values sorted; those without one are left out."""
    found: dict[str, list[Workload]] = {}
    for workload in workloads:
        value = group_of(workload, by, label)
        if value is not None:
            found.setdefault(value, []).append(workload)
    return dict(sorted(found.items()))
