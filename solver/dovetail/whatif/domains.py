"""Domains as patches name them, and the domains that added nodes join (S1.1)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType

from dovetail.spec import Cluster, Node, NodeGroup
from dovetail.whatif.spot import Unfit, unknown

Homes = Mapping[str, str]


def nodes_of(cluster: Cluster, level: str, name: str) -> frozenset[str]:
    """Return the names of a domain's nodes; a whole path, or a last part that only one domain of the level has.

    Raises
    ------
    Unfit
        When there is no such level or domain, or several domains end in the name.
    """
    if level not in cluster.levels:
        raise unknown("DT1801", "level", level, cluster.levels, level, of_key=True)
    members = cluster.members(level)
    found = [name] if name in members else sorted(path for path in members if _last(path) == name)
    if not found:
        raise unknown("DT1802", level, name, {*members, *map(_last, members)}, level)
    if len(found) > 1:
        message = f"'{name}' is the name of {len(found)} domains"
        raise Unfit("DT1803", message, level, hint=f"write '{found[0]}' or '{found[1]}'")
    return frozenset(node.name for node in members[found[0]])


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def new_names(cluster: Cluster, group: NodeGroup, number: int) -> list[str]:
    """Return names for more nodes of a group: `GROUP-000` on, going on after the group's size, none twice."""
    names = (f"{group.name}-{index:03d}" for index in count(len(group.names)))
    free = (name for name in names if name not in cluster.by_name)
    return [next(free) for _ in range(number)]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """New nodes next to each other that share their domains so far."""

    size: int
    homes: Homes


def new_homes(cluster: Cluster, group: NodeGroup, number: int) -> list[Homes]:
    """Return the domains of more nodes of a group.

    At a level where all of the group shares a domain that was not cut by size, new nodes join it. At any other they
    get domains of their own, `GROUP-LEVELn` with the numbers that follow, none larger than the group's largest.
    """
    members = [node for node in cluster.nodes if node.group == group.name]
    chunks: Iterable[_Chunk] = [_Chunk(number, MappingProxyType({}))]
    outer = ""
    for level in cluster.levels[:-1]:
        chunks = list(_split(chunks, _Layer(cluster, group.name, level, outer, members)))
        outer = level
    return [chunk.homes for chunk in chunks for _ in range(chunk.size)]


@dataclass(frozen=True, slots=True)
class _Layer:
    """A level as a group's nodes lie in it; `outer` is the level outside it, empty for the outermost one."""

    cluster: Cluster
    group: str
    level: str
    outer: str
    members: Sequence[Node]

    def shared(self) -> str | None:
        """Return the last part of the path that all nodes share, None where they were cut into domains."""
        parts = {_last(node.domains[self.level]) for node in self.members}
        part = parts.pop() if len(parts) == 1 else None
        return None if part is None or self._number(part) is not None else part

    def largest(self) -> int:
        """Return the size of the group's largest domain."""
        return max(Counter(node.domains[self.level] for node in self.members).values())

    def fresh(self) -> Iterator[str]:
        """Yield names of domains, the numbers going on after those that the level has."""
        parts = {_last(node.domains[self.level]) for node in self.cluster.nodes}
        numbers = [number for part in parts if (number := self._number(part)) is not None]
        return (f"{self.group}-{self.level}{index}" for index in count(max(numbers, default=-1) + 1))

    def _number(self, part: str) -> int | None:
        found = re.fullmatch(rf"{re.escape(self.group)}-{re.escape(self.level)}(\d+)", part, re.ASCII)
        return int(found[1]) if found else None


def _split(chunks: Iterable[_Chunk], layer: _Layer) -> Iterator[_Chunk]:
    shared, names, largest = layer.shared(), layer.fresh(), layer.largest()
    for chunk in chunks:
        left = chunk.size
        while left:
            size = left if shared is not None else min(left, largest)
            part = next(names) if shared is None else shared
            path = f"{chunk.homes[layer.outer]}/{part}" if layer.outer else part
            yield _Chunk(size, MappingProxyType({**chunk.homes, layer.level: path}))
            left -= size
