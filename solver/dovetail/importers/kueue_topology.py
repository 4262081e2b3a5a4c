"""Kueue's `Topology` with the cluster's nodes: levels by node labels, as topology-aware scheduling reads them.

Formats: kueue.x-k8s.io Topology (`spec.levels[].nodeLabel`, outermost first) and what `kubectl get nodes -o json`
prints. The level `kubernetes.io/hostname` is the node itself. Nodes that lack the label of a level are left out, as
Kueue leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dovetail.faults import FaultLog, Position, nearest
from dovetail.importers.clusterfile import NODE_NAME, Host, few, project
from dovetail.importers.foreign import Foreign, read, single
from dovetail.importers.project import ImportedProject
from dovetail.quantities import QuantityError, parse_cpu, parse_memory

HOSTNAME: Final = "kubernetes.io/hostname"
GPUS: Final = "nvidia.com/gpu"
GPUS_SHARED: Final = "nvidia.com/gpu.shared"
PRODUCT: Final = "nvidia.com/gpu.product"
COUNT: Final = "nvidia.com/gpu.count"
REPLICAS: Final = "nvidia.com/gpu.replicas"
_MIG_RESOURCES: Final = "nvidia.com/mig-"
_SHARED: Final = "-SHARED"
_RESERVED: Final = {"node", "gpu", "island", "socket"}
_MOST_GPUS: Final = 256
_OTHER_GPUS: Final = ("amd.com/gpu", "gpu.intel.com/", "habana.ai/gaudi")
_MILLI: Final = re.compile(r"([0-9]{1,40})m", re.ASCII)
_At = tuple[str | int, ...]  # where something is in a file
_EXAMPLE: Final = "such as {levels: [{nodeLabel: topology.kubernetes.io/zone}, {nodeLabel: kubernetes.io/hostname}]}"


def import_kueue_topology(topology: Path, nodes: Path) -> ImportedProject:
    """Turn a Topology and the cluster's nodes into the documents of a cluster.

    Parameters
    ----------
    topology : a file with one Topology; other objects in it are left alone.
    nodes : what `kubectl get nodes -o json` (or `-o yaml`) prints.

    Raises
    ------
    dovetail.faults.Refused
        With all that is wrong with either file.
    """
    log = FaultLog()
    labels = _labels(topology, log)
    inventory = single(nodes, log, "a list of nodes")
    log.raise_if_errors()
    hosts = list(_hosts(inventory, labels, log)) if inventory is not None else []
    if not hosts and not log.errors:
        _none_has(labels, nodes, inventory, log)
    log.raise_if_errors()
    heading = (
        f"A cluster made by `dovetail import kueue-topology` from {topology.name} and {nodes.name}.",
        "Amounts are what is allocatable; taints and resources other than CPU, memory and GPUs are not part of it.",
        *_left_out(inventory, hosts),
    )
    if inventory is not None:
        _tell_left_out(inventory, labels)
    made = project("kueue", heading, list(_levels(labels).values()), hosts)
    return replace(made, warnings=log.warnings)


def _labels(path: Path, log: FaultLog) -> list[str]:
    """Return the labels of the levels outside the node, outermost first."""
    before = len(log.errors)
    found = [each for each in read(path, log) if each.value.get("kind") == "Topology"]
    if len(found) != 1:
        if len(log.errors) == before:
            message = f"{path} holds {len(found) or 'no'} Topology objects, and one was expected"
            log.add(
                "DT1957", message, Position(str(path), 1, 1), "kubectl get topologies.kueue.x-k8s.io NAME -o yaml"
            )
        return []
    return _labels_of(found[0])


def _labels_of(file: Foreign) -> list[str]:
    spec = file.value.get("spec")
    levels = spec.get("levels") if isinstance(spec, dict) else None
    if not isinstance(levels, list) or not levels:
        message = "a Topology has 'spec.levels', a list of node labels"
        file.fault("DT1957", message, *(["spec"] if spec else []), hint=_EXAMPLE)
        return []
    found: list[str] = []
    for number, level in enumerate(levels):
        label = level.get("nodeLabel") if isinstance(level, dict) else None
        if not isinstance(label, str):
            file.fault("DT1957", "a level has 'nodeLabel'", "spec", "levels", number, hint=_EXAMPLE)
        elif label in found:
            message = f"the label '{label}' is there twice"
            file.fault("DT1957", message, "spec", "levels", number, hint="every level has a label of its own")
        elif label == HOSTNAME and number + 1 < len(levels):
            message = "the hostname is the innermost level"
            file.fault("DT1957", message, "spec", "levels", number, hint="write it last, or leave it out")
        elif label != HOSTNAME:
            found.append(label)
    return found


def _levels(labels: list[str]) -> Mapping[str, str]:
    """Return a name for each label's level: the last part of the label, told apart where that is taken."""
    found: dict[str, str] = {}
    for label in labels:
        last = re.sub(r"[^a-z0-9]+", "-", label.rsplit("/", 1)[-1].lower()).strip("-")[:50] or "level"
        name = last.removeprefix("topology-") or last
        taken = {*_RESERVED, *found.values()}
        found[label] = next(n for n in (name, *(f"{name}-{i}" for i in range(2, 99))) if n not in taken)
    return found


def _hosts(inventory: Foreign, labels: list[str], log: FaultLog) -> Iterator[Host]:
    items = inventory.value.get("items")
    if not isinstance(items, list):
        inventory.fault("DT1957", "a list of nodes has 'items'", hint="kubectl get nodes -o json prints one")
        return
    seen: set[str] = set()
    for number, item in enumerate(items):
        host = _host(inventory, item, ("items", number), labels)
        if host is not None and host.name in seen:
            message = f"the node '{host.name}' is there twice"
            inventory.fault("DT1957", message, "items", number, hint="export the nodes of one cluster")
        elif host is not None:
            seen.add(host.name)
            yield host


def _left_out(inventory: Foreign | None, hosts: Sequence[Host]) -> Iterator[str]:
    """Tell how many nodes lack the label of a level."""
    number = len(inventory.value["items"]) - len(hosts) if inventory is not None else 0
    if number:
        yield f"Left out, as they lack the label of a level: {number} of {number + len(hosts)} nodes."


def _tell_left_out(inventory: Foreign, labels: Sequence[str]) -> None:
    """Warn of the nodes that lack the label of a level, and of those with GPUs that are not read."""
    hint = "they are no part of the cluster that is made, as Kueue leaves them out"
    _tell(inventory, lambda item: _lacking(item, labels), "left out for lack of the label {}: {}", hint)
    hint = f"GPUs are read where {GPUS} is allocatable; declare others in the Cluster that is made"
    message = "no GPUs of nodes are imported that have {}: {}"
    _tell(inventory, lambda item: _unread(item) if _lacking(item, labels) is None else None, message, hint)


def _tell(inventory: Foreign, sign_of: Callable[[Any], str | None], message: str, hint: str) -> None:
    """Warn of the nodes that have a sign, once for each sign; `message` has room for it and for their names."""
    found: dict[str, list[tuple[int, str]]] = {}
    for number, item in enumerate(inventory.value["items"]):
        if (sign := sign_of(item)) is not None:
            found.setdefault(sign, []).append((number, item["metadata"]["name"]))
    for sign, nodes in found.items():
        told = message.format(sign, few([name for _, name in nodes]))
        inventory.warning("DT1959", told, "items", nodes[0][0], "metadata", "name", hint=hint)


def _lacking(item: Any, labels: Sequence[str]) -> str | None:
    """Return the first label that a node lacks, None where it has all."""
    has = _mapping(_mapping(item, "metadata"), "labels")
    return next((label for label in labels if label not in has), None)


def _unread(item: Any) -> str | None:
    """Return the resource or label that tells of GPUs of a node that are not read, None without one."""
    has, free = _mapping(_mapping(item, "metadata"), "labels"), _mapping(_mapping(item, "status"), "allocatable")
    resource = next((key for key in free if key.startswith(_OTHER_GPUS) and str(free[key]) != "0"), None)
    if resource is not None or {GPUS, GPUS_SHARED} & free.keys():
        return resource
    return COUNT if str(has.get(COUNT, "0")) != "0" else None


def _none_has(labels: Sequence[str], nodes: Path, inventory: Foreign | None, log: FaultLog) -> None:
    """Tell that no node has all labels, and which label nodes have instead."""
    items = inventory.value.get("items") if inventory is not None else None
    known = {label for item in items or () for label in _mapping(_mapping(item, "metadata"), "labels")}
    missing = next((label for label in labels if label not in known), "")
    near = nearest(missing, known)
    hint = f"did you mean {near}?" if near else "kubectl get nodes --show-labels lists what they have"
    what = f"no node of {nodes} has the label {missing}" if missing else f"no node of {nodes} has {', '.join(labels)}"
    log.add("DT1957", what, Position(str(nodes), 1, 1), hint)


def _host(inventory: Foreign, item: Any, at: _At, labels: list[str]) -> Host | None:
    metadata, status, spec = (_mapping(item, key) for key in ("metadata", "status", "spec"))
    name, has = metadata.get("name"), _mapping(metadata, "labels")
    if not isinstance(name, str) or not NODE_NAME.fullmatch(name):
        hint = "letters, digits, '-', '_' and '.'; kubectl get nodes -o json prints 'metadata.name'"
        inventory.fault("DT1957", "a node has a name in its metadata", *at, hint=hint)
        return None
    if _lacking(item, labels) is not None:
        return None
    domains = tuple(str(has[label]) for label in labels)
    for label, domain in zip(labels, domains, strict=True):
        if not NODE_NAME.fullmatch(domain):
            message, hint = f"{domain[:40]!r} cannot name a domain", "letters, digits, '-', '_' and '.'"
            inventory.fault("DT1957", message, *at, "metadata", "labels", label, hint=hint)
    free = _mapping(status, "allocatable")
    cpu, memory = _amount(inventory, free, at, "cpu"), _amount(inventory, free, at, "memory")
    gpus = _gpus(inventory, has, free, at)
    if gpus is None:
        return None
    state = "" if _ready(status) else "failed"
    if spec.get("unschedulable") is True:
        state = state or "cordoned"
    model = str(has.get(PRODUCT, "unknown")).removesuffix(_SHARED) if gpus else ""
    return Host(name, domains, cpu, memory, gpus, model, state)


def _gpus(inventory: Foreign, has: Mapping[str, Any], free: Mapping[str, Any], at: _At) -> int | None:
    """Return how many GPUs a node has, None after a fault.

    What NVIDIA's device plugin shares by time or MPS it offers several times over (labels of GPU feature discovery:
    the product ends in ``-SHARED``, ``gpu.count`` are the GPUs, ``gpu.replicas`` how often each is offered). What it
    offers of a GPU that MIG cuts does not tell how many GPUs there are.
    """
    cut = [key for key in free if key.startswith(_MIG_RESOURCES) and str(free[key]) != "0"]
    product = str(has.get(PRODUCT, ""))
    if cut or "-MIG-" in product:
        where = ("status", "allocatable", cut[0]) if cut else ("metadata", "labels", PRODUCT)
        hint = "leave the node out of the list, and declare its GPUs in the Cluster that is made"
        inventory.fault("DT1957", "GPUs that MIG cuts are not imported", *at, *where, hint=hint)
        return None
    if not product.endswith(_SHARED) and GPUS_SHARED not in free:
        return _number(inventory, free.get(GPUS, "0"), (*at, "status", "allocatable", GPUS))
    labels = {key: (*at, "metadata", "labels", key) for key in (COUNT, REPLICAS)}
    if missing := [key for key in labels if key not in has]:
        hint = "GPU feature discovery writes nvidia.com/gpu.count and nvidia.com/gpu.replicas"
        inventory.fault("DT1957", f"a node whose GPUs are shared has the label {missing[0]}", *at, hint=hint)
        return None
    count, replicas = (_number(inventory, has[key], where) for key, where in labels.items())
    resource = GPUS_SHARED if GPUS_SHARED in free else GPUS
    place = (*at, "status", "allocatable", resource)
    offered = _number(inventory, free.get(resource, "0"), place, _MOST_GPUS * _MOST_GPUS)
    if count is None or replicas is None or offered is None:
        return None
    return min(count, offered // max(1, replicas))


def _number(inventory: Foreign, value: object, at: _At, most: int = _MOST_GPUS) -> int | None:
    """Return a number of GPUs, None after a fault."""
    text = str(value)
    if re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) and int(text) <= most:
        return int(text)
    message, hint = f"{text[:20]!r} is no number of GPUs", f"a whole number from 0 to {most}"
    inventory.fault("DT1957", message, *at, hint=hint)
    return None


def _ready(status: Mapping[str, Any]) -> bool:
    """Tell whether a node says nothing against being ready: its condition Ready is true, or it has none."""
    conditions = status.get("conditions")
    found = conditions if isinstance(conditions, list) else []
    return all(
        each.get("status") == "True" for each in found if isinstance(each, dict) and each.get("type") == "Ready"
    )


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _amount(inventory: Foreign, free: Mapping[str, Any], at: _At, key: str) -> int:
    hint = "'status.allocatable' of a node, such as {cpu: 95900m, memory: 1056Gi}"
    if key not in free:
        inventory.fault("DT1957", f"a node tells how much {key} is allocatable", *at, hint=hint)
        return 0
    try:
        return parse_cpu(free[key]) if key == "cpu" else _memory(free[key])
    except QuantityError as error:
        message = f"{key} that is allocatable: {error.message}"
        inventory.fault("DT1957", message, *at, "status", "allocatable", key, hint=error.hint or hint)
        return 0


def _memory(value: object) -> int:
    """Return MiB; Kubernetes may write thousandths of bytes, such as `128974848000m`."""
    milli = _MILLI.fullmatch(value) if isinstance(value, str) else None
    return parse_memory(int(milli[1]) // 1000 if milli else value, rounding="down")
