"""Contradictory hard policies as faults, with the places of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.build.cursor import Cursor, Log, cursor
from dovetail.build.policies import Source, chosen_policies
from dovetail.conflicts import Conflict, conflicts_of
from dovetail.documents import DocumentSet
from dovetail.faults import Fault, Position, Severity
from dovetail.spec import Spec


def contradictions(documents: DocumentSet, spec: Spec) -> tuple[Fault, ...]:
    """Return the conflicts of a Spec's hard policies that arithmetic shows, in order of place.

    What no plan can keep is an error; a workload that policies never admit is a warning.

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
    first, *others = sorted(
        conflict.policies, key=lambda name: (name not in sources, kinds[name] == "admission", name)
    )
    message = f"{_what(conflict, first, [_named(name, sources) for name in others])}: {conflict.why}"
    hint = _hint(conflict, documents)
    severity: Severity = "error" if conflict.kind == "impossible" else "warning"
    if first not in sources:
        log.add(conflict.code, message, hint=hint, severity=severity)
        return
    place = _place(sources[first])
    log.append(place.document.fault(conflict.code, message, *place.path, hint=hint, of_key=True, severity=severity))


def _what(conflict: Conflict, first: str, others: Sequence[str]) -> str:
    joined = " and ".join(filter(None, (", ".join(others[:-1]), *others[-1:])))
    if conflict.kind == "never":
        return f"'{first}'{f' with {joined}' if others else ''} never lets {conflict.workloads[0]} run"
    return f"'{first}' cannot hold together with {joined}" if others else f"'{first}' cannot hold"


def _place(source: Source) -> Cursor:
    ((_, rule),) = source.body["rule"].fields()
    return rule


def _named(name: str, sources: Mapping[str, Source]) -> str:
    if name not in sources:
        return f"'{name}'"
    place = _place(sources[name])
    return f"'{name}' ({place.document.key_position(*place.path)})"


def _hint(conflict: Conflict, documents: DocumentSet) -> str:
    """Return what gets out of a conflict: it takes all of its policies, so giving up any one of them does."""
    where = _written(conflict.workloads[0], documents)
    at = f" (written at {where})" if where is not None else ""
    if len(conflict.policies) > 1:
        return f"change, waive or drop one of them for {conflict.workloads[0]}{at}"
    return f"change or waive it for {conflict.workloads[0]}{at}"


def _written(workload: str, documents: DocumentSet) -> Position | None:
    found = (d for d in documents.of_kind("Workload") if d.identity == workload)
    return next((d.key_position("metadata", "name") for d in found), None)
