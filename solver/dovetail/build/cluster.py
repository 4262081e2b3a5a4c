"""The cluster: node groups spelt out into nodes (S1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Final

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor, frozen
from dovetail.build.domains import place_nodes
from dovetail.build.inside import read_inside
from dovetail.build.names import spelt_out
from dovetail.build.partitions import read_layout
from dovetail.build.sharing import read_sharing
from dovetail.documents import Document
from dovetail.quantities import parse_cpu, parse_memory, parse_milli, parse_money
from dovetail.spec import Cluster, Layout, Node, NodeGroup, Taint
from dovetail.spec.cluster import GPU_LEVEL, NODE_LEVEL
from dovetail.spec.inside import INNER_LEVELS
from dovetail.spec.workload import MILLI

MOST_NODES: Final = 200_000
_MOST_LEVELS: Final = 16
_CAPACITIES: Final[Mapping[str, tuple[Callable[[Any], int], Callable[[Any], int]]]] = {
    "cpu": (parse_cpu, parse_cpu),
    "memory": (partial(parse_memory, rounding="down"), partial(parse_memory, rounding="up")),
}
"""How an offered and a reserved amount are read: neither rounding promises what is not there."""


@dataclass(slots=True)
class _Reader:
    """What the groups of a cluster have in common while they are read.

    `owner` maps each node name to its group.
    """

    models: Models
    levels: tuple[str, ...]
    overrides: Mapping[str, Cursor]
    owner: dict[str, str] = field(default_factory=dict)
    left: int = MOST_NODES


def read_cluster(document: Document, here: Cursor, models: Models) -> Cluster:
    """Return the cluster of a document; faults go to the log."""
    levels = _levels(here)
    reader = _Reader(models, levels, dict(here.fields("nodes")))
    nodes: list[Node] = []
    groups: dict[str, NodeGroup] = {}
    for group in here.items("nodeGroups"):
        name = group.raw("name")
        if name in groups:
            group["name"].fault("DT1307", f"the node group '{name}' is declared twice")
        groups[name], found = _group(reader, group)
        nodes += found
    for name, override in reader.overrides.items():
        if name not in reader.owner:
            hint = override.log.suggest(name, reader.owner)
            override.fault("DT1308", f"there is no node '{name}'", hint, of_key=True)
    return Cluster(
        document.name,
        levels,
        tuple(nodes),
        tuple(groups.values()),
        reconfiguration=here.raw("reconfiguration"),
        positions=here.raw("positions", "enforced"),
        bandwidth=_bandwidth(here),
    )


def _bandwidth(here: Cursor) -> Mapping[str, int]:
    """Return the bandwidths that levels say, in MB/s."""
    told = [level for level in here.items("levels") if "bandwidthGBs" in level.value]
    return {level.raw("name"): level.amount("bandwidthGBs", parse_milli) for level in told}


def _levels(here: Cursor) -> tuple[str, ...]:
    """Return the levels, outermost first; always such that they end in `node`."""
    found: list[str] = []
    inside: list[str] = []
    if sum(level.raw("name") not in INNER_LEVELS for level in here.items("levels")) > _MOST_LEVELS:
        here["levels"].fault("DT1420", f"a cluster has at most {_MOST_LEVELS} levels")
        return (NODE_LEVEL,)
    for level in here.items("levels"):
        name = level.raw("name")
        if name in (*found, *inside):
            level["name"].fault("DT1417", f"the level '{name}' is declared twice")
        elif name == GPU_LEVEL or name in INNER_LEVELS:
            _check_inside(level, after=NODE_LEVEL in found)
            inside.append(name)
        elif NODE_LEVEL in found:
            level["name"].fault("DT1419", f"the level '{name}' comes after 'node'", "'node' is the last level")
        else:
            found.append(name)
    if "levels" in here.value and NODE_LEVEL not in found:
        here["levels"].fault("DT1419", "the last level must be 'node'", "add {name: node} at the end")
    return (*(name for name in found if name != NODE_LEVEL), NODE_LEVEL)


def _check_inside(level: Cursor, *, after: bool) -> None:
    """Refuse a level inside the node that is declared like one around it: nodes say themselves what they hold."""
    name = level.raw("name")
    told = f"'{name}' is a level inside the node, and not for the cluster to declare"
    if name == GPU_LEVEL:
        level["name"].fault("DT1418", told)
    elif not after or "bandwidthGBs" not in level.value:
        example = f"{{name: {name}, bandwidthGBs: 64}}"
        level["name"].fault("DT1418", told, f"after 'node' it may say its bandwidth: {example}")


def _group(reader: _Reader, group: Cursor) -> tuple[NodeGroup, list[Node]]:
    names = _names(reader, group)
    template = _template(reader, group)
    labels = [_labels(reader, template, name) for name in names]
    domains = place_nodes(group, reader.levels, names, labels)
    # Not `replace`, which takes ten times as long, and clusters have many nodes.
    shared = {spot.name: getattr(template, spot.name) for spot in fields(template)}
    make = partial(Node, **shared)
    nodes = [
        _node(reader, make(name=name, labels=labels[index], domains=domains[index]))
        for index, name in enumerate(names)
    ]
    kept = replace(template, domains=_common(domains))
    return NodeGroup(template.group, kept, tuple(names), "count" in group.value), nodes


def _common(domains: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """Return the domains that all nodes of a group share."""
    first = domains[0] if domains else {}
    distinct = {id(each): each for each in domains}.values()
    return {level: path for level, path in first.items() if all(each[level] == path for each in distinct)}


def _names(reader: _Reader, group: Cursor) -> list[str]:
    """Return the names of a group's nodes, those refused left out."""
    if ("count" in group.value) == ("names" in group.value):
        group.fault("DT1110", "a node group has either 'count' or 'names'")
        return []
    found: list[str] = []
    for here, names in _spelt(reader, group):
        twice = []
        for name in names:
            if name in reader.owner:
                twice.append(name)
            else:
                reader.owner[name] = group.raw("name")
                found.append(name)
        if twice:
            others = f" (and {len(twice) - 1} more)" if len(twice) > 1 else ""
            where = f"the group '{reader.owner[twice[0]]}'"
            here.fault("DT1404", f"the node '{twice[0]}'{others} is there already, in {where}")
    return found


def _spelt(reader: _Reader, group: Cursor) -> Iterator[tuple[Cursor, list[str]]]:
    """Yield the names of a group's nodes with the place that gives them."""
    if "count" in group.value:
        here = group["count"]
        if here.value > reader.left:
            here.fault("DT1403", f"{here.value:,} nodes are more than {MOST_NODES:,} in all")
            return
        reader.left -= here.value
        yield here, [f"{group.raw('name')}-{index:03d}" for index in range(here.value)]
    else:
        for here in group.items("names"):
            names = spelt_out(here, reader.left, f"a cluster may have ({MOST_NODES:,} nodes)")
            reader.left -= len(names)
            yield here, names


def _template(reader: _Reader, group: Cursor) -> Node:
    """Return a node of the group without name, domains and overrides."""
    gpus, accelerator = _gpus(reader, group)
    cpu, memory = _capacity(group)
    islands, sockets = read_inside(group, group.raw("gpus"))
    mechanism = group["sharing"].raw("mechanism") if "sharing" in group.value else None
    return Node(
        name="",
        group=group.raw("name"),
        cpu=cpu,
        memory=memory,
        gpus=gpus,
        accelerator=accelerator,
        resources=frozen(group.raw("resources", {})),
        labels=frozen(group.raw("labels", {})),
        taints=tuple(Taint(t["key"], t.get("value", ""), t["effect"]) for t in group.raw("taints", ())),
        mechanism=mechanism or "devicePlugin",
        mig_strategy=group.raw("migStrategy", "mixed"),
        sharing=read_sharing(group, accelerator) if gpus else None,
        price=group.amount("pricePerHour", parse_money),
        gpu_price=group.amount("pricePerGpuHour", parse_money),
        islands=islands,
        sockets=sockets,
    )


def _gpus(reader: _Reader, group: Cursor) -> tuple[int, str | None]:
    gpus, here = group.raw("gpus"), group.get("accelerator")
    if here is None:
        if gpus:
            group["gpus"].fault("DT1406", f"{gpus} GPUs, and 'accelerator' does not say which")
        return 0, None
    if not gpus:
        here.fault("DT1407", "an accelerator, and 'gpus' is 0", "leave it out")
        return 0, None
    accelerator = reader.models.resolve(here)
    return (gpus, accelerator) if accelerator else (0, None)


def _capacity(group: Cursor) -> tuple[int, int]:
    """Return what workloads may have of cpu and memory: the capacity, less what is reserved (S1.3)."""
    reserved = group.get("reserved")
    left = []
    for key, (offered, held_back) in _CAPACITIES.items():
        before = group.log.size
        whole = group.amount(key, offered)
        kept = reserved.amount(key, held_back) if reserved else 0
        if reserved and kept > whole and group.log.size == before:
            reserved[key].fault("DT1405", f"more {key} is reserved than the node has")
        left.append(max(0, whole - kept))
    return left[0], left[1]


def _labels(reader: _Reader, template: Node, name: str) -> Mapping[str, str]:
    """Return a node's labels: its own over those of its group."""
    here = reader.overrides.get(name)
    own = here.raw("labels") if here else None
    return frozen({**template.labels, **own}) if own else template.labels


def _node(reader: _Reader, node: Node) -> Node:
    """Return a node with what its override says of its health."""
    here = reader.overrides.get(node.name)
    if here is None:
        return node
    for gpu in here.items("failedGpus"):
        if gpu.value >= node.gpus:
            gpu.fault("DT1408", f"GPU {gpu.value} cannot have failed: '{node.name}' has {node.gpus} GPUs")
    return replace(
        node,
        cordoned=here.raw("cordoned", False),
        down=here.raw("failed", False),
        failed_gpus=frozenset(here.raw("failedGpus", ())),
        mig_layout=_layouts(reader, node, here),
        speed=_speed(here),
    )


def _speed(here: Cursor) -> int:
    """Return a node's speed in thousandths."""
    place = here.get("speed")
    found = place.quantity(parse_milli, MILLI) if place else MILLI
    if place and not found:
        place.fault("DT1428", "a node without any speed", "say 'failed: true' where it does no work")
    return found


def _layouts(reader: _Reader, node: Node, here: Cursor) -> Mapping[int, Layout]:
    """Return today's MIG instances of a node's GPUs, by index."""
    found: dict[int, Layout] = {}
    for text, own in here.fields("migLayout"):
        if int(text) >= node.gpus:
            own.fault("DT1431", f"there is no GPU {text}: '{node.name}' has {node.gpus} GPUs", of_key=True)
        elif node.accelerator:
            card = reader.models.by_id[node.accelerator]
            found[int(text)] = read_layout(here["migLayout"].items(text), card, reader.models.held_back) or ()
    return dict(sorted(found.items()))
