"""The parameters of rules, read from documents; `READERS` has one line per rule of `dovetail.rules.TABLE`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final, Literal

from dovetail.build.cursor import Cursor
from dovetail.build.deadlines import refuse_throughput
from dovetail.build.parts import accepted_by, measured, profiled
from dovetail.build.requests import read_request
from dovetail.build.selectors import Known, read_workload_selector
from dovetail.quantities import parse_cpu, parse_date, parse_fraction, parse_gpus, parse_memory, parse_milli
from dovetail.rules import Rule
from dovetail.rules.admission import Admission
from dovetail.rules.cohorts import Amounts, requested_of
from dovetail.rules.colocate import Colocate
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.modes import MODES, Modes
from dovetail.rules.move import DAYS, Move, Window
from dovetail.rules.promises import Promises
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.reserve import Reserve
from dovetail.rules.separate import Separate
from dovetail.rules.sharing import Sharing
from dovetail.rules.spread import Spread
from dovetail.rules.survive import Survive
from dovetail.spec import Request
from dovetail.spec.cluster import GPU_LEVEL
from dovetail.spec.inside import INNER_LEVELS
from dovetail.spec.permits import Ratios
from dovetail.spec.workload import MILLI

_LIMITS: Final[Mapping[str, Callable[[object], int]]] = {
    "gpus": parse_gpus,
    "cpu": parse_cpu,
    "memory": partial(parse_memory, rounding="down"),
    "dominantShare": parse_fraction,
}


def _separate(here: Cursor, _: Known) -> Rule:
    return Separate(by=here.raw("by"), at=here.raw("at"), label=here.raw("label"), unless=here.raw("unless"))


def _colocate(here: Cursor, _: Known) -> Rule:
    return Colocate(by=here.raw("by"), at=here.raw("at"), label=here.raw("label"))


def _spread(here: Cursor, _: Known) -> Rule:
    return Spread(over=here.raw("over"), max_per_domain=here.raw("maxPerDomain"), max_skew=here.raw("maxSkew"))


def _exclusive(here: Cursor, _: Known) -> Rule:
    return Exclusive(at=here.raw("at"))


def _require(_: Cursor, __: Known) -> Rule:
    return Require()


def _forbid(_: Cursor, __: Known) -> Rule:
    return Forbid()


def _sharing(here: Cursor, _: Known) -> Rule:
    if "modes" in here.value:
        return Modes(tuple(mode for mode in MODES if mode in here.raw("modes")))
    if "oversubscribe" in here.value:
        given = here["oversubscribe"]
        return Promises(Ratios(*(_ratio(given.get(name)) for name in Ratios._fields)))
    return Sharing(max_clients=here.raw("maxClients"))


def _ratio(here: Cursor | None) -> int | None:
    return None if here is None else here.quantity(parse_milli, MILLI)


def _quota(here: Cursor, known: Known) -> Rule:
    guaranteed = _amounts(here.get("guaranteed"), known)
    return Quota(
        limits=_amounts(here.get("limit"), known),
        per=here.raw("per", "all"),
        label=here.raw("label"),
        guaranteed=guaranteed,
        borrowing=_within(here, "borrowing", guaranteed, known),
        lending=_within(here, "lending", guaranteed, known),
        lends=here.raw("lends", "idle"),
        cohort=here.raw("cohort", ""),
        for_cohort=here.raw("forCohort", ""),
    )


def _within(rule: Cursor, key: str, guaranteed: Amounts, known: Known) -> Amounts | None:
    """Return limits of borrowing or lending: None for `true`, none at all; for `false` nothing of what is guaranteed.

    A cohort also has what its groups lend it, so that `false` is nothing of anything there: no amounts.
    """
    here = rule.get(key)
    if here is None or here.value is True:
        return None
    if here.value is not False:
        return _amounts(here, known)
    return () if rule.raw("forCohort") else tuple((name, 0) for name, _ in guaranteed)


def _amounts(here: Cursor | None, known: Known) -> Amounts:
    """Return amounts by resource, sorted: given by name, or as a number of replicas of a request."""
    if here is None:
        return ()
    found = {key: value.quantity(_LIMITS[key], 0) for key, value in here.fields() if key in _LIMITS}
    found |= here.raw("resources", {})
    if "shape" in here.value:
        for name, amount in _of_shape(here["shape"], known).items():
            if name in found:
                here["shape"].fault("DT1606", f"'{name}' is given by name and by 'shape'", of_key=True)
            found[name] = amount
    return tuple(sorted(found.items()))


def _of_shape(here: Cursor, known: Known) -> dict[str, int]:
    request, _ = _request(here["request"], known)
    names = ("gpus", "cpu", "memory", *request.resources)
    asked = {name: requested_of(request, name) for name in names}
    return {name: here.raw("replicas", 1) * amount for name, amount in asked.items() if amount}


def _request(here: Cursor, known: Known, accelerators: Sequence[str] = ()) -> tuple[Request, tuple[str, ...]]:
    """Return a request that a rule speaks of, with what its MIG profile counts for (S2.9), and what it may be on."""
    request = read_request(here)
    if not request.mig:
        return measured(request, accelerators, here, known.cluster, known.models)
    accepted = accepted_by(accelerators, known.cluster, known.models)
    return profiled(request, here["mig"], accepted, known.models), tuple(accelerators)


def _reserve(here: Cursor, known: Known) -> Rule:
    own, accelerators, request = here.get("request"), _accelerators(here, known), Request()
    if own:
        request, accelerators = _request(own, known, accelerators)
    return Reserve(
        replicas=here.raw("replicas", 0),
        request=request,
        accelerators=accelerators,
        within=here.raw("within"),
        domains=here.raw("domains", 0),
        of=here.raw("of", ""),
    )


def _survive(here: Cursor, known: Known) -> Rule:
    may_evict = here.get("mayEvict")
    return Survive(
        of=here.raw("of"),
        domains=here.raw("domains", 1),
        may_evict=None if may_evict is None else read_workload_selector(may_evict, known),
    )


def _accelerators(here: Cursor, known: Known) -> tuple[str, ...]:
    refuse_throughput(here, "of a held place")
    places = (each if isinstance(each.value, str) else each["name"] for each in here.items("accelerators"))
    found = (known.models.resolve(place) for place in places)
    return tuple(sorted({name for name in found if name is not None}))


def _move(here: Cursor, _: Known) -> Rule:
    windows = tuple(
        Window(
            days=tuple(day for day in DAYS if day in each.raw("days", ())),
            first=_day(each.get("from")),
            last=_day(each.get("until")),
        )
        for each in here.items("onlyIn")
    )
    return Move(max_moves=here.raw("maxMoves"), never=here.raw("never", False), only_in=windows)


def _day(here: Cursor | None) -> dt.date | None:
    return None if here is None else here.quantity(parse_date, dt.date.min)


def _admission(here: Cursor, _: Known) -> Rule:
    return Admission(
        at_least=here.raw("atLeast", "all"),
        per=here.raw("per", "workload"),
        label=here.raw("label"),
        or_none=here.raw("orNone", False),
        count=here.raw("count", "replicas"),
    )


@dataclass(frozen=True, slots=True)
class Reader:
    """How a rule is read, and what it does with `match.nodes`.

    `level` is the parameter that names a level; `inside` are levels inside the node that it may name as well.
    `workloads` tells whether `match.workloads` has any effect, `selects` names a parameter that selects more of them.
    """

    read: Callable[[Cursor, Known], Rule]
    nodes: Literal["required", "honoured", "refused"]
    level: str | None = None
    inside: tuple[str, ...] = ()
    workloads: bool = True
    selects: str = ""


READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "separate": Reader(_separate, "honoured", "at", (GPU_LEVEL, *INNER_LEVELS)),
        "colocate": Reader(_colocate, "honoured", "at", INNER_LEVELS),
        "spread": Reader(_spread, "honoured", "over", INNER_LEVELS),
        "exclusive": Reader(_exclusive, "honoured", "at", (GPU_LEVEL, *INNER_LEVELS)),
        "require": Reader(_require, "required"),
        "forbid": Reader(_forbid, "required"),
        "sharing": Reader(_sharing, "honoured"),
        "quota": Reader(_quota, "refused"),
        "reserve": Reader(_reserve, "honoured", workloads=False),
        "survive": Reader(_survive, "refused", "of", selects="mayEvict"),
        "move": Reader(_move, "refused"),
        "admission": Reader(_admission, "refused"),
    }
)
