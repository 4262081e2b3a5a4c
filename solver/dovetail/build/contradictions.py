"""Contradictory hard policies as faults, with the places of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.build.cursor import Log, cursor
from dovetail.build.policies import Source, chosen_policies
from dovetail.conflicts import Conflict, conflicts_of
from dovetail.documents import Document, DocumentSet
from dovetail.faults import Fault, Position, Severity
from dovetail.spec import Spec


def contradictions(documents: DocumentSet, spec: Spec) -> tuple[Fault, ...]:
    """Return the conflicts of a Spec's hard policies that arithmetic shows, in order of place.

    Policies that no plan can keep together are an error; one that no plan can keep, and a workload that policies
    never admit, are a warning.

    Parameters
    ----------
    spec : what the documents mean, with what runs today.
    """
    conflicts = conflicts_of(spec)
    if not conflicts:
        return ()
    log, quiet = Log(), Log()
    project = cursor(documents.project, quiet) if documents.project else None
    sources = chosen_policies(documents, project, quiet).applied
    for conflict in conflicts:
        _tell(conflict, sources, spec, documents, log)
    return (*log.errors, *log.warnings)


def _tell(conflict: Conflict, sources: Mapping[str, Source], spec: Spec, documents: DocumentSet, log: Log) -> None:
    """Add the fault of a conflict at the policy that narrows most; one that only demands admission comes last."""
    kinds = {policy.name: policy.rule.kind for policy in spec.policies}
    order = sorted(conflict.policies, key=lambda name: (name not in sources, kinds[name] == "admission", name))
    places = {name: _place(name, conflict, sources, documents) for name in order}
    first, *others = order
    named = [
        f"'{name}' ({document.key_position(*path)})" for name, (document, path) in places.items() if name in others
    ]
    # One policy alone contradicts nothing: the cluster is too small for it, which is for a search to prove (S6.4).
    contradiction = conflict.kind == "impossible" and len(order) > 1
    severity: Severity = "error" if contradiction else "warning"
    document, path = places[first]
    message = f"{_what(conflict, first, named)}: {conflict.why}"
    hint = _hint(conflict, documents)
    log.append(document.fault(conflict.code, message, *path, hint=hint, of_key=True, severity=severity))


def _place(
    name: str, conflict: Conflict, sources: Mapping[str, Source], documents: DocumentSet
) -> tuple[Document, tuple[str | int, ...]]:
    """Return where a policy has its rule; one that no document declares is made of what a workload demands."""
    if name not in sources:
        found = next(d for d in documents.of_kind("Workload") if d.identity == conflict.workloads[0])
        return found, ("spec", "topology")
    ((_, rule),) = sources[name].body["rule"].fields()
    return rule.document, rule.path


def _what(conflict: Conflict, first: str, others: Sequence[str]) -> str:
    joined = " and ".join(filter(None, (", ".join(others[:-1]), *others[-1:])))
    if conflict.kind == "never":
        return f"'{first}'{f' with {joined}' if others else ''} never lets {conflict.workloads[0]} run"
    if conflict.kind == "stuck":
        return f"'{first}' is not mended beside {joined}"
    if conflict.kind == "excused":
        return f"'{first}' is excused by what runs today, and never mended"
    return f"'{first}' cannot hold together with {joined}" if others else f"'{first}' cannot hold"


def _hint(conflict: Conflict, documents: DocumentSet) -> str:
    """Return what gets out of a conflict: it takes all of its policies, so giving up any one of them does."""
    if not conflict.workloads:
        return "hold less, or plan for more nodes"
    where = _written(conflict.workloads[0], documents)
    at = f" (written at {where})" if where is not None else ""
    if len(conflict.policies) > 1:
        return f"change, waive or drop one of them for {conflict.workloads[0]}{at}"
    return f"change or waive it for {conflict.workloads[0]}{at}"


def _written(workload: str, documents: DocumentSet) -> Position | None:
    found = (d for d in documents.of_kind("Workload") if d.identity == workload)
    return next((d.key_position("metadata", "name") for d in found), None)
