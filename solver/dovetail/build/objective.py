"""The objective that a project picks (S5.1)."""

from __future__ import annotations

from typing import Final

from dovetail.build.cursor import Cursor, Log, cursor
from dovetail.documents import DocumentSet
from dovetail.spec import Objective
from dovetail.spec.objective import DEFAULT_TIERS, DISRUPTION_MEASURES

_BUILT_IN: Final = "default"


def read_objective(documents: DocumentSet, project: Cursor | None, log: Log) -> Objective:
    """Return the objective that the project names; the built-in one where it names none."""
    there = {document.name: document for document in documents.of_kind("Objective")}
    found = {name: _read(name, cursor(document, log)) for name, document in sorted(there.items())}
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


def _read(name: str, here: Cursor) -> Objective:
    bands = tuple(sorted(here.raw("bands", ()), reverse=True))
    if "tiers" not in here.value:
        return Objective(name=name, bands=bands)
    tiers: list[str] = []
    disruption: tuple[str, ...] = DISRUPTION_MEASURES
    for each in here.items("tiers"):
        tier = each.value if isinstance(each.value, str) else "disruption"
        if tier in tiers:
            each.fault("DT1607", f"the tier '{tier}' is given twice")
        elif tier not in DEFAULT_TIERS:
            each.fault("DT1900", f"the tier '{tier}' is not supported yet")
        if not isinstance(each.value, str):
            disruption = tuple(each.raw("disruption"))
        tiers.append(tier)
    if "admitted" not in tiers:
        message = "without the tier 'admitted' the best plan admits nothing"
        here["tiers"].fault("DT1608", message, "add admitted", of_key=True)
    return Objective(name, bands, tuple(tiers), disruption)
