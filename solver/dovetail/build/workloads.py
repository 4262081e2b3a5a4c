"""Workloads with the defaults of their type resolved (S2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor, Log, cursor, frozen
from dovetail.build.inside import check_nests, with_inside
from dovetail.build.parts import with_parts
from dovetail.build.requests import check_share, read_observed, read_request
from dovetail.build.slo import Promised, leaves_open, with_slo
from dovetail.build.topology import Levels, read_topology, widths, with_floors
from dovetail.build.widths import with_worths
from dovetail.documents import Document
from dovetail.quantities import parse_duration
from dovetail.spec import Cluster, Request, Role, Toleration, Workload
from dovetail.spec.workload import WorkloadType


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What a type sets (S2.1); `least` is `minReplicas`, None for all."""

    atomic: bool
    least: int | None
    always_movable: bool
    communicates: bool = False


DEFAULTS: Final[Mapping[WorkloadType, _Defaults]] = {
    "gang": _Defaults(atomic=True, least=None, always_movable=False, communicates=True),
    "service": _Defaults(atomic=False, least=1, always_movable=True),
    "job": _Defaults(atomic=False, least=0, always_movable=True),
}


def read_workloads(
    documents: Iterable[Document], cluster: Cluster, promised: Promised, log: Log
) -> tuple[Workload, ...]:
    """Return the workloads of documents, sorted by id."""
    models = promised.models
    levels, places = cluster.levels, [(document, cursor(document, log)) for document in documents]
    read = [(read_workload(document, here, models, levels), here) for document, here in places]
    for workload, here in read:
        check_nests(here, workload, cluster)
    cut = [(with_worths(with_parts(workload, here, cluster, models), here), here) for workload, here in read]
    found = [with_slo(workload, here, cluster, promised) for workload, here in cut]
    return tuple(sorted(found, key=lambda workload: workload.id.encode()))


def read_workload(document: Document, here: Cursor, models: Models, levels: Levels) -> Workload:
    """Return the workload of a document; faults go to the log."""
    kind: WorkloadType = here.raw("type")
    atomic = here.raw("atomic", DEFAULTS[kind].atomic)
    roles = _roles(here, models)
    topology = read_topology(here, roles, levels)
    roles = with_floors(here, roles, topology, atomic)
    _check_gpu_fields(here, roles)
    _check_mix(here, atomic)
    _check_number(here, atomic)
    checkpoint = here.get("checkpointEvery")
    return Workload(
        id=document.identity,
        namespace=document.namespace or "",
        name=document.name,
        type=kind,
        roles=with_inside(here, roles, topology),
        tenant=here.raw("tenant") or document.namespace or "",
        labels=frozen(document.value["metadata"].get("labels", {})),
        priority=here.raw("priority", 0),
        atomic=atomic,
        min_replicas=_least(here, atomic, DEFAULTS[kind].least, roles),
        movable=here.raw("movable", DEFAULTS[kind].always_movable or checkpoint is not None),
        preemptible=here.raw("preemptible", False),
        mix=here.raw("mix", "none"),
        isolation=here.raw("isolation", "none"),
        tolerations=tuple(_toleration(each) for each in here.items("tolerations")),
        checkpoint_every=checkpoint.quantity(parse_duration, 0) if checkpoint else None,
        restart=here.amount("restart", parse_duration),
        communicates=here.raw("communicates", DEFAULTS[kind].communicates),
        topology=topology,
    )


def _roles(here: Cursor, models: Models) -> tuple[Role, ...]:
    """Return the roles; a workload without `roles` is one without a name."""
    shared = _accelerators(here, models)
    if "roles" not in here.value:
        return (_role(here, "", models, shared),)
    for key in ("replicas", "request", "value", "observed"):
        if key in here.value:
            here[key].fault("DT1110", f"'{key}' beside 'roles'", f"give each role its own '{key}'", of_key=True)
    found: dict[str, Role] = {}
    for each in here.items("roles"):
        name = each.raw("name")
        if name in found:
            each["name"].fault("DT1506", f"the role '{name}' is declared twice")
        found[name] = _role(each, name, models, shared)
    return tuple(found.values())


def _role(here: Cursor, name: str, models: Models, shared: tuple[str, ...]) -> Role:
    own, before = here.get("request"), here.log.size
    if own is None:
        here.fault("DT1102", "'request' is missing", "say what one replica asks for")
    request = read_request(own) if own else Request()
    if own and request == Request() and here.log.size == before:
        own.fault("DT1501", "a replica that asks for nothing", "give gpus, share, mig, cpu, memory or resources")
    accelerators = (_accelerators(here, models) if name else ()) or shared
    if own and request.share:
        check_share(own, request.share, [models.by_id[model].memory for model in accelerators])
    if own and not request.gpu_count:
        _check_without_gpu(here, name)
    most, least, step = widths(here)
    return Role(
        name=name,
        replicas=most,
        request=request,
        value=here.raw("value", request.gpu_milli or max(1, request.cpu)),
        accelerators=accelerators if request.gpu_count else (),
        observed=read_observed(here.get("observed"), request),
        least=least,
        step=step,
    )


def _accelerators(here: Cursor, models: Models) -> tuple[str, ...]:
    """Return the ids of the accelerators accepted here, sorted: their order means nothing."""
    found: set[str] = set()
    for each in here.items("accelerators"):
        place = each if isinstance(each.value, str) else each["name"]
        model = models.resolve(place)
        if model in found:
            place.fault("DT1511", f"the accelerator '{model}' is listed twice")
        if model:
            found.add(model)
    return tuple(sorted(found))


def _check_without_gpu(here: Cursor, name: str) -> None:
    """Refuse what has no effect on a replica without GPU."""
    for key in ("accelerators", "observed"):
        # What a workload without roles says of accelerators is judged once for the whole workload.
        if key in here.value and (name or key == "observed"):
            here[key].fault("DT1503", f"'{key}' on a replica without GPU", "leave it out", of_key=True)


def _check_gpu_fields(here: Cursor, roles: Iterable[Role]) -> None:
    """Refuse what speaks of GPUs where no role has one."""
    with_gpu = any(role.request.gpu_count for role in roles)
    for key in ("accelerators", "isolation"):
        if key in here.value and not with_gpu:
            here[key].fault("DT1503", f"'{key}' on a workload without GPU", "leave it out", of_key=True)


def _check_mix(here: Cursor, atomic: bool) -> None:
    if "mix" in here.value and not atomic:
        here["mix"].fault("DT1507", "'mix' on a workload that is not atomic, whose replicas run where they can")


def _check_number(here: Cursor, atomic: bool) -> None:
    """Refuse all or nothing of a service whose rate leaves open how many replicas are all (S2.8)."""
    if atomic and "atomic" in here.value and here.raw("type") == "service" and leaves_open(here):
        hint = "give 'replicas', or leave 'atomic' out"
        here["atomic"].fault("DT1547", "'atomic' beside a rate that leaves open how many replicas are all", hint)


def least_of_widths(roles: Sequence[Role], *, atomic: bool, default: int | None) -> int:
    """Return the fewest replicas that a workload with elastic roles is admitted with (S2.6).

    Parameters
    ----------
    default : what its type says of the least replicas.
    """
    replicas, floor = sum(role.replicas for role in roles), sum(role.least or 0 for role in roles)
    return max(floor, min(1 if atomic else default or 0, replicas))


def _least(here: Cursor, atomic: bool, default: int | None, roles: tuple[Role, ...]) -> int:
    """Return `minReplicas`, by default that of the type, all where atomic, what elastic roles say (S2.1, S2.6)."""
    replicas = sum(role.replicas for role in roles)
    place = here.get("minReplicas")
    if any(role.elastic for role in roles):
        if place is not None:
            message = "'minReplicas' beside replicas that say their least number themselves"
            place.fault("DT1526", message, "leave it out", of_key=True)
        return least_of_widths(roles, atomic=atomic, default=default)
    if place is None:
        return replicas if atomic or default is None else min(default, replicas)
    least = int(place.value)
    if leaves_open(here):
        return least
    if atomic and least != replicas:
        message = f"minReplicas is {least}, and an atomic workload needs all its {replicas} replicas"
        place.fault("DT1504", message, "leave it out, or set 'atomic: false'")
    elif least > replicas:
        place.fault("DT1505", f"minReplicas is {least}, and there are {replicas} replicas")
    return least


def _toleration(here: Cursor) -> Toleration:
    found = Toleration(
        key=here.raw("key", ""),
        operator=here.raw("operator", "Equal"),
        value=here.raw("value", ""),
        effect=here.raw("effect", ""),
    )
    if found.operator == "Equal" and not found.key:
        here.fault("DT1509", "a toleration without 'key' tolerates nothing", "add a key, or 'operator: Exists'")
    if found.operator == "Exists" and "value" in here.value:
        here["value"].fault("DT1509", "'value' with 'operator: Exists', which looks at the key alone", of_key=True)
    return found
