"""The MIG table of a product as its driver prints it: `nvidia-smi mig -lgip` and `-lgipp`.

The first lists profiles, two lines each: name, number, instances, memory, multiprocessors and engines. The second
gives, by number, the memory slices where an instance may begin and how many it takes. Compute slices stand in a
profile's name; the largest profile is the whole GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from dovetail.catalogue import AcceleratorEntry, all_sms, load
from dovetail.faults import FaultLog, Position
from dovetail.importers import emit
from dovetail.importers.project import ImportedProject
from dovetail.importers.sources import text_of

FILE: Final = "accelerator.yaml"
_BOTH: Final = "take both lists of one GPU, with one driver: nvidia-smi mig -lgip and -lgipp"
T = TypeVar("T")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_WHOLE: Final = r"[0-9]{1,4}"  # far above anything that a GPU has
_FIRST: Final = re.compile(
    rf"\|\s*(?P<gpu>{_WHOLE})\s+MIG\s+(?P<name>[1-9][0-9]?g\.[1-9][0-9]{{0,3}}gb(?:[+-][a-z.]+)?)\s+(?P<id>{_WHOLE})"
    rf"\s+{_WHOLE}/(?P<most>{_WHOLE})\s+(?P<gib>{_WHOLE}(?:\.[0-9]{{1,9}})?)\s+(?:Yes|No)\s+(?P<sms>{_WHOLE})"
    rf"\s+(?P<dec>{_WHOLE})\s+(?P<enc>{_WHOLE})\s*\|"
)
_SECOND: Final = re.compile(rf"\|\s+(?P<ce>{_WHOLE})\s+(?P<jpeg>{_WHOLE})\s+(?P<ofa>{_WHOLE})\s*\|")
_PLACES: Final = re.compile(
    rf"GPU\s+(?P<gpu>{_WHOLE})\s+Profile ID\s+(?P<id>{_WHOLE})\s+Placements?\s*:"
    rf"\s*\{{(?P<starts>{_WHOLE}(?:,{_WHOLE})*)\}}:(?P<size>{_WHOLE})"
)


@dataclass(frozen=True, slots=True)
class Printed:
    """One profile as the driver prints it; `memory` in MiB, rounded down."""

    id: int
    name: str
    most: int
    memory: int
    sms: int
    engines: tuple[tuple[str, int], ...]

    @property
    def compute(self) -> int:
        """Compute slices, as the name says."""
        return int(self.name.partition("g")[0])


@dataclass(frozen=True, slots=True)
class Places:
    """Where instances of one profile may stand, in memory slices."""

    starts: tuple[int, ...]
    size: int


def import_mig_geometry(accelerator: str, lgip: Path, lgipp: Path) -> ImportedProject:
    """Turn the driver's two lists into an Accelerator document, whose table goes before the built-in one.

    Raises
    ------
    dovetail.faults.Refused
        With all that is wrong with either list.
    """
    log = FaultLog()
    if not _NAME.fullmatch(accelerator):
        hint = "letters, digits, '-', '_' and '.'; a name of `dovetail accelerators`, or one of your own"
        log.add("DT1302", f"{accelerator!r} cannot be the name of an accelerator", hint=hint)
    profiles = _agreed(_profiles(lgip, log), lgip, "MIG profiles", log)
    places = _agreed(_placements(lgipp, log), lgipp, "placements of MIG instances", log)
    for number, printed in profiles.items():
        if places and number not in places:
            message = f"{printed.name} has the number {number}, of which there are no placements"
            log.add("DT1958", message, Position(str(lgipp), 1, 1), _BOTH)
    for number in places.keys() - profiles.keys() if profiles else ():
        log.add("DT1958", f"there is no profile with the number {number}", Position(str(lgip), 1, 1), _BOTH)
    log.raise_if_errors()
    entry = next((one for one in load().values() if accelerator in (one.id, *one.aliases)), None)
    name = accelerator if entry is None else entry.id
    rows = [(printed, places[number]) for number, printed in profiles.items()]
    rows.sort(key=lambda row: (-row[0].compute, -row[1].size, row[0].name))
    return ImportedProject({FILE: _document(name, entry, rows)}, frozenset({FILE}))


def _profiles(path: Path, log: FaultLog) -> Iterator[tuple[int, int, Printed]]:
    """Yield GPU, number and profile of each pair of lines."""
    source = text_of(path, log)
    text = "" if source is None else source.text
    for first in _FIRST.finditer(text):
        second = _SECOND.search(text, first.end())
        if second is None or "MIG" in text[first.end() : second.start()]:
            position = Position(str(path), text.count("\n", 0, first.start()) + 1, 1)
            log.add(
                "DT1957",
                f"the second line of {first['name']}, with its engines, is missing",
                position,
                "give the list as it was printed",
            )
            continue
        engines = [(kind, int(first[kind])) for kind in ("dec", "enc")]
        engines += [(kind, int(second[kind])) for kind in ("ce", "jpeg", "ofa")]
        memory = int(float(first["gib"]) * 1024)
        printed = Printed(
            int(first["id"]), first["name"], int(first["most"]), memory, int(first["sms"]), tuple(sorted(engines))
        )
        yield int(first["gpu"]), printed.id, printed


def _placements(path: Path, log: FaultLog) -> Iterator[tuple[int, int, Places]]:
    """Yield GPU, number of the profile, and placements of each line."""
    source = text_of(path, log)
    for found in _PLACES.finditer("" if source is None else source.text):
        starts = tuple(sorted({int(start) for start in found["starts"].split(",")}))
        yield int(found["gpu"]), int(found["id"]), Places(starts, int(found["size"]))


def _agreed(rows: Iterable[tuple[int, int, T]], path: Path, what: str, log: FaultLog) -> dict[int, T]:
    """Return what all GPUs of a list have in common, by number; a fault where there is nothing or they differ."""
    by_gpu: dict[int, dict[int, T]] = {}
    before = len(log.errors)
    for gpu, number, row in rows:
        by_gpu.setdefault(gpu, {})[number] = row
    if not by_gpu:
        if len(log.errors) == before:
            message = f"{path} lists no {what}"
            log.add("DT1957", message, Position(str(path), 1, 1), "the driver lists them where MIG is on")
        return {}
    first, *others = by_gpu.values()
    if any(other != first for other in others):
        log.add("DT1958", "the GPUs of this list differ", Position(str(path), 1, 1), "list one GPU with -i INDEX")
    return first


def _document(name: str, entry: AcceleratorEntry | None, rows: list[tuple[Printed, Places]]) -> str:
    largest = rows[0][0]
    sms = (all_sms(entry.id) if entry else None) or largest.sms
    body = ["  source: nvidia-smi mig -lgip and -lgipp"]
    if entry is None:
        body.append(f"  memory: {largest.memory}Mi")
    body += [
        "  mig:",
        f"    memorySlices: {max(place.starts[-1] + place.size for _, place in rows)}",
        f"    computeSlices: {largest.compute}",
        f"    sms: {max(sms, largest.sms)}",
        f"    engines: {emit.inline(dict(largest.engines))}",
    ]
    if entry is not None and entry.mig is not None:
        body.append(f"    modeToggleNeedsReset: {'true' if entry.mig.mode_toggle_needs_reset else 'false'}")
    body += ["    profiles:", *(f"      {emit.text(one.name)}: {_profile(one, place)}" for one, place in rows)]
    heading = emit.comment("The MIG table that a driver printed; it goes before the built-in one.")
    return emit.file(heading, [emit.document("Accelerator", {"name": name}, body)])


def _profile(printed: Printed, places: Places) -> str:
    return emit.inline(
        {
            "id": printed.id,
            "computeSlices": printed.compute,
            "memorySlices": places.size,
            "memory": f"{printed.memory}Mi",
            "sms": printed.sms,
            "engines": dict(printed.engines),
            "starts": list(places.starts),
            "maxInstances": printed.most,
        }
    )
