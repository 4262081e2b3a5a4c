"""Slurm's switches and blocks: what is around each node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from dovetail import hostlist
from dovetail.faults import FaultLog, Position, nearest
from dovetail.importers.foreign import Foreign, read_list
from dovetail.importers.slurmconf import MOST_NAMES, Line, read_lines
from dovetail.importers.slurmnodes import check_keys

TIERS: Final = ("leaf", "spine", "core")
_YES: Final = frozenset({"y", "yes", "t", "true", "on"})
_NO: Final = frozenset({"n", "no", "f", "false", "off", "none", "~", ""})
"""Words, in lower case, that Slurm reads as true and false: it goes by YAML 1.1."""
Place = Callable[[str, str | None], None]  # logs a fault, with its hint, where something is written


@dataclass(frozen=True, slots=True)
class Topology:
    """Levels outermost first, and per node the names of the domains around it; `places` log faults about nodes."""

    levels: tuple[str, ...] = ()
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """A switch or block: its name, the switches under it, the nodes on it, and where it is written."""

    name: str
    switches: tuple[str, ...]
    nodes: tuple[str, ...]
    place: Place


def read_topology(path: Path, log: FaultLog) -> Topology:
    """Return the topology of a file, an empty one after faults."""
    before = len(log.errors)
    if path.suffix.lower() in (".yaml", ".yml"):
        switches, blocks, sizes = _from_yaml(path, log)
    else:
        switches, blocks, sizes = _from_conf(path, log)
    if len(log.errors) > before:
        return Topology()
    if bool(switches) == bool(blocks):
        what = "both switches and blocks" if blocks else "neither switches nor blocks"
        hint = "lines SwitchName= make a tree, lines BlockName= make blocks; 'topology.yaml' is read by its ending"
        log.add("DT1957", f"{path} has {what}", Position(str(path), 1, 1), hint)
        return Topology()
    return _of_tree(switches) if switches else _of_blocks(blocks, sizes)


# ---------------------------------------------------------------------- trees


def _of_tree(entries: Sequence[Entry]) -> Topology:
    by_name, above = _switches(entries, "switch")
    homes = _homes(entries)
    paths = {node: _chain(entry, above, by_name) for node, entry in homes.items()}
    depth = max(map(len, paths.values()), default=0)
    tiers = tuple(TIERS[n] if n < len(TIERS) else f"tier-{n + 1}" for n in range(depth))
    padded = {node: path + path[-1:] * (depth - len(path)) for node, path in paths.items()}
    return Topology(tiers[::-1], padded, {node: entry.place for node, entry in homes.items()})


def _switches(entries: Sequence[Entry], what: str) -> tuple[dict[str, Entry], dict[str, str]]:
    """Return switches, or blocks, by name, and above each the one that it hangs on."""
    by_name: dict[str, Entry] = {}
    for entry in entries:
        if entry.name in by_name:
            entry.place(f"the {what} '{entry.name}' is there twice", "all that hangs on it is told in one place")
        by_name[entry.name] = entry
    above: dict[str, str] = {}
    for entry in entries:
        for child in entry.switches:
            if child not in by_name:
                near = nearest(child, by_name)
                hint = f"did you mean {near}?" if near else "every switch has an entry of its own"
                entry.place(f"there is no switch '{child}'", hint)
            elif child in above:
                entry.place(f"the switch '{child}' hangs on '{above[child]}' already", "a domain has one parent")
            else:
                above[child] = entry.name
    return by_name, above


def _homes(entries: Sequence[Entry]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for entry in entries:
        for node in entry.nodes:
            if node in found:
                entry.place(f"the node '{node}' is in '{found[node].name}' already", "a node has one place")
            found.setdefault(node, entry)
    return found


def _chain(entry: Entry, above: Mapping[str, str], by_name: Mapping[str, Entry]) -> tuple[str, ...]:
    """Return the switches above a node, outermost first; a circle ends where it closes, with a fault."""
    chain = [entry.name]
    while chain[-1] in above:
        upper = above[chain[-1]]
        if upper in chain:
            by_name[upper].place(
                f"the switch '{upper}' hangs on itself", "a switch has those below it under Switches="
            )
            break
        chain.append(upper)
    return tuple(reversed(chain))


# ---------------------------------------------------------------------- blocks


def _of_blocks(entries: Sequence[Entry], sizes: Sequence[int]) -> Topology:
    """Return blocks as a level, and every larger size as one of as many base blocks in a row."""
    by_name, _ = _switches(entries, "block")
    homes = _homes(entries)
    base = sizes[0] if sizes else 1
    larger = sizes[:0:-1]
    order = {name: position for position, name in enumerate(by_name)}
    paths = {}
    for node, entry in homes.items():
        outer = tuple(f"blocks-{size}-{order[entry.name] // (size // base)}" for size in larger)
        paths[node] = (*outer, entry.name)
    levels = (*(f"blocks-{size}" for size in larger), "block")
    return Topology(levels, paths, {node: entry.place for node, entry in homes.items()})


# ---------------------------------------------------------------------- files

_Read = tuple[list[Entry], list[Entry], list[int]]
_KEYS: Final = (("SwitchName", "Switches", "Nodes", "LinkSpeed"), ("BlockName", "Nodes"), ("BlockSizes",))
_PRINTED: Final = frozenset({"level", "blockindex", "aggregatedblock"})
_OTHER_KINDS: Final = ("flat", "ring", "torus3d")


def _from_conf(path: Path, log: FaultLog) -> _Read:
    switches: list[Entry] = []
    blocks: list[Entry] = []
    sizes: list[int] = []
    for line in read_lines(path, log):
        has = line.values
        if _PRINTED & has.keys():
            hint = "give topology.conf or topology.yaml: what is printed names the nodes of a switch above it again"
            line.fault(log, "the line is one that `scontrol show topology` prints", hint=hint)
            return [], [], []
        for keys in _KEYS:
            if keys[0].lower() in has:
                check_keys(line, keys, log)

        def place(message: str, hint: str | None, line: Line = line, key: str = "") -> None:
            line.fault(log, message, key, hint)

        nodes = tuple(line.names(log, "nodes")) if "nodes" in has else ()
        if "switchname" in has:
            under = tuple(line.names(log, "switches")) if "switches" in has else ()
            switches.append(Entry(has["switchname"], under, nodes, place))
        elif "blockname" in has:
            blocks.append(Entry(has["blockname"], (), nodes, place))
        elif "blocksizes" in has:
            given = [_number(size) for size in has["blocksizes"].split(",")]
            sizes = _sizes(given, partial(place, key="blocksizes"))
        else:
            message = "the line has none of SwitchName, BlockName and BlockSizes"
            line.fault(log, message, hint="such as SwitchName=leaf1 Nodes=gpu[01-16]")
    return switches, blocks, sizes


def _number(text: str) -> int | str:
    """Return a whole number, or the text that is none."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text.strip(), re.ASCII) else text


def _sizes(given: object, place: Place) -> list[int]:
    """Return sizes of blocks, none after a fault: of each the next is two, four, eight... times as large."""
    sizes = [size for size in given if type(size) is int and size > 0] if isinstance(given, list) else []
    steps = [divmod(larger, size) for size, larger in pairwise(sizes)]
    if not isinstance(given, list) or len(sizes) < len(given) or not all(_doubles(*step) for step in steps):
        message = f"the sizes of blocks are {str(given)[:60]}"
        place(message, "numbers of nodes, each two, four, eight... times the one before, such as 4,8,16")
        return []
    return sizes


def _doubles(times: int, rest: int) -> bool:
    """Tell whether something is a power of two, 2 or more, without a rest."""
    return rest == 0 and times > 1 and times & (times - 1) == 0


def _from_yaml(path: Path, log: FaultLog) -> _Read:
    file = read_list(path, log, "topologies")
    found = file.value.get("topologies") if file is not None else None
    if file is None or not isinstance(found, list):
        return [], [], []
    rows = [row for row in found if isinstance(row, dict)]
    defaults = [row for row in rows if _is_default(file, row, found.index(row))]
    chosen = next(iter([*defaults, *rows]), {})
    at = ("topologies", found.index(chosen)) if rows else ("topologies",)
    if isinstance(chosen.get("block"), dict):
        given = chosen["block"].get("block_sizes")

        def place(message: str, hint: str | None) -> None:
            file.fault("DT1957", message, *at, "block", "block_sizes", hint=hint)

        sizes = [] if given is None else _sizes(given, place)
        return [], list(_rows(file, (*at, "block", "blocks"), "block")), sizes
    if not _is_imported(chosen) and (other := next((kind for kind in _OTHER_KINDS if kind in chosen), None)):
        rest = next((row.get("topology") for row in rows if _is_imported(row)), None)
        hint = f"leave '{rest}' alone in the file to import it" if rest else "trees and blocks are imported"
        message = f"the topology '{chosen.get('topology')}' is neither a tree nor blocks"
        file.fault("DT1957", message, *at, other, hint=hint, of_key=True)
        return [], [], []
    return list(_rows(file, (*at, "tree", "switches"), "switch")), [], []


def _is_imported(row: Mapping[str, Any]) -> bool:
    return "tree" in row or "block" in row


def _is_default(file: Foreign, row: Mapping[str, Any], number: int) -> bool:
    """Tell whether a topology says that it is the cluster's default."""
    said = str(row.get("cluster_default")).lower()
    if said not in _YES | _NO:
        message = f"'cluster_default' is {said[:40]!r}"
        file.fault("DT1957", message, "topologies", number, "cluster_default", hint="true or false")
    return said in _YES


def _rows(file: Foreign, at: tuple[str | int, ...], what: str) -> Iterator[Entry]:
    value: Any = file.value
    for step in at:
        value = value[step] if isinstance(step, int) else value.get(step) if isinstance(value, dict) else None
    if not isinstance(value, list):
        known = at[: next((n for n in range(len(at), 0, -1) if _there(file.value, at[:n])), 0)]
        message = f"a topology has '{'.'.join(map(str, at[2:]))}', a list"
        file.fault("DT1957", message, *known, hint="as topology.yaml(5) of Slurm says")
        return
    for number, row in enumerate(value):
        here = (*at, number)
        name = row.get(what) if isinstance(row, dict) else None
        if not isinstance(name, str):
            file.fault(
                "DT1957", f"an entry has '{what}', its name", *here, hint=f"such as {{{what}: s1, nodes: n[1-8]}}"
            )
            continue

        def place(message: str, hint: str | None, here: tuple[str | int, ...] = here) -> None:
            file.fault("DT1957", message, *here, hint=hint)

        yield Entry(name, _names(row, "children", place), _names(row, "nodes", place), place)


def _there(value: Any, at: tuple[str | int, ...]) -> bool:
    for step in at:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _names(row: Mapping[str, Any], key: str, place: Place) -> tuple[str, ...]:
    value = row.get(key)
    if value is None:
        return ()
    try:
        return tuple(hostlist.expand(str(value), limit=MOST_NAMES))
    except hostlist.HostlistError as error:
        place(f"a list of {key}: {error}", "such as gpu[01-16,20]")
        return ()
