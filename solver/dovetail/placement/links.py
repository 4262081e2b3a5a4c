"""How wide the narrowest link between the GPUs of a gang is (S1.2): told, and not planned by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from dovetail.placement.place import Place
from dovetail.spec import Node, Spec
from dovetail.spec.cluster import GPU_LEVEL, NODE_LEVEL
from dovetail.spec.inside import ISLAND_LEVEL, SOCKET_LEVEL, holds


class Link(NamedTuple):
    """A level at which GPUs of a gang meet in one domain and in none inside it, and its bandwidth in MB/s per GPU.

    The level is empty where some have no domain in common; the bandwidth is None where nobody says it.
    """

    level: str
    bandwidth: int | None


def links(spec: Spec, places: Sequence[Place]) -> tuple[Link, ...]:
    """Return the links between the GPUs of some places, the widest domains first; none for a single GPU."""
    nodes = spec.cluster.by_name
    gpus = [(nodes[place.node], gpu) for place in places for gpu in place.gpus]
    return tuple(dict.fromkeys(_links(spec, gpus)))


def narrowest(spec: Spec, places: Sequence[Place]) -> Link | None:
    """Return the link of the least bandwidth, None where there is no link or one of an unknown bandwidth."""
    found = links(spec, places)
    known = [(link.bandwidth, position) for position, link in enumerate(found) if link.bandwidth is not None]
    return found[min(known)[1]] if known and len(known) == len(found) else None


def _links(spec: Spec, gpus: Sequence[tuple[Node, int]]) -> Iterator[Link]:
    """Yield each level of which some domain holds several domains of the next one inside, with GPUs in them."""
    if len({node.domain(spec.cluster.levels[0]) for node, _ in gpus}) > 1:
        yield Link("", None)
    for outer, inner in pairwise((*spec.cluster.levels, SOCKET_LEVEL, ISLAND_LEVEL, GPU_LEVEL)):
        met: dict[str, set[str | None]] = {}
        hosts: dict[str, Node] = {}
        for node, gpu in gpus:
            if (path := _home(spec, node, gpu, outer)) is not None:
                met.setdefault(path, set()).add(_home(spec, node, gpu, inner))
                hosts[path] = node
        if shared := [hosts[path] for path, parts in met.items() if len(parts) > 1]:
            yield Link(outer, _bandwidth(spec, outer, shared))


def _home(spec: Spec, node: Node, gpu: int, level: str) -> str | None:
    """Return the domain of a GPU; inside a node it holds those that are nearer, so that levels nest there too.

    GPUs of an island are one to a socket in it; without NVLink each is an island of its own.
    """
    if level not in (SOCKET_LEVEL, ISLAND_LEVEL, GPU_LEVEL):
        return node.domain(level)
    around = 1 << gpu
    if level != GPU_LEVEL and _coupled(spec, node):
        around |= next(mask for mask in node.parts(ISLAND_LEVEL) if holds(mask, 1 << gpu))
    if level == SOCKET_LEVEL and node.sockets:
        around |= next(mask for mask in node.parts(SOCKET_LEVEL) if holds(mask, 1 << gpu))
    return f"{node.name}/{around}"


def _coupled(spec: Spec, node: Node) -> bool:
    return bool(node.islands or _nvlink(spec, node) is not None)


def _nvlink(spec: Spec, node: Node) -> int | None:
    """Return the bandwidth inside an island of a node: what the cluster says, else what its accelerator has."""
    card = spec.accelerators.get(node.accelerator or "")
    return spec.cluster.bandwidth.get(ISLAND_LEVEL, (card.nvlink if card else 0) or None)


def _bandwidth(spec: Spec, level: str, nodes: Iterable[Node]) -> int | None:
    """Return the least bandwidth at a level of some nodes; what is not told inside them is that of `node`."""
    told = spec.cluster.bandwidth
    if level == SOCKET_LEVEL:
        return told.get(SOCKET_LEVEL, told.get(NODE_LEVEL))
    if level != ISLAND_LEVEL:
        return told.get(level)
    known = [width if (width := _nvlink(spec, node)) is not None else told.get(NODE_LEVEL) for node in nodes]
    return None if None in known else min(width for width in known if width is not None)
