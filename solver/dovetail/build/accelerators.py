"""Accelerators: the built-in catalogue, what documents add or replace, and the names they go by (S1.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from dovetail import catalogue
from dovetail.build.cursor import Cursor, Log, cursor
from dovetail.documents import Document
from dovetail.mig import Geometry
from dovetail.quantities import parse_memory
from dovetail.spec import Accelerator


@dataclass(frozen=True, slots=True)
class Models:
    """Every accelerator by id, the ids by any name they go by, and the ids that documents define."""

    by_id: Mapping[str, Accelerator]
    by_name: Mapping[str, str]
    defined: frozenset[str]

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
    by_id = {
        entry.id: Accelerator(
            entry.id, entry.memory_mib, entry.aliases, "; ".join(entry.sources), entry.verified, _usable(entry.mig)
        )
        for entry in catalogue.load().values()
    }
    by_id |= {name: _read(name, here) for name, here in places.items()}
    by_name = {name: name for name in by_id}
    # Documents last, so that it is theirs to give way where a name is taken.
    for name in sorted(by_id, key=lambda name: (name in places, name)):
        for index, alias in enumerate(by_id[name].aliases):
            other = by_name.setdefault(alias, name)
            if other != name:
                _taken(places, name, other, alias, index)
    return Models(by_id, by_name, frozenset(places))


def _usable(geometry: Geometry | None) -> Geometry | None:
    """Return a geometry that may be planned with unasked: one that somebody has verified (S1.4)."""
    return geometry if geometry is not None and geometry.known and geometry.verified else None


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


def _read(name: str, here: Cursor) -> Accelerator:
    memory = here["memory"].quantity(partial(parse_memory, rounding="down"), 1)
    if not memory:
        here["memory"].fault("DT1401", "an accelerator needs memory")
    aliases = tuple(here.raw("aliases", ()))
    return Accelerator(name, memory, aliases, here.raw("source", ""), here.raw("verified", True))
