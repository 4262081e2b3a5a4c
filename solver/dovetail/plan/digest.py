"""The digest of a Spec's meaning (S6.2): equal meanings give equal digests, however the documents are written.

It is made of two parts: what the documents mean, and what runs today where no document says that. A plan tells the
digest of the second part, so that the documents alone show whether they still mean what they meant.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache
from typing import Any, Final, cast

from dovetail.mig import Geometry
from dovetail.spec import Current, Policy, Spec, Waiver

_ORDERED: Final = frozenset({"levels", "tiers", "disruption", "phases"})
"""Fields whose order has a meaning; every other collection is compared as a set."""

_ENCODE: Final = json.JSONEncoder(sort_keys=True).encode


def digest(spec: Spec) -> str:
    """Return `sha256:...` over everything that a plan for a Spec depends on."""
    return combined(documents_digest(spec), outside_digest(spec))


def combined(documents: str, current: str | None) -> str:
    """Return the digest of a Spec from its two parts; `current` is None where the documents say all."""
    return _sha256({"documents": documents} if current is None else {"documents": documents, "current": current})


def outside_digest(spec: Spec) -> str | None:
    """Return the digest of what runs today where that came from outside the documents, else None."""
    return state_digest(spec.current) if spec.current.from_outside else None


def state_digest(current: Current) -> str:
    """Return the digest of what runs today, wherever that is known from."""
    return _sha256(_canonical(replace(current, from_outside=False)))


def documents_digest(spec: Spec) -> str:
    """Return the digest of what the documents say, with the limits of the command line.

    Names that only people read (of the project, the objective, a policy's pack) and places in files are left out,
    and so is every field at its default: a later version that knows more fields gives the same digest. Waivers
    enter with whether they are active on the Spec's date, so a plan goes stale when a waiver ends and not daily;
    rules that depend on the date enter with what it means to them.
    """
    return _sha256(_meaning(spec))


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def _meaning(spec: Spec) -> dict[str, Any]:
    used = {node.accelerator for node in spec.cluster.nodes}
    return {
        "levels": list(spec.cluster.levels),
        "nodes": _unordered(map(_canonical, spec.cluster.nodes)),
        "cards": {name: card.memory for name, card in spec.accelerators.items() if name in used},
        **_cutting(spec, used),
        **_throughputs(spec, used),
        "workloads": _unordered(map(_canonical, spec.workloads)),
        "policies": _unordered(_policy(policy, spec.as_of) for policy in spec.policies),
        "waivers": _unordered(_waiver(spec, waiver) for waiver in spec.waivers),
        "objective": {key: value for key, value in _fields(spec.objective).items() if key != "name"},
        "current": _canonical(Current() if spec.current.from_outside else spec.current),
        "phases": list(spec.phases),
    }


def _cutting(spec: Spec, used: set[str | None]) -> dict[str, Any]:
    """Return what MIG adds, nothing where by the documents no GPU is cut or could be."""
    cluster = spec.cluster
    found: dict[str, Any] = {}
    if cluster.reconfiguration is not None:
        found["reconfiguration"] = cluster.reconfiguration
    if cluster.positions != "enforced":
        found["positions"] = cluster.positions
    told = spec.current.gpus and not spec.current.from_outside
    if spec.uses_mig or told or any(node.mig_layout for node in cluster.nodes):
        cards = {name: card.mig for name, card in spec.accelerators.items() if name in used and card.mig}
        found["partitions"] = {name: _geometry(geometry) for name, geometry in cards.items()}
    return found


def _throughputs(spec: Spec, used: set[str | None]) -> dict[str, Any]:
    """Return how fast accelerators are, nothing where nobody counts that."""
    if "slowest" not in spec.objective.tiers:
        return {}
    return {"throughputs": {name: card.throughput for name, card in spec.accelerators.items() if name in used}}


def _geometry(geometry: Geometry) -> list[Any]:
    """Return what a plan depends on of a geometry: not where it is known from."""
    profiles = [
        [p.name, p.compute, p.size, p.memory, p.milli, list(p.starts), p.maximum, dict(p.engines)]
        for p in geometry.profiles
    ]
    return [geometry.axis, geometry.compute, dict(geometry.engines), profiles]


def _policy(policy: Policy, as_of: dt.date | None) -> dict[str, Any]:
    found = {key: value for key, value in _fields(policy).items() if key not in ("origin", "rule")}
    dated = policy.rule.dated(as_of)
    today = {} if dated is None else {"today": _canonical(dated)}
    return {**found, "rule": {policy.rule.kind: _fields(policy.rule)}, **today}


def _waiver(spec: Spec, waiver: Waiver) -> dict[str, Any]:
    return {
        "name": waiver.name,
        "policy": waiver.policy,
        "owner": waiver.owner,
        "workloads": _canonical(waiver.workloads),
        "expires": waiver.expires.isoformat(),
        "active": spec.as_of is not None and waiver.active(spec.as_of),
    }


def _fields(value: Any) -> dict[str, Any]:
    found = {}
    for spot, default in _layout(value.__class__):
        item = getattr(value, spot.name)
        if default is MISSING or item != default:
            ordered = spot.name in _ORDERED
            found[spot.name] = [_canonical(part) for part in item] if ordered else _canonical(item)
    return found


@cache  # one entry per kind of dataclass
def _layout(kind: Hashable) -> tuple[tuple[Field[Any], Any], ...]:
    """Return the fields of a dataclass with their defaults."""
    return tuple(
        (f, f.default if f.default_factory is MISSING else f.default_factory()) for f in fields(cast(Any, kind))
    )


def _canonical(value: Any) -> Any:
    if value.__class__ is str or value.__class__ is int or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, dt.date):
        return value.isoformat()
    if value.__class__ is dict or isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [_canonical(item) for item in value]
    if isinstance(value, (tuple, frozenset)):
        return _unordered(_pair(item) for item in value)
    if is_dataclass(value):
        return _fields(value)
    raise TypeError(f"{type(value).__name__} has no canonical form")


def _pair(item: Any) -> Any:
    """Return an element of a collection; a tuple inside one is a record, such as a quota's name and limit."""
    return [_canonical(part) for part in item] if isinstance(item, tuple) else _canonical(item)


def _unordered(items: Any) -> list[Any]:
    found = list(items)
    if all(isinstance(item, (int, str)) for item in found):
        return sorted(found, key=lambda item: (isinstance(item, str), item))
    return sorted(found, key=_ENCODE)
