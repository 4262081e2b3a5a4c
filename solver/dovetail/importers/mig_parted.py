"""What GPUs are cut into today, from mig-parted's configurations and the nodes' labels.

The operator's MIG manager applies to each node the configuration that its label `nvidia.com/mig.config` names, and
tells by `nvidia.com/mig.config.state` how that went. Configurations give counts of profiles and no starts, so neither
does the Placement made of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dovetail.build import build
from dovetail.catalogue import device_ids
from dovetail.documents import load_project
from dovetail.faults import FaultLog, nearest
from dovetail.importers import emit
from dovetail.importers.foreign import Foreign, single
from dovetail.importers.partedfile import Entry, Parted, last_match, read_parted
from dovetail.importers.project import ImportedProject
from dovetail.mig import Geometry, arrange
from dovetail.spec import Node, Spec

CONFIG: Final = "nvidia.com/mig.config"
STATE: Final = "nvidia.com/mig.config.state"
DONE: Final = "success"
FILE: Final = "placement.yaml"
_ITEMS: Final = "kubectl get nodes -o json prints one"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A node of the cluster's own inventory, with the configuration that its label names."""

    name: str
    config: str
    at: int


def import_mig_parted(configs: Path, nodes: Path, project: Path) -> ImportedProject:
    """Turn configurations and labels into a Placement that tells each GPU's layout.

    Parameters
    ----------
    configs : a configuration file of mig-parted.
    nodes : what `kubectl get nodes -o json` prints; nodes without the label are left alone.
    project : the project's documents, which say how many GPUs of which product each node has.

    Raises
    ------
    dovetail.faults.Refused
        With all that is wrong with any of them.
    """
    log = FaultLog()
    spec = build(load_project(project), as_of=dt.date.min)
    parted, inventory = read_parted(configs, log), single(nodes, log, "a list of nodes")
    rows: dict[str, list[str]] = {}
    if parted is not None and inventory is not None:
        for labelled in _labelled(inventory):
            rows |= _layouts(spec, parted, inventory, labelled)
    log.raise_if_errors()
    return ImportedProject({FILE: _placement(rows)}, frozenset({FILE}))


def _placement(rows: Mapping[str, list[str]]) -> str:
    gpus = {gpu: {"mode": "mig", "instances": rows[gpu]} for gpu in sorted(rows)}
    lines = [f"    {emit.text(gpu)}: {emit.inline(row)}" for gpu, row in gpus.items()]
    heading = emit.comment(
        "What GPUs are cut into, by mig-parted's configurations and the labels of nodes; starts are the tool's.",
        "What runs on them is to be told under 'placements'.",
    )
    body = ["  placements: {}", *(["  gpus:", *lines] if lines else ["  gpus: {}"])]
    return emit.file(heading, [emit.document("Placement", {"name": "today"}, body)])


def _labelled(inventory: Foreign) -> Iterator[Labelled]:
    """Yield the nodes that name a configuration, after checking that it has been applied."""
    items = inventory.value.get("items")
    if not isinstance(items, list):
        inventory.fault("DT1957", "a list of nodes has 'items'", hint=_ITEMS)
        return
    for index, item in enumerate(items):
        metadata = item.get("metadata") if isinstance(item, dict) else None
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str):
            inventory.fault("DT1957", "a node has a name in its metadata", "items", index, hint=_ITEMS)
        elif isinstance(labels, dict) and CONFIG in labels and _applied(inventory, name, labels, index):
            yield Labelled(name, str(labels[CONFIG]), index)


def _applied(inventory: Foreign, name: str, labels: Mapping[str, Any], index: int) -> bool:
    if labels.get(STATE) == DONE:
        return True
    there = STATE in labels
    told = f"its configuration's state is '{labels[STATE]}'" if there else f"it has no label {STATE}"
    message = f"what the GPUs of '{name}' are cut into is not known: {told}"
    hint = f"wait until that is '{DONE}', or leave the node out"
    inventory.fault("DT1958", message, "items", index, "metadata", "labels", STATE if there else CONFIG, hint=hint)
    return False


def _layouts(spec: Spec, parted: Parted, inventory: Foreign, labelled: Labelled) -> dict[str, list[str]]:
    """Return the profiles on each GPU of a node in MIG mode, by `node/index`."""
    at = ("items", labelled.at, "metadata")
    node = spec.cluster.by_name.get(labelled.name)
    if node is None:
        near = nearest(labelled.name, spec.cluster.by_name)
        hint = f"did you mean {near}?" if near else "the project's Cluster names the nodes"
        inventory.fault("DT1308", f"there is no node '{labelled.name}'", *at, "name", hint=hint)
        return {}
    entries = parted.configs.get(labelled.config)
    if entries is None:
        near = nearest(labelled.config, parted.configs)
        hint = f"did you mean {near}?" if near else f"the file has {', '.join([*parted.configs][:5]) or 'none'}"
        message = f"there is no configuration '{labelled.config}'"
        inventory.fault("DT1958", message, *at, "labels", CONFIG, hint=hint)
        return {}
    card = spec.accelerators[node.accelerator] if node.accelerator else None
    found: dict[str, list[str]] = {}
    for gpu in range(node.gpus):
        entry = last_match(entries, gpu, device_ids(node.accelerator or ""))
        if entry is None:
            message = f"no entry of '{labelled.config}' is for GPU {gpu} of '{node.name}'"
            inventory.fault(
                "DT1958", message, *at, "labels", CONFIG, hint="an entry with {devices: all} is for every GPU"
            )
        elif entry.enabled:
            found[f"{node.name}/{gpu}"] = _instances(parted.file, entry, node, card.mig if card else None)
    return found


def _instances(file: Foreign, entry: Entry, node: Node, geometry: Geometry | None) -> list[str]:
    """Return the profiles of one GPU, largest first, each as often as there are instances of it."""
    at = (*entry.path, "mig-devices")
    inner = [profile for profile in entry.counts if "c." in profile]
    if inner:
        message = f"'{inner[0]}' is a compute instance inside of a GPU instance, which no document can say"
        hint = f"name the GPU instance, {inner[0].partition('c.')[2]}, alone"
        file.fault("DT1958", message, *at, inner[0], hint=hint, of_key=True)
        return []
    placed = None if geometry is None else arrange(geometry, entry.counts)
    if geometry is None or placed is None:
        what = ", ".join(f"{number} x {profile}" for profile, number in entry.counts.items()) or "MIG"
        message = f"{what}: no '{node.accelerator}' can be cut so, and '{node.name}' has that"
        file.fault("DT1958", message, *at, hint=f"dovetail accelerators {node.accelerator}")
        return []
    return [profile.name for profile in geometry.profiles for _ in range(entry.counts.get(profile.name, 0))]
