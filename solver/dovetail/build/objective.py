"""The objective that a project picks (S5.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor, Log, cursor
from dovetail.build.deadlines import refuse_throughput
from dovetail.build.partitions import check_profile
from dovetail.build.parts import accepted_by, measured
from dovetail.build.requests import read_request
from dovetail.documents import DocumentSet
from dovetail.spec import Cluster, Expected, Objective
from dovetail.spec.objective import DEFAULT_TIERS, DISRUPTION_MEASURES, OPTIONAL_TIERS

_BUILT_IN: Final = "default"


def read_objective(
    documents: DocumentSet, project: Cursor | None, cluster: Cluster, models: Models, log: Log
) -> Objective:
    """Return the objective that the project names; the built-in one where it names none."""
    there = {document.name: document for document in documents.of_kind("Objective")}
    found = {name: _read(name, cursor(document, log), cluster, models) for name, document in sorted(there.items())}
    named = project.get("objective") if project else None
    if named is None:
        for name in found:
            message = f"the objective '{name}' is not used: no project names it"
            log.append(there[name].fault("DT1916", message, "metadata", "name", severity="warning"))
        return Objective()
    if named.value in found:
        return found[named.value]
    if named.value != _BUILT_IN:
        named.refer("DT1315", "objective", {*found, _BUILT_IN})
    return Objective()


def _read(name: str, here: Cursor, cluster: Cluster, models: Models) -> Objective:
    bands = tuple(sorted(here.raw("bands", ()), reverse=True))
    mix = tuple(_expected(each, cluster, models) for each in here.items("futureMix"))
    if "tiers" not in here.value:
        # Whoever says what to expect wants the plan to leave room for it.
        tiers = (*DEFAULT_TIERS, *OPTIONAL_TIERS) if mix else DEFAULT_TIERS
        return Objective(name=name, bands=bands, tiers=tiers, future_mix=mix)
    listed, disruption = _tiers(here)
    if "admitted" not in listed:
        message = "without the tier 'admitted' the best plan admits nothing"
        here["tiers"].fault("DT1608", message, "add admitted", of_key=True)
    if mix and "fragmentation" not in listed:
        message = "'futureMix' without the tier 'fragmentation'"
        here["futureMix"].fault("DT1630", message, "add it to 'tiers'", of_key=True)
    return Objective(name, bands, listed, disruption, mix)


def _tiers(here: Cursor) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tiers, and the order of the measures of disruption."""
    tiers: list[str] = []
    disruption: tuple[str, ...] = DISRUPTION_MEASURES
    for each in here.items("tiers"):
        tier = each.value if isinstance(each.value, str) else "disruption"
        if tier in tiers:
            each.fault("DT1607", f"the tier '{tier}' is given twice")
        if not isinstance(each.value, str):
            disruption = tuple(each.raw("disruption"))
        tiers.append(tier)
    return tuple(tiers), disruption


def _expected(here: Cursor, cluster: Cluster, models: Models) -> Expected:
    """Return a request that is expected in the future."""
    place = here["request"]
    request = read_request(place)
    refuse_throughput(here, "of an expected request")
    named = [each if isinstance(each.value, str) else each["name"] for each in here.items("accelerators")]
    accelerators = tuple(sorted(filter(None, (models.resolve(each) for each in named))))
    for key in ("memory", "resources"):
        if key in place.value:
            message = f"'{key}' of an expected request: fragmentation is about GPUs and their node's CPU"
            place[key].fault("DT1631", message, "leave it out", of_key=True)
    if not request.gpu_count:
        place.fault("DT1503", "an expected request without GPU: it would find every idle GPU useless")
    if request.mig:
        check_profile(place["mig"], accepted_by(accelerators, cluster, models), models.held_back)
    request, accelerators = measured(request, accelerators, place, cluster, models)
    if request.share is not None and cluster.reconfiguration:
        request = replace(request, share=replace(request.share, modes=("fraction", "mig")))
    return Expected(request, accelerators, here.raw("weight"))
