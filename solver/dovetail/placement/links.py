"""How wide the narrowest link between the GPUs of a gang is (S1.2): told, and not planned by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dovetail.placement.place import Place
from dovetail.spec import Node, Spec
from dovetail.spec.cluster import NODE_LEVEL
from dovetail.spec.inside import ISLAND_LEVEL


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
    cluster = spec.cluster
    if len({node.domain(cluster.levels[0]) for node, _ in gpus}) > 1:
        yield Link("", None)
    for outer, inner in zip(cluster.levels, (*cluster.levels[1:], ISLAND_LEVEL), strict=True):
        met: dict[str | None, set[str | None]] = {}
        for node, gpu in gpus:
            met.setdefault(node.domain(outer), set()).add(_inside(node, gpu, inner))
        if any(path is not None and len(parts) > 1 for path, parts in met.items()):
            yield Link(outer, cluster.bandwidth.get(outer))
    islands: dict[str, list[Node]] = {}
    for node, gpu in gpus:
        islands.setdefault(node.domains_inside(ISLAND_LEVEL, 1 << gpu)[0], []).append(node)
    shared = [members[0] for members in islands.values() if len(members) > 1]
    if shared:
        known = [_inside_island(spec, node) for node in shared]
        yield Link(ISLAND_LEVEL, None if None in known else min(width for width in known if width is not None))


def _inside(node: Node, gpu: int, level: str) -> str | None:
    return node.domains_inside(level, 1 << gpu)[0] if level == ISLAND_LEVEL else node.domain(level)


def _inside_island(spec: Spec, node: Node) -> int | None:
    """Return the bandwidth of NVLink, where there is none that of the node's own level."""
    card = spec.accelerators.get(node.accelerator or "")
    return (card.nvlink if card else 0) or spec.cluster.bandwidth.get(NODE_LEVEL)
