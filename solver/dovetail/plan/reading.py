"""Reads a plan file: canonical or not, YAML or JSON, with all faults at their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import reduce
from itertools import pairwise
from typing import Any, Final

from dovetail.collector import collector_paused
from dovetail.documents import Document, load_text
from dovetail.documents.scalars import LONGEST_NUMBER
from dovetail.faults import FaultLog, Position
from dovetail.mig import parse_instance
from dovetail.placement import Layouts, Place, layout_of
from dovetail.plan.model import (
    AdmissionResult,
    BrokenPromise,
    Figure,
    Lifted,
    Outcome,
    Plan,
    PolicyResult,
    SecondOpinion,
    TierResult,
)
from dovetail.plan.plain import SUMMARY, gap_of
from dovetail.rules import Told
from dovetail.spec import Layout, Options, ReplicaId, Setting
from dovetail.spec.identity import IdentityError, parse_range

MOST_REPLICAS: Final = 2_000_000
"""Replicas a plan may place: a few short rows could otherwise stand for more than memory holds."""

_ROWS: Final = ("placements", "recovery", "held", "gpus")
_TOO_LARGE: Final = 10**LONGEST_NUMBER
_EXACT: Final = Context(prec=LONGEST_NUMBER)
"""Of arithmetic that rounds no number which a text can hold."""


def read(text: str, file: str) -> Plan:
    """Return the plan in a text.

    Parameters
    ----------
    text
        YAML, or JSON when `file` ends in `.json`.
    file
        The name shown in faults.

    Raises
    ------
    Refused
        With every fault of the text, of its schema, and of the plan as such (DT2xxx).
    """
    documents = load_text(text, file)
    if len(documents) != 1 or documents[0].kind != "Plan":
        log = FaultLog()
        kinds = ", ".join(document.kind for document in documents) or "nothing"
        log.add(
            "DT2001", f"a plan file holds one document of kind Plan; this one holds {kinds}", Position(file, 1, 1)
        )
        log.raise_if_errors()
    with collector_paused():
        return plan_of(documents[0])


def plan_of(document: Document) -> Plan:
    """Return the plan of a document of kind Plan that keeps to its schema; raise `Refused` as `read` does."""
    log = FaultLog()
    spec = document.spec
    _check_figures(document, log)
    _check_rates(document, log)
    log.raise_if_errors()
    opinion = spec.get("secondOpinion")
    rows = _Rows(document, log)
    plan = Plan(
        name=document.name,
        inputs=spec["inputs"],
        current=spec.get("current"),
        options=_options(spec.get("options", {})),
        outcome=_outcome(spec["outcome"]),
        tiers=_tiers(document, log),
        summary={key: _figure(spec["summary"][key]) for key in SUMMARY if key in spec["summary"]},
        gpus=_gpus(document, log),
        shared=_shared(document, log),
        placements=rows.read("spec", "placements"),
        recovery=rows.recovery(),
        admitted={key: _admission(row) for key, row in spec.get("admitted", {}).items()},
        promises={key: _promise(row) for key, row in spec.get("promises", {}).items()},
        policies={key: _policy(row) for key, row in spec.get("policies", {}).items()},
        held=rows.held(),
        second_opinion=None if opinion is None else _second_opinion(opinion),
        conflict=tuple(spec.get("conflict", ())),
        certificate=spec.get("certificate"),
    )
    log.raise_if_errors()
    return plan


def _check_figures(document: Document, log: FaultLog) -> None:
    """Add a fault for each number, outside the rows of places, that no figure could be and arithmetic fails on."""
    for key, section in document.spec.items():
        if key not in _ROWS:
            for at in _too_large(section, ("spec", key)):
                log.append(document.fault("DT2011", f"a figure has at most {LONGEST_NUMBER} digits", *at))


def _check_rates(document: Document, log: FaultLog) -> None:
    """Add a fault for each rate that is not a whole number of thousandths: none is told otherwise."""
    for section in ("admitted", "promises"):
        for key, row in document.spec.get(section, {}).items():
            for field in ("served", "rate"):
                amount = _thousandths(row.get(field, 0))
                if amount != int(amount):
                    message = "a rate has at most three digits after its point"
                    log.append(document.fault("DT2012", message, "spec", section, key, field))


def _thousandths(value: int | Decimal) -> Decimal:
    return Decimal(value).scaleb(3, _EXACT)


def _too_large(value: Any, at: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, int | Decimal):
        if abs(value) >= _TOO_LARGE:
            yield at
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _too_large(each, (*at, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _too_large(each, (*at, index))


def _options(row: Mapping[str, Any]) -> Options:
    moves = row.get("maxMoves")
    return Options(None if moves is None else int(moves), tuple(sorted(row.get("pins", ()))))


def _outcome(row: Mapping[str, Any]) -> Outcome:
    return Outcome(row["status"], row.get("stoppedBy"), row.get("fast", False), row.get("proof"))


def _tiers(document: Document, log: FaultLog) -> tuple[TierResult, ...]:
    found: dict[str, TierResult] = {}
    for index, row in enumerate(document.spec["tiers"]):
        tier = _tier(row)
        gap = gap_of(tier.value, tier.bound)
        if row["gap"] != gap:
            log.append(
                document.fault("DT2006", f"the gap of value and bound is {gap}", "spec", "tiers", index, "gap")
            )
        if tier.name in found:
            log.append(document.fault("DT2007", f"tier {tier.name} is given twice", "spec", "tiers", index, "name"))
        found[tier.name] = tier
    return tuple(found.values())


def _tier(row: Mapping[str, Any]) -> TierResult:
    bound = row["bound"]
    return TierResult(
        name=row["name"],
        value=int(row["value"]),
        bound=None if bound is None else int(bound),
        unit=row["unit"],
        sense=row.get("sense") or ("max" if row["name"].startswith(("admitted", "retained")) else "min"),
        proof=row.get("proof", "none" if bound is None else "solver"),
        given={key: int(value) for key, value in row.get("given", {}).items()},
        relaxed=tuple(row.get("relaxed", ())),
    )


def _figure(value: int | Decimal) -> Figure:
    return int(value) if value == int(value) else Decimal(value).normalize(_EXACT)


@dataclass(slots=True)
class _Rows:
    """Rows of replicas and their places, read within a limit of replicas for the whole plan."""

    document: Document
    log: FaultLog
    left: int = MOST_REPLICAS

    def read(self, *at: str) -> dict[ReplicaId, Place]:
        """Return the places of the replicas in the mapping at a path."""
        places: dict[ReplicaId, Place] = {}
        rows = reduce(lambda value, key: value.get(key, {}), at, self.document.value)
        for key, row in rows.items():
            gpus = tuple(map(int, row.get("gpus", ())))
            if len(gpus) > 1 and any(left >= right for left, right in pairwise(gpus)):
                self.log.append(self.document.fault("DT2005", "GPU indices must ascend", *at, key, "gpus"))
            self._place(places, (*at, key), Place(row["node"], gpus, self._instance(row, *at, key)))
        return places

    def _place(self, places: dict[ReplicaId, Place], at: tuple[str, ...], place: Place) -> None:
        key = at[-1]
        try:
            found = parse_range(key)
        except IdentityError as error:
            self.log.append(self.document.fault("DT2003", str(error), *at, of_key=True))
            return
        if found.size > self.left:
            message = f"{key} takes the plan above {MOST_REPLICAS} replicas"
            self.log.append(self.document.fault("DT2004", message, *at, of_key=True))
            return
        before = len(places)
        for ordinal in range(found.first, found.last + 1):
            places.setdefault(ReplicaId(found.workload, found.role, ordinal), place)
        self.left -= len(places) - before
        if len(places) < before + found.size:
            message = f"{key} places a replica that another row places"
            self.log.append(self.document.fault("DT2002", message, *at, of_key=True))

    def recovery(self) -> dict[str, dict[str, dict[ReplicaId, Place]]]:
        """Return the places where lost replicas restart, by policy and failure case."""
        told = self.document.spec.get("recovery", {})
        return {
            policy: {case: self.read("spec", "recovery", policy, case) for case in cases}
            for policy, cases in told.items()
        }

    def held(self) -> dict[str, Told]:
        """Return what policies hold free: places, and domains that nothing touches."""
        told = self.document.spec.get("held", {})
        return {
            policy: Told(
                tuple(self._held(row, policy, index) for index, row in enumerate(rows) if "node" in row),
                tuple(row["domain"] for row in rows if "domain" in row),
            )
            for policy, rows in told.items()
        }

    def _held(self, row: Mapping[str, Any], policy: str, index: int) -> Place:
        gpus = tuple(map(int, row.get("gpus", ())))
        return Place(row["node"], gpus, self._instance(row, "spec", "held", policy, index))

    def _instance(self, row: Mapping[str, Any], *at: str | int) -> str:
        text: str = row.get("instance", "")
        if text and ("@" not in text or len(row.get("gpus", ())) != 1):
            message = "an instance is on one GPU, and is written profile@start"
            self.log.append(self.document.fault("DT2009", message, *at, "instance"))
            return ""
        return text


def _gpus(document: Document, log: FaultLog) -> Layouts:
    found: dict[str, Layout] = {}
    for key, row in document.spec.get("gpus", {}).items():
        if row["mode"] != "mig":
            continue
        if "clients" in row:
            message = "clients share a GPU in another mode; one that is cut has instances"
            log.append(document.fault("DT2010", message, "spec", "gpus", key, "clients"))
        texts: list[str] = list(row.get("instances", ()))
        if any("@" not in text for text in texts):
            message = "an instance is written profile@start"
            log.append(document.fault("DT2009", message, "spec", "gpus", key, "instances"))
            continue
        found[key] = layout_of(map(parse_instance, texts))
        if len(found[key]) < len(texts):
            message = "an instance is listed twice"
            log.append(document.fault("DT2009", message, "spec", "gpus", key, "instances"))
    return found


def _shared(document: Document, log: FaultLog) -> dict[str, Setting]:
    """Return the modes of the GPUs that are shared by equal parts."""
    found = {}
    for key, row in document.spec.get("gpus", {}).items():
        if row["mode"] == "mig":
            continue
        if "clients" not in row or "instances" in row:
            message = f"a GPU in mode {row['mode']} has 'clients', and no instances"
            log.append(document.fault("DT2010", message, "spec", "gpus", key))
            continue
        found[key] = Setting(row["mode"], int(row["clients"]))
    return found


def _admission(row: Mapping[str, Any]) -> AdmissionResult:
    return AdmissionResult(
        row["state"],
        int(row.get("replicas", 0)),
        int(row.get("of", 0)),
        tuple(row.get("reasons", ())),
        *_rates(row),
    )


def _promise(row: Mapping[str, Any]) -> BrokenPromise:
    return BrokenPromise(int(row["missing"]), *_rates(row))


def _rates(row: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return what is served of a rate, and the rate, in thousandths."""
    served, rate = (int(_thousandths(row[key])) if key in row else None for key in ("served", "rate"))
    return served, rate


def _policy(row: Mapping[str, Any]) -> PolicyResult:
    return PolicyResult(
        enforcement=row["enforcement"],
        result=row["result"],
        violation=int(row["violation"]),
        unit=row.get("unit", ""),
        subjects={key: int(value) for key, value in row.get("subjects", {}).items()},
        excused=int(row.get("excused", 0)),
        waivers={
            name: Lifted(told["owner"], told["until"], tuple(told["workloads"]))
            for name, told in row.get("waivers", {}).items()
        },
    )


def _second_opinion(row: Mapping[str, Any]) -> SecondOpinion:
    tiers = {key: None if value is None else int(value) for key, value in row["tiers"].items()}
    return SecondOpinion(row["engine"], row["agrees"], tiers, row["conclusive"])
