"""Reading of the built-in catalogue of accelerators (S1.4).

The data stand in ``accelerators.json`` beside this module, so that they can be read, compared and corrected
without knowing the code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from dovetail.catalogue.partitions import geometries
from dovetail.mig import Geometry

MemoryBasis = Literal["nvidia-smi", "cuda", "nominal"]


@dataclass(frozen=True, slots=True)
class AcceleratorEntry:
    """One product of the catalogue.

    Parameters
    ----------
    id
        Catalogue id, such as ``H100-80GB``.
    display, arch
        The product's name for people, and its architecture.
    memory_mib
        GPU memory in MiB.
    memory_basis
        Where the memory comes from: the total that ``nvidia-smi`` reports, the total that CUDA reports (a
        little less), or the vendor's nominal figure.
    aliases
        Values of the node label ``nvidia.com/gpu.product``.
    sources
        Where the figures come from.
    verified
        Whether the memory was seen on hardware.
    nvlink_gbs
        NVLink bandwidth per GPU in GB/s, both directions, as the vendor's data sheets give it for the form with links
        or bridges (V100 and P100 on PCIe have none); 0 for none. `verified` says nothing of it; only reports use it.
    mig
        What one GPU can be cut into, None where it cannot be cut.
    """

    id: str
    display: str
    arch: str
    memory_mib: int
    memory_basis: MemoryBasis
    aliases: tuple[str, ...]
    sources: tuple[str, ...]
    verified: bool
    nvlink_gbs: int = 0
    mig: Geometry | None = None


@cache
def load() -> Mapping[str, AcceleratorEntry]:
    """Return the catalogue by id, in the order of its file; it is read on the first call."""
    text = (files("dovetail.catalogue") / "accelerators.json").read_text(encoding="utf-8")
    entries = [_entry(row) for row in json.loads(text)["accelerators"]]
    return MappingProxyType({entry.id: entry for entry in entries})


def _entry(row: Mapping[str, Any]) -> AcceleratorEntry:
    lists = {"aliases": tuple(row["aliases"]), "sources": tuple(row["sources"])}
    return AcceleratorEntry(**{**row, **lists}, mig=geometries().get(row["id"]))
