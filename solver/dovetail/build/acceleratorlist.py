"""Accelerators as people look them up: what each is, how it can be cut, and who says so (S1.4, S3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dovetail import catalogue
from dovetail.build.accelerators import Models, read_accelerators
from dovetail.build.cursor import Log
from dovetail.documents import Document
from dovetail.documents.kinds import API_VERSION
from dovetail.faults import nearest
from dovetail.mig import Geometry, Profile, arrange, maximal, multisets, positional
from dovetail.spec import Accelerator

Vouching = Literal["none", "verified", "allowed", "unverified", "unknown"]
"""Who vouches for a MIG table: nobody needs to (it cannot be cut), hardware or agreeing sources or the document that
gives it, a document that allows it, nobody; `unknown` has names of profiles and no placements."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One accelerator with its MIG table, whether or not that may be planned with."""

    accelerator: Accelerator
    geometry: Geometry | None
    vouching: Vouching
    display: str = ""
    arch: str = ""


def listed(documents: Iterable[Document] = ()) -> Mapping[str, Listed]:
    """Return the accelerators of the catalogue with those of documents over them, by id.

    Raises
    ------
    Refused
        With all faults of the documents.
    """
    log = Log()
    models = read_accelerators(documents, log)
    log.raise_if_errors()
    return {name: _listed(models, name) for name in models.by_id}


def named(name: str, found: Mapping[str, Listed]) -> tuple[Listed | None, str | None]:
    """Return the accelerator of an id or alias, or None and what was probably meant."""
    by_name = {alias: one for one in found.values() for alias in one.accelerator.aliases} | dict(found)
    spelt = {key.lower(): key for key in by_name}
    if name.lower() in spelt:
        return by_name[spelt[name.lower()]], None
    begun = [key for key in found if key.lower().startswith(name.lower())]
    if begun and name:
        return None, " or ".join(begun[:4])
    near = nearest(name.lower(), spelt)
    return None, None if near is None else spelt[near]


def _listed(models: Models, name: str) -> Listed:
    card, entry = models.by_id[name], catalogue.load().get(name)
    geometry = card.mig or models.held_back.get(name)
    known = ("", "") if entry is None else (entry.display, entry.arch)
    return Listed(card, geometry, _vouching(card, geometry), *known)


def _vouching(card: Accelerator, geometry: Geometry | None) -> Vouching:
    if geometry is None:
        return "none"
    if not geometry.known:
        return "unknown"
    if card.mig is None:
        return "unverified"
    return "verified" if geometry.verified else "allowed"


def to_document(found: Iterable[Listed]) -> dict[str, Any]:
    """Return accelerators as a document of kind AcceleratorList."""
    spec = {"accelerators": [_accelerator(one) for one in found]}
    return {
        "apiVersion": API_VERSION,
        "kind": "AcceleratorList",
        "metadata": {"name": "accelerators"},
        "spec": spec,
    }


def _accelerator(one: Listed) -> dict[str, Any]:
    card = one.accelerator
    row: dict[str, Any] = {
        "name": card.name,
        "memoryMiB": card.memory,
        "verified": card.verified,
        "source": card.source,
        "aliases": list(card.aliases),
    }
    if one.geometry is not None:
        row["mig"] = _mig(one.geometry, one.vouching)
    return row


def _mig(geometry: Geometry, vouching: Vouching) -> dict[str, Any]:
    return {
        "status": vouching,
        "source": geometry.source,
        "memorySlices": geometry.axis,
        "computeSlices": geometry.compute,
        "engines": dict(geometry.engines),
        "modeToggleNeedsReset": geometry.mode_toggle_needs_reset,
        "profiles": [_profile(profile) for profile in geometry.profiles],
        "layouts": {
            "positional": positional(geometry) if geometry.known else 0,
            "multisets": len(multisets(geometry)) if geometry.known else 0,
            "maximal": [_layout(geometry, counts) for counts in maximal(geometry)] if geometry.known else [],
        },
    }


def _profile(profile: Profile) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": profile.name,
        "id": profile.gi_profile_id,
        "computeSlices": profile.compute,
        "memorySlices": profile.size,
        "memoryMiB": profile.memory,
        "milli": profile.milli,
        "sms": profile.sms,
        "engines": dict(profile.engines),
        "starts": list(profile.starts),
        "maxInstances": profile.maximum,
        "verified": profile.verified,
    }
    return {key: value for key, value in row.items() if value is not None}


def _layout(geometry: Geometry, counts: Mapping[str, int]) -> list[str]:
    return [str(instance) for instance in arrange(geometry, counts) or ()]
