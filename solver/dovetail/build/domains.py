"""Where the nodes of a group sit in the domain tree (S1.1, S1.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from types import MappingProxyType
from typing import Final

from dovetail.build.cursor import Cursor, frozen
from dovetail.build.names import spelt_out

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Layer:
    """The nodes of a group at one level, and the path of each node's domain at the level outside it."""

    group: str
    level: str
    names: Sequence[str]
    labels: Sequence[Labels]
    parents: Sequence[str]


def place_nodes(
    group: Cursor, levels: Sequence[str], names: Sequence[str], labels: Sequence[Labels]
) -> list[Mapping[str, str]]:
    """Return, per node of a group, its domain paths by level, outermost first.

    A level that the group leaves out is one domain named after the group. Equal positions share one mapping.
    """
    outer = levels[:-1]
    given = dict(group.fields("domains"))
    for level, here in given.items():
        if level not in outer:
            here.fault("DT1306", *_no_such_level(here, level, outer), of_key=True)
    columns: list[Sequence[str]] = []
    paths: Sequence[str] = [""] * len(names)
    for level in outer:
        layer = _Layer(group.raw("name"), level, names, labels, paths)
        parts = _parts(layer, given.get(level))
        paths = [f"{path}/{part}" if path else part for path, part in zip(paths, parts, strict=True)]
        columns.append(paths)
    shared: dict[tuple[str, ...], Mapping[str, str]] = {}
    rows = zip(*columns, strict=True) if columns else repeat((), len(names))
    return [shared.setdefault(row, MappingProxyType(dict(zip(outer, row, strict=True)))) for row in rows]


def _no_such_level(here: Cursor, level: str, outer: Sequence[str]) -> tuple[str, str | None]:
    if not outer:
        return f"the cluster has no level '{level}'", "declare it in 'levels', before 'node'"
    return f"there is no level '{level}' outside the node", here.log.suggest(level, outer)


def _parts(layer: _Layer, here: Cursor | None) -> Sequence[str]:
    """Return, per node, the last part of its domain's path."""
    whole = [layer.group] * len(layer.names)
    if here is None:
        return whole
    (way, inner), *_ = here.fields()
    parts = _WAYS[way](layer, inner)
    return whole if parts is None else parts


def _by_name(layer: _Layer, here: Cursor) -> list[str]:
    return [here.value] * len(layer.names)


def _by_size(layer: _Layer, here: Cursor) -> list[str] | None:
    size, total = here.value, len(layer.names)
    sizes = [*repeat(size, total // size), *([total % size] if total % size else [])]
    return _cut(layer, here, sizes)


def _by_sizes(layer: _Layer, here: Cursor) -> list[str] | None:
    total, wanted = sum(here.value), len(layer.names)
    if total != wanted:
        message = f"the sizes add up to {total}, and the group '{layer.group}' has {wanted} nodes"
        here.fault("DT1410", message, f"sizes that add up to {wanted}, or {total} nodes")
        return None
    return _cut(layer, here, here.value)


def _cut(layer: _Layer, here: Cursor, sizes: Iterable[int]) -> list[str] | None:
    """Cut the nodes, in order, into domains `GROUP-LEVEL0` on, counted over the whole group."""
    parts: list[str] = []
    for index, size in enumerate(sizes):
        start, part = len(parts), f"{layer.group}-{layer.level}{index}"
        borders = set(layer.parents[start : start + size])
        if len(borders) > 1:
            inside = " and ".join(f"'{path}'" for path in sorted(borders)[:2])
            names = f"{layer.names[start]} to {layer.names[start + size - 1]}"
            here.fault("DT1411", f"'{part}' ({names}) would lie in {inside}", "a domain lies inside one outer domain")
            return None
        parts += repeat(part, size)
    return parts


def _by_ranges(layer: _Layer, here: Cursor) -> list[str] | None:
    index_of = {name: index for index, name in enumerate(layer.names)}
    found: list[str | None] = [None] * len(layer.names)
    for key, names in here.fields():
        lists = [names] if isinstance(names.value, str) else list(_entries(names))
        claimed = [index for each in lists for index in _claim(layer, each, key, index_of, found)]
        _check_path(layer, names, key, claimed)
    missing = [name for name, part in zip(layer.names, found, strict=True) if part is None]
    if missing:
        here.fault("DT1412", f"{_some(missing)} in no {layer.level}", of_key=True)
    return [layer.group if part is None else part.rpartition("/")[2] for part in found]


def _entries(here: Cursor) -> Iterable[Cursor]:
    return (Cursor(here.document, here.log, v, (*here.path, i)) for i, v in enumerate(here.value))


def _claim(layer: _Layer, here: Cursor, key: str, index_of: Mapping[str, int], found: list[str | None]) -> list[int]:
    """Put the nodes listed here into a domain, and return their indices."""
    names = spelt_out(here, len(layer.names), f"the group '{layer.group}' has")
    strangers = [name for name in names if name not in index_of]
    if strangers:
        hint = here.log.suggest(strangers[0], layer.names)
        here.fault("DT1413", f"{_some(strangers)} not in the group '{layer.group}'", hint)
    twice = []
    claimed = [index_of[name] for name in names if name in index_of]
    for index in claimed:
        if found[index] is not None:
            twice.append(layer.names[index])
        found[index] = key
    if twice:
        here.fault("DT1414", f"{_some(twice)} in more than one {layer.level}")
    return claimed


def _check_path(layer: _Layer, here: Cursor, key: str, claimed: Sequence[int]) -> None:
    """Hold a range that is named by a whole path to that path."""
    outer, slash, _ = key.rpartition("/")
    wrong = next((index for index in claimed if slash and layer.parents[index] != outer), None)
    if wrong is not None:
        message = f"{layer.names[wrong]} is in '{layer.parents[wrong]}', and the path '{key}' says '{outer}'"
        here.fault("DT1415", message, of_key=True)


def _from_label(layer: _Layer, here: Cursor) -> list[str] | None:
    values = [labels.get(here.value) for labels in layer.labels]
    missing = [name for name, value in zip(layer.names, values, strict=True) if not value]
    if missing:
        known = {key for labels in layer.labels[:100] for key in labels}
        here.fault(
            "DT1416", f"{_some(missing)} without the label '{here.value}'", here.log.suggest(here.value, known)
        )
    return [value or layer.group for value in values]


def _some(names: Sequence[str]) -> str:
    """Return the first name and how many others, with the verb: `a is`, `a and 3 others are`."""
    others = len(names) - 1
    if not others:
        return f"{names[0]} is"
    return f"{names[0]} and {others} other{'s' if others > 1 else ''} are"


_WAYS: Final[Mapping[str, Callable[[_Layer, Cursor], Sequence[str] | None]]] = MappingProxyType(
    {"size": _by_size, "sizes": _by_sizes, "ranges": _by_ranges, "fromLabel": _from_label, "name": _by_name}
)


def find_domain(here: Cursor, paths: Mapping[str, Sequence[str]]) -> str | None:
    """Return the path of the domain named here: a whole path, or a last part that only one domain has.

    Parameters
    ----------
    paths : whole paths by themselves and by their last part (`paths_by_name`).
    """
    found = paths.get(here.value, ())
    if len(found) == 1:
        return found[0]
    if here.value in found:
        # A whole path stands for itself, whatever else ends in it.
        return str(here.value)
    if not found:
        here.refer("DT1309", "domain", paths)
        return None
    here.fault("DT1310", f"'{here.value}' is the name of {len(found)} domains", f"write '{found[0]}' or '{found[1]}'")
    return None


def paths_by_name(domains: Iterable[Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
    """Return the domain paths that each name may stand for: a whole path and its last part."""
    found: dict[str, set[str]] = {}
    for path in set(chain.from_iterable(each.values() for each in domains)):
        for name in {path, path.rpartition("/")[2]}:
            found.setdefault(name, set()).add(path)
    return frozen({name: tuple(sorted(paths)) for name, paths in found.items()})
