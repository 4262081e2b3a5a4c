"""The tables of services: what one replica sustains where (S2.8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor, frozen
from dovetail.build.partitions import check_profile
from dovetail.build.placement import MOST_REPLICAS
from dovetail.mig import Profile
from dovetail.placement.instances import holds
from dovetail.quantities import parse_duration, parse_milli
from dovetail.spec import Request, Role, Slo, Workload
from dovetail.spec.slo import host_of

_LARGEST: Final = 2**60
TURNS: Final = "time-slice"
"""What a table names after an accelerator where its rate holds while clients take turns."""


class _Entry(NamedTuple):
    """What a table says of one host; `profile` is empty for a GPU that is not cut.

    With `turns` the rate is what a replica sustains there even where clients take turns.
    """

    model: str
    profile: str
    rate: int
    turns: bool = False


def with_rate(workload: Workload, own: Cursor, models: Models, slo: Slo) -> Workload:
    """Return a service that promises a rate; its replicas run where that is known, and only there.

    Parameters
    ----------
    own : where its service level stands.
    slo : what is known of that so far.
    """
    if workload.type != "service" or len(workload.roles) != 1 or not workload.roles[0].request.gpu_count:
        own["rate"].fault("DT1540", "a rate is promised by services of one role with GPUs", of_key=True)
        return workload
    p99, role = own.get("p99"), workload.roles[0]
    before = own.log.size
    entries = [entry for entry in _entries(own, role.request, models) if _accepts(role, entry)]
    slo = replace(
        slo,
        rate=own["rate"].quantity(parse_milli, 0),
        rates=frozen(dict(_rates(entries, role.request, models))),
        p99=None if p99 is None else p99.quantity(parse_duration, 0),
        listed=True,
    )
    if own.log.size > before:
        return workload
    if not slo.rates:
        own["performance"].fault("DT1541", "nothing that its replicas may be on is listed here", of_key=True)
    elif not any(slo.rates.values()):
        own["performance"].fault("DT1541", "all rates here that its replicas may have are 0", of_key=True)
    turns = tuple(sorted(entry.model for entry in entries if entry.turns))
    return _bound(_taking_turns(replace(workload, slo=slo), turns, own), own)


def _taking_turns(workload: Workload, turns: tuple[str, ...], own: Cursor) -> Workload:
    """Return a service that may take turns on some accelerators, as its table says what it sustains then (S2.7)."""
    role, share = workload.roles[0], workload.roles[0].request.share
    if share is None or not turns:
        return workload
    if workload.isolation == "memory":
        message = "a GPU whose clients take turns, and 'isolation: memory' rules that out"
        own["performance"].fault("DT1542", message, "name the accelerator alone", of_key=True)
    return replace(workload, roles=(replace(role, request=replace(role.request, share=replace(share, turns=turns))),))


def _accepts(role: Role, entry: _Entry) -> bool:
    return not role.accelerators or entry.model in role.accelerators


def _entries(own: Cursor, request: Request, models: Models) -> Iterator[_Entry]:
    """Yield the entries of the table of a service; what its replicas can never be on is a fault."""
    seen: set[tuple[str, str]] = set()
    for each in own.items("performance"):
        on, before = each["on"], own.log.size
        name, _, profile = on.value.partition("/")
        turns, profile = profile == TURNS, "" if profile == TURNS else profile
        model = models.resolve(replace(on, value=name))
        if model is None:
            continue
        if profile:
            check_profile(replace(on, value=profile), [models.by_id[model]], models.held_back)
        if own.log.size == before:
            _check_use(on, request, model, profile)
            if turns and (request.share is None or "fraction" not in request.share.modes):
                on.fault("DT1542", "a GPU whose clients take turns, and no replica shares one", f"name {model} alone")
        if (model, profile) in seen:
            hint = f"a rate that holds while clients take turns ({model}/{TURNS}) holds in every mode"
            on.fault(
                "DT1511", f"the accelerator '{host_of(model, profile)}' is listed twice", "" if profile else hint
            )
        seen.add((model, profile))
        if own.log.size == before:
            yield _Entry(model, profile, each["rate"].quantity(parse_milli, 0), turns)


def _check_use(on: Cursor, request: Request, model: str, profile: str) -> None:
    """Refuse an entry of a kind that the replicas of a service are never on."""
    share = request.share
    if profile and request.gpus:
        hint = f"name {model} alone, or ask for a share, with 'isolation: fault'"
        on.fault("DT1542", "a MIG instance, and a replica takes whole GPUs", hint)
    elif profile and share is not None and "mig" not in share.modes:
        hint = "set 'isolation: fault', or 'reconfiguration' of the cluster"
        on.fault("DT1542", "a MIG instance, and GPUs are not cut for the shares of this service", hint)
    elif not profile and request.mig:
        on.fault("DT1542", "a whole GPU, and a replica is on an instance", f"name {model}/{request.mig}")
    elif not profile and share is not None and set(share.modes) == {"mig"}:
        hint = f"name instances, such as {model}/1g.10gb"
        on.fault("DT1542", "a GPU that is not cut, and the shares of this service are on MIG instances alone", hint)


def _rates(entries: list[_Entry], request: Request, models: Models) -> Iterator[tuple[str, int]]:
    """Yield hosts with their rates: what is listed, and instances that contain what is, at the largest such rate."""
    for entry in entries:
        if not entry.profile:
            yield entry.model, entry.rate
    for model in dict.fromkeys(entry.model for entry in entries if entry.profile):
        card = models.by_id[model]
        for profile in card.mig.profiles if card.mig else ():
            if holds(profile, request, card.memory, model):
                own = [e.rate for e in entries if e.model == model and _inside(e.profile, profile, card.mig.by_name)]  # type: ignore[union-attr]
                if own:
                    yield host_of(model, profile.name), max(own)


def _inside(name: str, profile: Profile, by_name: Mapping[str, Profile]) -> bool:
    """Tell whether an instance of a profile has all that one of a named profile has."""
    if not name:
        return False
    least = by_name[name]
    return (
        least.compute <= profile.compute
        and least.milli <= profile.milli
        and least.memory <= profile.memory
        and all(amount <= profile.engines.get(kind, 0) for kind, amount in least.engines.items())
    )


def _bound(workload: Workload, own: Cursor) -> Workload:
    """Return a workload that runs where it has a rate only, of as many replicas as the slowest of these needs."""
    role, slo = workload.roles[0], workload.slo
    if slo is None or not slo.rates:
        return workload
    role = replace(role, accelerators=tuple(sorted({host.partition("/")[0] for host in slo.rates})))
    if (share := role.request.share) is not None:
        able = {"/" in host for host in slo.rates}
        modes = tuple(mode for mode in share.modes if (mode == "mig") in able)
        share = replace(share, modes=modes, rated=tuple(slo.rates.items()))
        role = replace(role, request=replace(role.request, share=share))
    slowest = min((rate for rate in slo.rates.values() if rate), default=0)
    if slo.open and slowest:
        fewest = max(workload.min_replicas, slo.floors.replicas)
        before = own.log.size
        role = replace(role, replicas=max(_needed(slo.rate, slowest, own), fewest))
        if own.log.size == before:
            _check_size(role, slo, own)
    return replace(workload, roles=(role,), min_replicas=min(workload.min_replicas, role.replicas))


def _needed(rate: int, slowest: int, own: Cursor) -> int:
    """Return how many replicas a rate needs, at most as many as a workload may have."""
    replicas = -(-rate // slowest)
    if replicas > MOST_REPLICAS:
        message = f"this rate needs {replicas:,} replicas, and a workload has at most {MOST_REPLICAS:,}"
        own["rate"].fault("DT1106", message, "rates are requests per second, of the service and of one replica")
    return min(replicas, MOST_REPLICAS)


def _check_size(role: Role, slo: Slo, own: Cursor) -> None:
    """Refuse rates and values whose products are beyond what is counted exactly."""
    if role.value * role.replicas**2 * max([slo.rate, *slo.rates.values()]) > _LARGEST:
        message = "the rate and the value of this service are too large to be multiplied exactly"
        own["rate"].fault("DT1106", message, "count requests in thousands, or give a smaller 'value'")
