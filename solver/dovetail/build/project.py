"""All documents of a project together: what belongs once, and whose tenants are known (documents' reading rules)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dovetail.build.cursor import Cursor, Log
from dovetail.documents import Document, DocumentSet
from dovetail.placement import Obstacle, hardware_obstacle, make_of
from dovetail.spec import Cluster, Node, Objective, Role, Spec, Workload


def check_identity(documents: DocumentSet, log: Log) -> Document | None:
    """Return the one cluster; faults where there is none or another, and where a namespace has no meaning."""
    for document in documents.documents:
        if document.namespace is not None and document.kind not in ("Workload", "Scenario"):
            message = f"a namespace on a {document.kind}: only workloads are in namespaces"
            log.append(document.fault("DT1318", message, "metadata", "namespace", hint="leave it out", of_key=True))
    clusters = documents.of_kind("Cluster")
    if not clusters:
        _tell_no_cluster(documents, log)
        return None
    for other in clusters[1:]:
        at = clusters[0].position("metadata", "name")
        message = f"there is another Cluster at {at}, and a project has one"
        log.append(other.fault("DT1316", message, "metadata", "name"))
    return clusters[0]


def _tell_no_cluster(documents: DocumentSet, log: Log) -> None:
    """Add the fault that there is no Cluster: at the files that the Project names, if there is one."""
    message = "there is no document of kind Cluster"
    if documents.project is None:
        log.add("DT1316", message, hint="a project is planned from its own directory, or name that")
        return
    unmatched = [warning.message for warning in documents.warnings if warning.code == "DT1901"]
    path = ("spec", "documents") if "documents" in documents.project.spec else ("spec",)
    log.append(documents.project.fault("DT1316", message, *path, hint="; ".join(unmatched) or None, of_key=True))


def check_tenants(documents: Iterable[Document], tenants: tuple[str, ...], log: Log) -> None:
    """Refuse workloads of tenants that the project does not list."""
    for document in documents:
        tenant = document.spec.get("tenant") or document.namespace
        if tenant in tenants:
            continue
        hint = log.suggest(tenant, tenants) if tenant else "give it a tenant or a namespace"
        message = f"the project lists no tenant '{tenant}'" if tenant else "the workload belongs to no tenant"
        path = ("spec", "tenant") if "tenant" in document.spec else ("metadata", "namespace" if tenant else "name")
        log.append(document.fault("DT1313", message, *path, hint=hint))


def warn_of_unlisted_tenants(documents: Iterable[Document], log: Log) -> None:
    """Warn once where tenants are named and the project does not list them: a misspelt one is then a new one."""
    first = next((document for document in documents if "tenant" in document.spec), None)
    if first is not None:
        message = "the project does not list its tenants, so a misspelt one goes unseen"
        log.append(
            first.fault("DT1913", message, "spec", "tenant", hint="list them in Project.tenants", severity="warning")
        )


def warn_of_homeless_shares(
    documents: Iterable[Document], workloads: Iterable[Workload], cluster: Cluster, log: Log
) -> None:
    """Warn once where workloads ask for shares and no node can hold one (S3.5)."""
    if any(node.gpus and (node.mechanism == "fraction" or node.sharing is not None) for node in cluster.nodes):
        return
    sharing = [workload for workload in workloads if any(map(_only_fractions, workload.roles))]
    by_identity = {document.identity: document for document in documents}
    if sharing:
        others = f", nor of {len(sharing) - 1} more workloads" if len(sharing) > 1 else ""
        message = f"no node can hold the shares of '{sharing[0].id}'{others}"
        hint = "a node group says how its GPUs are shared, such as 'sharing: {mechanism: devicePlugin}'"
        place = by_identity[sharing[0].id]
        log.append(place.fault("DT1915", message, "metadata", "name", hint=hint, severity="warning"))


def warn_of_homeless_work(documents: Iterable[Document], spec: Spec, log: Log) -> None:
    """Warn of workloads with a role that no node could hold, were it empty and all of it sound (S3)."""
    nodes = {make_of(node): node for node in map(_sound, spec.cluster.nodes)}.values()
    by_identity = {document.identity: document for document in documents}
    for workload in spec.workloads:
        for role in workload.roles:
            obstacles = {hardware_obstacle(role, node, spec.accelerators) for node in nodes}
            if obstacles and not obstacles & {None, Obstacle.MECHANISM}:  # shares are told of by themselves
                nearest = max(filter(None, obstacles), key=list(Obstacle).index)
                what = f"the role '{role.name}' of '{workload.id}'" if role.name else f"a replica of '{workload.id}'"
                written = by_identity[workload.id]
                message = f"no node can hold {what}, not even an empty one: {nearest}"
                path = "request" if "request" in written.spec else "roles"
                log.append(written.fault("DT1929", message, "spec", path, of_key=True, severity="warning"))


def _sound(node: Node) -> Node:
    failed = node.down or node.failed_gpus
    return replace(node, down=False, failed_gpus=frozenset()) if failed else node


def warn_of_unheard_wishes(documents: Iterable[Document], objective: Objective, log: Log) -> None:
    """Warn once where workloads prefer a level and no tier of the objective looks at topology (S5.1)."""
    if "topology" in objective.tiers:
        return
    topologies = ((document, document.spec.get("topology")) for document in documents)
    wishing = [document for document, told in topologies if isinstance(told, dict) and "prefer" in told]
    if wishing:
        others = f", nor are those of {len(wishing) - 1} more workloads" if len(wishing) > 1 else ""
        message = f"the objective has no tier 'topology', so this wish is not heard{others}"
        hint = "add topology to the objective's 'tiers', or demand the level with 'within'"
        log.append(wishing[0].fault("DT1927", message, "spec", "topology", "prefer", hint=hint, severity="warning"))


def _only_fractions(role: Role) -> bool:
    return role.request.share is not None and role.request.share.modes == ("fraction",)


def tenants_of(project: Cursor | None) -> tuple[str, ...] | None:
    """Return the tenants that a project lists, None where it lists none."""
    listed = project.raw("tenants") if project else None
    return None if listed is None else tuple(listed)
