"""Requests for part of a GPU: what a MIG profile counts for, and where shares may land (S2.2, S2.7, S2.9, S3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor
from dovetail.build.partitions import check_profile
from dovetail.quantities import format_milli, parse_milli
from dovetail.spec import Accelerator, Cluster, Request, Role, Workload
from dovetail.spec.cluster import SharedMode
from dovetail.spec.workload import MILLI, Pace, ShareMode


def with_parts(workload: Workload, here: Cursor, cluster: Cluster, models: Models) -> Workload:
    """Return a workload whose requests for part of a GPU say all that they mean; faults go to the log."""
    peak = _burstiness(workload, here)
    roles = []
    for role, own in zip(workload.roles, _cursors(here, workload), strict=True):
        if role.request.mig:
            role = _with_profile(role, own, cluster, models, communicates=workload.communicates)
        elif role.request.share is not None:
            request, accepted = measured(role.request, role.accelerators, own["request"], cluster, models)
            share = request.share
            assert share is not None
            share = replace(
                share,
                peak=_peak(share.compute, peak),
                modes=_modes(workload, here, cluster),
                barred=_barred(workload, here),
                elsewhere=tuple(pace._replace(peak=_peak(pace.compute, peak)) for pace in share.elsewhere),
            )
            role = replace(role, request=replace(request, share=share), accelerators=accepted)
        roles.append(role)
    return replace(workload, roles=tuple(roles))


def measured(
    request: Request, names: Sequence[str], here: Cursor, cluster: Cluster, models: Models
) -> tuple[Request, tuple[str, ...]]:
    """Return a request whose share says what it takes of each accelerator it may be on, and which these are (S2.2).

    Those of which one GPU is not enough for a share of a reference are left out.

    Parameters
    ----------
    names : the accelerators that are accepted, none where any will do.
    here : where the request stands.
    """
    share, place = request.share, here["share"].get("reference") if request.share else None
    reference = models.resolve(place) if place is not None else None
    accepted = accepted_by(names, cluster, models)
    if share is None or place is None or reference is None or not accepted:
        return request, tuple(names)
    speed = models.by_id[reference].throughput
    taken = {card.name: -(-share.compute * speed // card.throughput) for card in accepted}
    least = min(taken.values())
    able = {name: milli for name, milli in taken.items() if milli <= MILLI}
    if not able:
        fastest = min(taken, key=lambda name: (taken[name], name))
        message = f"{format_milli(share.compute)} of {reference} is {format_milli(least)} of {fastest}"
        place.fault("DT1546", f"{message}, more than a GPU", "list faster accelerators, or ask for whole GPUs")
    more = tuple(Pace(name, milli) for name, milli in sorted(able.items()) if milli > least)
    told = replace(request, share=replace(share, compute=min(MILLI, least), elsewhere=more))
    return told, tuple(names) if len(able) in (0, len(taken)) else tuple(sorted(able))


def _peak(compute: int, burst: int) -> int:
    """Return the peak of a share, 0 where that is no more than it always takes (S2.7)."""
    most = min(MILLI, -(-compute * burst // MILLI))
    return most if most > compute else 0


def _cursors(here: Cursor, workload: Workload) -> Sequence[Cursor]:
    """Return the place of each role; a workload without roles is its only one."""
    if "roles" not in here.value:
        return [here] * len(workload.roles)
    return list({each.raw("name"): each for each in here.items("roles")}.values())


def _burstiness(workload: Workload, here: Cursor) -> int:
    """Return the peak over the mean, in thousandths."""
    own = here.get("burstiness")
    if own is None:
        return MILLI
    if not any(role.request.share for role in workload.roles):
        own.fault("DT1503", "'burstiness' on a workload without shares", "leave it out", of_key=True)
    found = own.quantity(parse_milli, MILLI)
    if found < MILLI:
        own.fault("DT1533", "a peak below the mean", "burstiness is peak / mean, at least 1")
    return max(MILLI, found)


def _modes(workload: Workload, here: Cursor, cluster: Cluster) -> tuple[ShareMode, ...]:
    """Return what the shares of a workload may land on.

    GPUs are cut for shares that could do without where the cluster says what a change of layout disturbs, and not
    behind anybody's back.
    """
    if workload.isolation == "fault":
        if workload.communicates:
            message = (
                "isolation 'fault' of shares that communicate: only MIG gives it, and MIG does not let them talk"
            )
            here["isolation"].fault("DT1532", message, "ask for whole GPUs, or set 'communicates: false'")
        return ("mig",)
    return ("fraction", "mig") if cluster.reconfiguration and not workload.communicates else ("fraction",)


def _barred(workload: Workload, here: Cursor) -> tuple[SharedMode | ShareMode, ...]:
    """Return the modes of shared GPUs that the shares of a workload may not be in (S2.7).

    Time-slicing enforces no limit of memory, and keeps no latency; sharing by fractions limits memory, and lets
    clients take turns.
    """
    if "slo" in here.value and "p99" in here["slo"].value:
        return ("fraction", "time-slice")
    return ("time-slice",) if workload.isolation == "memory" else ()


def _with_profile(role: Role, own: Cursor, cluster: Cluster, models: Models, *, communicates: bool) -> Role:
    """Return a role that asks for a MIG profile with what the profile counts for."""
    place = own["request"]["mig"]
    if communicates:
        message = "a MIG instance for replicas that communicate: instances do not let them talk by GPU"
        place.fault("DT1531", message, "ask for whole GPUs, or set 'communicates: false'")
    request = profiled(role.request, place, accepted_by(role.accelerators, cluster, models), models)
    value = role.value if "value" in own.value else request.mig_milli
    return replace(role, request=request, value=value)


def accepted_by(names: Sequence[str], cluster: Cluster, models: Models) -> Sequence[Accelerator]:
    """Return the accelerators of some names; without any, all that the cluster has."""
    return [models.by_id[name] for name in (names or cluster.models)]


def profiled(request: Request, place: Cursor, accepted: Sequence[Accelerator], models: Models) -> Request:
    """Return a request for a MIG profile with what that counts for (S2.9); a fault where nothing accepted has it.

    Parameters
    ----------
    place : where the profile is named.
    accepted : the accelerators that an instance may be on; the one on which it counts for most decides.
    """
    check_profile(place, accepted, models.held_back)
    cut = [card for card in accepted if card.mig and request.mig in card.mig.by_name]
    return replace(request, mig_milli=max((_milli(card, request.mig) for card in cut), default=MILLI))


def _milli(card: Accelerator, name: str) -> int:
    """Return what a profile counts for on a product: the larger of its shares of compute and memory (S2.9)."""
    if card.mig is None:
        return 0
    profile = card.mig.by_name[name]
    return max(1, profile.milli, MILLI * profile.size // card.mig.axis)
