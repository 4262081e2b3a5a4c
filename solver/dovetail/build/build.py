"""The one way from documents to a Spec."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dovetail.build.accelerators import Models, read_accelerators
from dovetail.build.cluster import read_cluster
from dovetail.build.cursor import Cursor, Log, cursor
from dovetail.build.objective import read_objective
from dovetail.build.placement import read_current
from dovetail.build.policies import Source, check_beside, chosen_policies, read_policies, warn_of_unweighed
from dovetail.build.project import (
    check_identity,
    check_tenants,
    tenants_of,
    warn_of_homeless_shares,
    warn_of_homeless_work,
    warn_of_unheard_wishes,
    warn_of_unlisted_tenants,
)
from dovetail.build.selectors import Known
from dovetail.build.slo import Promised, read_classes
from dovetail.build.waivers import read_waivers, warn_of_ends
from dovetail.build.workloads import read_workloads
from dovetail.collector import collector_paused
from dovetail.documents import Document, DocumentSet
from dovetail.faults import Fault
from dovetail.rules import policy_of, strategy_of
from dovetail.rules.strategy import NAME as STRATEGY
from dovetail.rules.topology import NAME as TOPOLOGY
from dovetail.spec import Current, Spec


@dataclass(frozen=True, slots=True)
class Built:
    """A Spec, and what is odd about the documents without being wrong."""

    spec: Spec
    warnings: tuple[Fault, ...] = ()


def build(documents: DocumentSet, *, current: Current | Document | None = None, as_of: dt.date) -> Spec:
    """Return what the documents of a project mean.

    Parameters
    ----------
    current : what runs today, or the Placement document that tells it; it takes the place of one of these documents
        (S6.5).
    as_of : the date that waivers are judged at (S4.3).

    Raises
    ------
    Refused
        With all faults of all documents.
    """
    return assemble(documents, current=current, as_of=as_of).spec


def assemble(
    documents: DocumentSet,
    *,
    current: Current | Document | None = None,
    as_of: dt.date,
    only: Collection[str] | None = None,
) -> Built:
    """Return what `build` returns, with its warnings; those of reading the documents are not among them.

    Parameters
    ----------
    only : names of the policies that take part, None for all.
    """
    with collector_paused():
        return _assembled(documents, current, as_of, only)


def _assembled(
    documents: DocumentSet, current: Current | Document | None, as_of: dt.date, only: Collection[str] | None
) -> Built:
    log = Log()
    place = check_identity(documents, log)
    if place is None:
        log.raise_if_errors()
        raise AssertionError("a missing cluster is a fault")
    spec = _spec(documents, place, log, as_of, only)
    told = _stated(documents, spec, log)
    if current is not None:
        given = read_current(current, log, spec) if isinstance(current, Document) else current
        told = replace(given, from_outside=True)
    log.raise_if_errors()
    spec = replace(spec, current=told, as_of=as_of)
    warn_of_ends(spec.waivers, documents.of_kind("Waiver"), as_of, log)
    return Built(spec, log.warnings)


def _spec(documents: DocumentSet, place: Document, log: Log, as_of: dt.date, only: Collection[str] | None) -> Spec:
    """Return the Spec without date and current state."""
    project = cursor(documents.project, log) if documents.project else None
    models = read_accelerators(documents.of_kind("Accelerator"), log)
    cluster = read_cluster(place, cursor(place, log), models)
    promised = Promised(read_classes(project), as_of, models)
    workloads = read_workloads(documents.of_kind("Workload"), cluster, promised, log)
    bare = Spec(
        name=documents.project.name if documents.project else cluster.name,
        cluster=cluster,
        accelerators=models.chosen(node.accelerator for node in cluster.nodes),
        workloads=workloads,
        objective=read_objective(documents, project, cluster, models, log),
    )
    _check_workloads(documents, bare, tenants_of(project), log)
    sources = chosen_policies(documents, project, log).applied
    if only is not None:
        sources = {name: source for name, source in sources.items() if name in only}
    return _with_policies(documents, project, bare, models, sources, log)


def _check_workloads(documents: DocumentSet, spec: Spec, tenants: tuple[str, ...] | None, log: Log) -> None:
    written = documents.of_kind("Workload")
    if tenants is None:
        warn_of_unlisted_tenants(written, log)
    else:
        check_tenants(written, tenants, log)
    warn_of_homeless_shares(written, spec.workloads, spec.cluster, log)
    warn_of_homeless_work(written, spec, log)
    warn_of_unheard_wishes(written, spec.objective, log)


_TAKEN: Final = {TOPOLOGY: "what workloads demand of topology", STRATEGY: "what 'migStrategy' demands of nodes"}


def _with_policies(
    documents: DocumentSet,
    project: Cursor | None,
    bare: Spec,
    models: Models,
    sources: Mapping[str, Source],
    log: Log,
) -> Spec:
    known = Known(bare.cluster, models, bare.by_id, tenants_of(project), tuple(read_classes(project)))
    for name, meaning in _TAKEN.items():
        if name in sources:
            message = f"the name '{name}' stands for {meaning}"
            sources[name].body.fault("DT1650", message, "give the policy another name")
    policies = read_policies(sources.values(), bare, known)
    waivers = read_waivers(documents.of_kind("Waiver"), {policy.name: policy for policy in policies}, known, log)
    chosen = replace(bare, policies=policies, waivers=waivers)
    check_beside(sources, chosen)
    warn_of_unweighed(sources, chosen)
    demanded = [each for each in (policy_of(bare.workloads), strategy_of(bare.cluster.nodes)) if each is not None]
    every = sorted((*policies, *demanded), key=lambda policy: policy.name)
    return replace(bare, policies=tuple(every), waivers=waivers)


def _stated(documents: DocumentSet, spec: Spec, log: Log) -> Current:
    """Return the current state that the documents tell, an empty one where they tell none."""
    found = documents.of_kind("Placement")
    for other in found[1:]:
        at = found[0].position("metadata", "name")
        message = f"there is another Placement at {at}, and what runs today is told once"
        log.append(other.fault("DT1704", message, "metadata", "name"))
    return read_current(found[0], log, spec) if found else Current()


def declares_current(documents: DocumentSet) -> bool:
    """Tell whether the documents say what runs today, so that a base plan need not (S6.5)."""
    return bool(documents.of_kind("Placement"))
