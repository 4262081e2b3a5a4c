"""Waivers (S4.3)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

from dovetail.build.cursor import Cursor, Log, cursor
from dovetail.build.hints import warn_if_no_workload
from dovetail.build.selectors import Known, read_workload_selector
from dovetail.documents import Document
from dovetail.quantities import parse_date
from dovetail.spec import Policy, Waiver, WorkloadSelector


def read_waivers(
    documents: Iterable[Document], policies: Mapping[str, Policy], known: Known, log: Log
) -> tuple[Waiver, ...]:
    """Return the waivers of documents, sorted by name; whether one has expired is not judged here."""
    found = [_read(document, policies, known, log) for document in documents]
    return tuple(sorted(found, key=lambda waiver: waiver.name))


def _read(document: Document, policies: Mapping[str, Policy], known: Known, log: Log) -> Waiver:
    here = cursor(document, log)
    policy = here["policy"].refer("DT1314", "policy that applies", policies)
    place = here["match"]["workloads"]
    workloads = read_workload_selector(place, known)
    chosen = None if policy is None else policies[policy]
    if chosen is not None and (problem := chosen.rule.never_lifted(chosen)):
        message = f"a waiver has no effect on the policy '{chosen.name}': {problem}"
        hint = "delete the waiver, or change the policy"
        here["policy"].fault("DT1613", message, hint)
    elif not warn_if_no_workload(place, workloads, known) and chosen is not None:
        _warn_if_nothing_is_lifted(place, workloads, chosen, known)
    return Waiver(
        name=document.name,
        policy=here.raw("policy"),
        workloads=workloads,
        reason=here.raw("reason"),
        owner=here.raw("owner"),
        expires=here["expires"].quantity(parse_date, dt.date.min),
    )


def _warn_if_nothing_is_lifted(place: Cursor, selector: WorkloadSelector, policy: Policy, known: Known) -> None:
    """Warn at a waiver that selects workloads, none of which its policy binds."""
    workloads = known.workloads.values()
    if not workloads or not place.log.may_select(2 * len(workloads)):
        return
    if not any(selector.selects(w) and policy.workloads.selects(w) for w in workloads):
        message = f"the policy '{policy.name}' binds none of the workloads that this selects"
        place.warn("DT1918", message, "delete the waiver, or select workloads of the policy", of_key=True)


def warn_of_ends(waivers: Iterable[Waiver], documents: Iterable[Document], as_of: dt.date, log: Log) -> None:
    """Warn of waivers that are over, and of those in their last days (S4.3).

    In these there is time to renew them or to mend what they excuse.
    """
    places = {document.name: cursor(document, log) for document in documents}
    for waiver in waivers:
        if waiver.state(as_of) == "expiring":
            left = (waiver.expires - as_of).days
            when = {0: "today", 1: "tomorrow"}.get(left, f"in {left} days")
            message = f"the waiver '{waiver.name}' of '{waiver.policy}' holds for the last time {when}"
            hint = f"{waiver.owner} renews it, or mends what it excuses; from then on a run ends with 4"
            places[waiver.name]["expires"].warn("DT1919", message, hint)
        elif waiver.state(as_of) == "expired":
            message = f"the waiver '{waiver.name}' of '{waiver.policy}' is over"
            places[waiver.name]["expires"].warn("DT1925", message, f"{waiver.owner} renews or deletes it")
