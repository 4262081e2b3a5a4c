"""Layouts of a plan as configurations of mig-parted, and what to do with each node (S5.4).

mig-parted knows counts of profiles per GPU and no starts. It clears a GPU whose counts differ from what is asked for,
and where the mode of any GPU changes it resets all GPUs of the node. A node has one configuration, named by its
label; names are made of what stands in a configuration, so that equal nodes share one and a changed one has another.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dovetail.importers import emit
from dovetail.mig import Geometry, Instance
from dovetail.placement import View
from dovetail.placement.clients import told_settings
from dovetail.placement.layouts import declared_layouts
from dovetail.plan import Plan
from dovetail.rules import context_of
from dovetail.spec import Node, PresentReplica, Spec
from dovetail.spec.cluster import Strategy

CONFIG_LABEL: Final = "nvidia.com/mig.config"
CONFIG_FILE: Final = "config.yaml"
NODES_FILE: Final = "nodes.yaml"
_FEW: Final = 5

Layouts = Mapping[str, Sequence[Instance]]
"""The instances of each GPU in MIG mode, by `node/index`; other GPUs are not cut."""


@dataclass(frozen=True, slots=True)
class NodeSteps:
    """What is to be done with one node.

    Parameters
    ----------
    config : the name of its configuration.
    changes : indices of GPUs that are cut anew, or whose mode changes.
    drain : replicas of today, as text, on GPUs that mig-parted clears or resets for that.
    strategy : what the device plugin of the node is set to.
    """

    config: str
    changes: tuple[int, ...]
    drain: tuple[str, ...]
    strategy: Strategy = "mixed"


def export_mig_parted(spec: Spec, planned: Layouts, today: Layouts) -> dict[str, str]:
    """Return the texts of a configuration file and of the steps per node, by file name.

    Parameters
    ----------
    planned : the layouts of the plan.
    today : the layouts of today.
    """
    nodes = _nodes(spec)
    entries = {node.name: _entries(spec, node, planned) for node in nodes}
    names = {node: _name(rows) for node, rows in entries.items()}
    configs = {names[node]: rows for node, rows in sorted(entries.items())}
    steps = {node.name: _steps(spec, node, names[node.name], planned, today) for node in nodes}
    return {CONFIG_FILE: _config_file(configs), NODES_FILE: _nodes_file(steps)}


def uncounted(spec: Spec, plan: Plan) -> tuple[str, ...]:
    """Return a warning where more is drained than the plan counts as disturbed, and what would count it (S5.4)."""
    today = declared_layouts(spec)
    told = context_of(spec).view(plan.placements).as_told(plan.gpus, told_settings(spec.cluster, plan.shared))
    found: dict[str, bool] = {}
    for node in _nodes(spec):
        changes, cleared = _cleared(spec, node, plan.gpus, today)
        for running in _on(spec, node, cleared):
            if _stays(told, running):
                found[str(running.replica)] = set(changes).isdisjoint(running.gpus)
    if not found:
        return ()
    more = f" and {len(found) - _FEW} more" if len(found) > _FEW else ""
    named = ", ".join(sorted(found)[:_FEW]) + more
    unit = "node" if any(found.values()) else "gpu"
    return (
        f"mig-parted drains {named}, which the plan counts as undisturbed; plans of a cluster with "
        f"'reconfiguration: {unit}' count that",
    )


def _stays(told: View, running: PresentReplica) -> bool:
    """Tell whether a plan leaves a replica in peace."""
    place = told.today.places.get(running.replica)
    return place is not None and told.places.get(running.replica) == place and running.replica not in told.restarted


def _nodes(spec: Spec) -> list[Node]:
    """Return the nodes whose GPUs can be cut."""
    return [node for node in spec.cluster.nodes if node.gpus and _geometry(spec, node) is not None]


def _geometry(spec: Spec, node: Node) -> Geometry | None:
    return spec.accelerators[node.accelerator].mig if node.accelerator else None


def _entries(spec: Spec, node: Node, planned: Layouts) -> list[dict[str, emit.Value]]:
    """Return an entry for each GPU of a node: mig-parted wants every one matched."""
    geometry = _geometry(spec, node)
    assert geometry is not None
    return [_entry(geometry, index, planned.get(f"{node.name}/{index}")) for index in range(node.gpus)]


def _entry(geometry: Geometry, index: int, layout: Sequence[Instance] | None) -> dict[str, emit.Value]:
    if layout is None:
        return {"devices": [index], "mig-enabled": False}
    counts = Counter(instance.profile for instance in layout)
    ordered = {one.name: counts[one.name] for one in geometry.profiles if counts[one.name]}
    return {"devices": [index], "mig-enabled": True, "mig-devices": ordered}


def _name(entries: Sequence[Mapping[str, emit.Value]]) -> str:
    text = json.dumps(entries, sort_keys=True)
    return f"dovetail-{hashlib.sha256(text.encode('ascii')).hexdigest()[:10]}"


def _steps(spec: Spec, node: Node, config: str, planned: Layouts, today: Layouts) -> NodeSteps:
    changes, cleared = _cleared(spec, node, planned, today)
    drain = tuple(str(running.replica) for running in _on(spec, node, cleared))
    return NodeSteps(config, changes, drain, node.mig_strategy)


def _cleared(spec: Spec, node: Node, planned: Layouts, today: Layouts) -> tuple[tuple[int, ...], Sequence[int]]:
    """Return the indices of GPUs that change, and of those that are cleared or reset for that."""
    before = {index: _counts(today.get(f"{node.name}/{index}")) for index in range(node.gpus)}
    after = {index: _counts(planned.get(f"{node.name}/{index}")) for index in range(node.gpus)}
    changes = tuple(index for index in before if before[index] != after[index])
    toggled = any((before[index] is None) != (after[index] is None) for index in changes)
    return changes, range(node.gpus) if toggled or (changes and spec.cluster.unit == "node") else changes


def _counts(layout: Sequence[Instance] | None) -> Mapping[str, int] | None:
    return None if layout is None else Counter(instance.profile for instance in layout)


def _on(spec: Spec, node: Node, gpus: Sequence[int]) -> Iterator[PresentReplica]:
    """Yield the replicas that run on some GPUs of a node today."""
    for running in spec.current.replicas:
        if running.node == node.name and not set(gpus).isdisjoint(running.gpus):
            yield running


def _config_file(configs: Mapping[str, Sequence[Mapping[str, emit.Value]]]) -> str:
    lines = emit.comment(
        "Configurations of mig-parted. Its starts are its own choice; nodes.yaml says the device plugin's strategy.",
    )
    lines += ["version: v1", "mig-configs:"]
    for name in sorted(configs):
        lines += [f"  {name}:", *(f"  - {emit.inline(entry)}" for entry in configs[name])]
    return "\n".join(lines) + "\n"


def _nodes_file(steps: Mapping[str, NodeSteps]) -> str:
    lines = emit.comment(
        "A node with changes: cordon it, drain the replicas listed, set the label, wait until mig.config.state is",
        "success, uncordon it. Elsewhere the label names what is there already.",
    )
    lines += ["strategy: mixed", "nodes:"]
    for name in sorted(steps):
        step = steps[name]
        row: dict[str, emit.Value] = {"labels": {CONFIG_LABEL: step.config}}
        if step.strategy != "mixed":
            row["strategy"] = step.strategy
        if step.changes:
            row |= {"changes": list(step.changes), "drain": list(step.drain)}
        lines.append(f"  {emit.text(name)}: {emit.inline(row)}")
    return "\n".join(lines) + "\n"
