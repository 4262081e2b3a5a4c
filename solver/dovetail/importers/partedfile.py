"""The configuration file of mig-parted, read strictly as its specification (version v1) says.

Source: `api/spec/v1/spec.go` and `pkg/types` of NVIDIA/mig-parted. The version is `v1`; unknown fields are refused;
every configuration has at least one entry; an entry says which GPUs of a node it is for and whether MIG is on; where
it is on, the counts of its instances are given, and are not all 0. Entries apply in order, so the last one that
matches a GPU counts, and a node whose GPUs do not all match is not what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dovetail.faults import FaultLog, nearest
from dovetail.importers.foreign import Foreign, PathPart, single

VERSION: Final = "v1"
PROFILE: Final = re.compile(r"(?:[1-9][0-9]*c\.)?[1-9][0-9]*g\.[1-9][0-9]*gb(?:[+-][a-z]+(?:\.[a-z]+)*)?")
FILTER: Final = re.compile(r"0x[0-9A-Fa-f]{8}")
_FIELDS: Final = ("device-filter", "devices", "mig-enabled", "mig-devices")
_CODE: Final = "DT1957"
_EXAMPLE: Final = 'an entry is such as {devices: [0, 1], mig-enabled: true, mig-devices: {"1g.10gb": 7}}'


@dataclass(frozen=True, slots=True)
class Entry:
    """What one entry of a configuration says.

    Parameters
    ----------
    devices : the GPUs' indices, None for all.
    filters : PCI device ids `0x<device><vendor>` it is limited to; none where it is not.
    enabled : whether MIG is on.
    counts : instances by profile; empty where MIG is off, or on without instances.
    path : where the entry stands.
    """

    devices: frozenset[int] | None
    filters: frozenset[str]
    enabled: bool
    counts: Mapping[str, int]
    path: tuple[PathPart, ...] = ()

    def matches(self, index: int, device_ids: Iterable[str]) -> bool:
        """Tell whether the entry is for a GPU.

        Parameters
        ----------
        index : the GPU's index on its node.
        device_ids : the PCI device ids of its product, such as `0x2330`.
        """
        if self.devices is not None and index not in self.devices:
            return False
        ids = {f"{one}10DE".lower() for one in device_ids}
        return not self.filters or bool(ids & {one.lower() for one in self.filters})


@dataclass(frozen=True, slots=True)
class Parted:
    """A configuration file: entries by name of configuration, and the file to complain about."""

    file: Foreign
    configs: Mapping[str, tuple[Entry, ...]]


def read_parted(path: Path, log: FaultLog) -> Parted | None:
    """Return a configuration file of mig-parted; faults go to the log, and None where nothing can be made of it."""
    found = single(path, log, "a configuration of mig-parted")
    if found is None:
        return None
    before = len(log.errors)
    if found.value.get("kind") == "ConfigMap":
        data = found.value.get("data")
        key = next(iter(data), "") if isinstance(data, dict) else ""
        hint = (
            f"give what it holds under data, '{key}', as a file" if key else "give the file that it holds under data"
        )
        _wrong(found, "this is a ConfigMap, and a configuration of mig-parted was expected", "kind", hint=hint)
        return None
    _only(found, found.value, ("version", "mig-configs"), ())
    version, configs = found.value.get("version"), found.value.get("mig-configs")
    if version != VERSION:
        _version(found, version)
    elif "mig-configs" in found.value and not (isinstance(configs, dict) and configs):
        _wrong(found, "'mig-configs' has at least one configuration, by its name", "mig-configs")
    if len(log.errors) > before:
        return None
    read = {name: _entries(found, name, entries) for name, entries in (configs or {}).items()}
    return Parted(found, read) if len(log.errors) == before else None


def last_match(entries: Sequence[Entry], index: int, device_ids: Iterable[str]) -> Entry | None:
    """Return the entry that counts for a GPU, None where none is for it."""
    ids = tuple(device_ids)
    return next((entry for entry in reversed(entries) if entry.matches(index, ids)), None)


def _wrong(file: Foreign, message: str, *path: PathPart, hint: str = _EXAMPLE, of_key: bool = False) -> None:
    """Log a fault with an entry as it should be, unless there is a better hint."""
    file.fault(_CODE, message, *path, hint=hint, of_key=of_key)


def _version(file: Foreign, version: Any) -> None:
    if version is None:
        _wrong(file, "'version' is missing", hint=f"version: {VERSION}")
    else:
        _wrong(file, f"the version is {version!r}, and only {VERSION} is known", "version")


def _only(file: Foreign, value: Mapping[str, Any], known: Sequence[str], path: tuple[PathPart, ...]) -> None:
    for key in value:
        if key not in known:
            near = nearest(key, known)
            hint = f"did you mean {near}?" if near else f"known are {', '.join(known)}"
            _wrong(file, f"there is no field '{key}'", *path, key, hint=hint, of_key=True)


def _entries(file: Foreign, name: str, entries: Any) -> tuple[Entry, ...]:
    path = ("mig-configs", name)
    if not isinstance(entries, list) or not entries:
        _wrong(file, f"the configuration '{name}' has at least one entry", *path)
        return ()
    found = [_entry(file, entry, (*path, index)) for index, entry in enumerate(entries)]
    return tuple(entry for entry in found if entry is not None)


def _entry(file: Foreign, entry: Any, path: tuple[PathPart, ...]) -> Entry | None:
    if not isinstance(entry, dict):
        _wrong(file, "an entry is a mapping", *path)
        return None
    _only(file, entry, _FIELDS, path)
    for key in ("devices", "mig-enabled"):
        if key not in entry:
            _wrong(file, f"an entry needs '{key}'", *path)
            return None
    enabled = entry["mig-enabled"]
    if not isinstance(enabled, bool):
        _wrong(file, "'mig-enabled' is true or false", *path, "mig-enabled")
        return None
    filters = _filters(file, entry, path)
    return Entry(_devices(file, entry, path), filters, enabled, _counts(file, entry, path, enabled), path)


def _devices(file: Foreign, entry: Mapping[str, Any], path: tuple[PathPart, ...]) -> frozenset[int] | None:
    devices = entry["devices"]
    if devices == "all":
        return None
    if isinstance(devices, list) and all(type(one) is int and one >= 0 for one in devices):
        return frozenset(devices)
    _wrong(file, "'devices' is 'all' or a list of indices", *path, "devices")
    return frozenset()


def _filters(file: Foreign, entry: Mapping[str, Any], path: tuple[PathPart, ...]) -> frozenset[str]:
    given = entry.get("device-filter", [])
    listed = [given] if isinstance(given, str) else given
    if isinstance(listed, list) and all(isinstance(one, str) and FILTER.fullmatch(one) for one in listed):
        return frozenset(listed)
    message = "'device-filter' is a PCI id such as 0x233010DE, or a list of them"
    _wrong(file, message, *path, "device-filter")
    return frozenset()


def _counts(file: Foreign, entry: Mapping[str, Any], path: tuple[PathPart, ...], enabled: bool) -> Mapping[str, int]:
    counts, at = entry.get("mig-devices"), (*path, "mig-devices")
    if counts is None and not enabled:
        return {}
    if not isinstance(counts, dict):
        _wrong(file, "where MIG is on, 'mig-devices' gives the number of each profile", *path)
        return {}
    if counts and not enabled:
        _wrong(file, "'mig-devices' where MIG is off", *at, of_key=True)
    for profile, number in counts.items():
        if not PROFILE.fullmatch(profile):
            _wrong(file, f"'{profile}' is no MIG profile", *at, profile, of_key=True)
        if type(number) is not int or number < 0:
            _wrong(file, f"the number of '{profile}' is a whole number from 0", *at, profile)
            return {}
    if counts and not any(counts.values()):
        _wrong(file, "the numbers of 'mig-devices' are all 0", *at, hint="{} asks for no instance")
    return {profile: number for profile, number in counts.items() if number}
