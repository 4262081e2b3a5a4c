"""Reading of the built-in MIG tables (S1.4, S3.3), ``mig.json`` beside this module.

Keyed by product and profile: `1g.10gb` takes two memory slices of an A100-40GB and one of an A100-80GB. Memory of an
instance is what the driver printed, rounded down; where nobody has seen it (`memory_estimated`) it is seven eighths
of what the profile's name says, or a multiple of a smaller instance that was seen: below the true figure on every
product whose figures are known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from dovetail.mig import Geometry, Profile


@cache
def geometries() -> Mapping[str, Geometry]:
    """Return the built-in geometries by product; they are read on the first call."""
    return MappingProxyType({row["product"]: _geometry(row) for row in _rows()})


def device_ids(product: str) -> tuple[str, ...]:
    """Return the PCI device ids of a product such as `0x2330`, none where they are not known."""
    return next((tuple(row["device_ids"]) for row in _rows() if row["product"] == product), ())


def all_sms(product: str) -> int | None:
    """Return the multiprocessors of a product outside MIG, None where they are not verified."""
    return next((row.get("sms") for row in _rows() if row["product"] == product), None)


@cache
def _rows() -> tuple[Mapping[str, Any], ...]:
    text = (files("dovetail.catalogue") / "mig.json").read_text(encoding="utf-8")
    return tuple(json.loads(text)["geometries"])


def offered(compute: int, whole: int, sms: int | None, of_gpu: int | None) -> int:
    """Return the thousandths of a GPU's compute that an instance offers (S2.3).

    Parameters
    ----------
    compute, whole : compute slices of the instance and of the GPU.
    sms, of_gpu : multiprocessors of the instance and of the GPU outside MIG; None where not verified.
    """
    return 1000 * sms // of_gpu if sms and of_gpu else 1000 * compute // whole


def _geometry(row: Mapping[str, Any]) -> Geometry:
    return Geometry(
        product=row["product"],
        axis=row["memory_slices"],
        compute=row["compute_slices"],
        engines=dict(row.get("engines", {})),
        profiles=tuple(_profile(row, profile) for profile in row["profiles"]),
        verified=row["verified"],
        source="; ".join((f"placements {row['placements']}", *row["sources"])),
        mode_toggle_needs_reset=row["mode_toggle_needs_reset"],
    )


def _profile(row: Mapping[str, Any], profile: Mapping[str, Any]) -> Profile:
    sms = profile.get("sms")
    return Profile(
        name=profile["name"],
        compute=profile["compute"],
        size=profile["size"],
        memory=profile["memory_mib"],
        milli=offered(profile["compute"], row["compute_slices"], sms, row.get("sms")),
        starts=tuple(profile["starts"]),
        maximum=profile["max"],
        engines=dict(profile.get("engines", {})),
        sms=sms,
        verified=row["verified"] and not profile.get("memory_estimated", False),
        gi_profile_id=profile["id"],
    )
