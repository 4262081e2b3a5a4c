"""Accelerators: the built-in catalogue, what documents add or replace, and the names they go by (S1.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from dovetail import catalogue
from dovetail.build.cursor import Cursor, Log, cursor
from dovetail.build.partitions import read_geometry, usable
from dovetail.catalogue import AcceleratorEntry
from dovetail.documents import Document
from dovetail.mig import Geometry
from dovetail.quantities import parse_memory, parse_milli
from dovetail.spec import Accelerator
from dovetail.spec.workload import MILLI


@dataclass(frozen=True, slots=True)
class Models:
    """Every accelerator by id, the ids by any name they go by, and the ids that documents define.

    `held_back` are built-in MIG geometries that nobody has verified and no document allows, by id.
    """

    by_id: Mapping[str, Accelerator]
    by_name: Mapping[str, str]
    defined: frozenset[str]
    held_back: Mapping[str, Geometry] = field(default_factory=dict)

    def resolve(self, here: Cursor) -> str | None:
        """Return the id of the accelerator named here; a fault and None where there is none."""
        name = here.refer("DT1304", "accelerator", self.by_name)
        return None if name is None else self.by_name[name]

    def chosen(self, used: Iterable[str | None]) -> dict[str, Accelerator]:
        """Return the accelerators in use and those that documents define, by id.

        Others are left out: a larger catalogue must not make a plan stale.
        """
        wanted = self.defined | {name for name in used if name is not None}
        return {name: self.by_id[name] for name in sorted(wanted)}


def read_accelerators(documents: Iterable[Document], log: Log) -> Models:
    """Return the catalogue with the documents of kind Accelerator put over it."""
    places = {document.name: cursor(document, log) for document in documents}
    entries = catalogue.load()
    by_id = {entry.id: _built_in(entry) for entry in entries.values()}
    by_id |= {name: _read(name, here, entries.get(name)) for name, here in places.items()}
    by_name = {name: name for name in by_id}
    # Documents last, so that it is theirs to give way where a name is taken.
    for name in sorted(by_id, key=lambda name: (name in places, name)):
        for index, alias in enumerate(by_id[name].aliases):
            other = by_name.setdefault(alias, name)
            if other != name:
                _taken(places, name, other, alias, index)
    unverified = {entry.id: entry.mig for entry in entries.values() if entry.mig is not None}
    held_back = {name: mig for name, mig in unverified.items() if by_id[name].mig is None}
    return Models(by_id, by_name, frozenset(places), held_back)


def _taken(places: Mapping[str, Cursor], name: str, other: str, alias: str, index: int) -> None:
    if name in places:
        here = places[name].item("aliases", index)
        here.fault("DT1305", f"'{alias}' already stands for the accelerator '{other}'")
    else:
        # A document took the id or alias of a catalogue entry that it does not replace.
        places[other].fault(
            "DT1305",
            f"'{alias}' already stands for the accelerator '{name}'",
            f"name it '{name}' to replace that one",
        )


def _built_in(entry: AcceleratorEntry) -> Accelerator:
    source = "; ".join(entry.sources)
    return Accelerator(
        entry.id,
        entry.memory_mib,
        entry.aliases,
        source,
        entry.verified,
        usable(entry.mig),
        nvlink=MILLI * entry.nvlink_gbs,
    )


def _read(name: str, here: Cursor, entry: AcceleratorEntry | None) -> Accelerator:
    """Return the accelerator of a document.

    Without memory the document only adds to an entry of the catalogue, whose other fields stay; with memory it takes
    the entry's place, of which the MIG table alone stays where the document has none.
    """
    mig = read_geometry(name, here.get("mig"), None if entry is None else entry.mig)
    if entry is not None and "memory" not in here.value:
        base = _built_in(entry)
        aliases = tuple(here.raw("aliases", base.aliases))
        source, verified = here.raw("source", base.source), here.raw("verified", base.verified)
        speed, nvlink = _throughput(here), _nvlink(here, base.nvlink)
        return Accelerator(name, base.memory, aliases, source, verified, mig, speed, nvlink)
    aliases, source, verified = tuple(here.raw("aliases", ())), here.raw("source", ""), here.raw("verified", True)
    return Accelerator(name, _memory(here), aliases, source, verified, mig, _throughput(here), _nvlink(here, 0))


def _throughput(here: Cursor) -> int:
    """Return the speed of a document's accelerator in thousandths of the reference's."""
    found = here.amount("throughput", parse_milli, MILLI)
    if not found:
        hint = "leave it out where nobody has measured it; a workload's 'accelerators' says what it may be on"
        here["throughput"].fault("DT1429", "an accelerator without any throughput", hint)
    return found or MILLI


def _nvlink(here: Cursor, known: int) -> int:
    """Return the bandwidth of a document's NVLink in MB/s."""
    place = here.get("nvlink")
    return place.amount("bandwidthGBs", parse_milli, known) if place else known


def _memory(here: Cursor) -> int:
    place = here.get("memory")
    memory = 0 if place is None else place.quantity(partial(parse_memory, rounding="down"), 1)
    if not memory:
        (place or here).fault("DT1401", "an accelerator needs memory")
    return memory
