"""The Alibaba GPU trace 2023 ("openb") as documents.

Source: cluster-trace-gpu-v2023 of the Alibaba cluster data, published with "Beware of Fragmentation"
(Weng et al., USENIX ATC 2023).  A node has CPU, memory and GPUs of one model; a pod asks for CPU, memory
and either no GPU, thousandths of one GPU, or several whole ones, sometimes only of certain models.

The trace says nothing of policy, priority or tenants, and GPU memory is not part of a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from dovetail import hostlist
from dovetail.faults import FaultLog
from dovetail.importers import emit
from dovetail.importers.csvtable import Row, Table
from dovetail.importers.project import ImportedProject
from dovetail.quantities import format_cpu, format_memory, format_milli

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")

CATALOGUE: Mapping[str, str] = {
    "A10": "A10-24GB",
    "P100": "P100-16GB",
    "T4": "T4-16GB",
    "V100M16": "V100-16GB",
    "V100M32": "V100-32GB",
}
"""The trace's names of models that the built-in catalogue holds; every other gets a document."""

NAMESPACE = "trace"
STAND_IN_MEMORY = "32Gi"

_PROJECT = "dovetail.yaml"
_CLUSTER = "cluster.yaml"
_ACCELERATORS = "accelerators.yaml"
_WHOLE = "workloads/whole-gpus.yaml"
_SHARES = "workloads/shares.yaml"
_CPU_ONLY = "workloads/cpu-only.yaml"
_OWNED = frozenset({_PROJECT, _CLUSTER, _ACCELERATORS, _WHOLE, _SHARES, _CPU_ONLY})

_WHOLE_GPU = 1000
_MOST_GPUS = 256
_MODEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,22}[A-Za-z0-9])?")
_NODE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, order=True)
class NodeShape:
    """What nodes of one group have in common; `model` is the trace's name, empty without GPUs."""

    model: str
    gpus: int
    cpu: int
    memory: int


@dataclass(frozen=True, slots=True, order=True)
class PodShape:
    """What replicas of one workload have in common.

    `milli` is per GPU and 0 without any; `models` are the trace's names, each once, sorted, and empty
    where any model will do.
    """

    gpus: int
    milli: int
    cpu: int
    memory: int
    models: tuple[str, ...]

    @property
    def is_share(self) -> bool:
        """Whether a part of one GPU is asked for."""
        return self.gpus == 1 and self.milli < _WHOLE_GPU


def import_openb(nodes: Path, pods: Path) -> ImportedProject:
    """Turn the trace's nodes and one of its lists of pods into the documents of a project.

    Nodes alike become one node group that keeps their names; pods alike become one workload with a
    replica for each, named by how many there are.  The outcome does not depend on the order of rows.

    Parameters
    ----------
    nodes
        CSV with `NODE_COLUMNS`.
    pods
        CSV with `POD_COLUMNS`; other columns are allowed and not read.

    Raises
    ------
    dovetail.faults.Refused
        With all that is wrong with either file.
    """
    log = FaultLog()
    groups = _groups(Table(nodes, NODE_COLUMNS, log))
    shapes = _shapes(Table(pods, POD_COLUMNS, log))
    models = {shape.model for shape in groups if shape.model} | {m for shape in shapes for m in shape.models}
    _check_labels(models, log)
    log.raise_if_errors()
    files = {_PROJECT: _project(nodes, pods), _CLUSTER: _cluster(groups)}
    if others := sorted(models - CATALOGUE.keys()):
        files[_ACCELERATORS] = _accelerators(others)
    return ImportedProject(files | _workloads(shapes), _OWNED)


def accelerator(model: str) -> str:
    """Return the id of the accelerator that a model of the trace stands for."""
    return CATALOGUE.get(model) or f"openb-{_label(model)}"


# --- reading ---------------------------------------------------------------------------------


def _groups(table: Table) -> dict[NodeShape, list[str]]:
    """Return the names of the nodes of each shape; most nodes first."""
    groups: dict[NodeShape, list[str]] = {}
    seen: dict[str, int] = {}
    for row in table.rows:
        _check_node_name(row, seen)
        if shape := _node_shape(row):
            groups.setdefault(shape, []).append(row.cells["sn"])
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def _check_node_name(row: Row, seen: dict[str, int]) -> None:
    _check_unique(row, "sn", seen)
    name = row.cells["sn"]
    if name and not _NODE_NAME.fullmatch(name):
        hint = "letters, digits and, between them, '-', '_' and '.'"
        row.fault("DT1952", "sn", f"{name[:40]!r} cannot be the name of a node", hint)


def _check_unique(row: Row, column: str, seen: dict[str, int]) -> None:
    name = row.cells[column]
    if not name:
        row.fault("DT1952", column, f"{column} is empty, and must be a name")
    first = seen.setdefault(name, row.line)
    if name and first != row.line:
        row.fault("DT1953", column, f"{name!r} is already the name in line {first}")


def _node_shape(row: Row) -> NodeShape | None:
    """Return the shape of a node, None where a number cannot be read."""
    gpus, model = row.integer("gpu", _MOST_GPUS), row.cells["model"]
    cpu, memory = row.integer("cpu_milli"), row.integer("memory_mib")
    if gpus is None or cpu is None or memory is None:
        return None
    if gpus and not model:
        row.fault("DT1952", "model", "model is empty, and the node has GPUs")
    elif model and not gpus:
        row.fault("DT1952", "gpu", f"gpu is 0, and the model is {model}")
    elif model:
        _check_model(row, "model", model)
    return NodeShape(model, gpus, cpu, memory)


def _check_model(row: Row, column: str, model: str) -> None:
    if not _MODEL.fullmatch(model):
        row.fault("DT1952", column, f"{model[:40]!r} cannot be the name of a GPU model")


def _shapes(table: Table) -> dict[PodShape, int]:
    """Return how many pods have each shape; the most frequent first."""
    shapes: dict[PodShape, int] = {}
    seen: dict[str, int] = {}
    for row in table.rows:
        _check_unique(row, "name", seen)
        if shape := _pod_shape(row):
            shapes[shape] = shapes.get(shape, 0) + 1
    return dict(sorted(shapes.items(), key=lambda item: (-item[1], item[0])))


def _pod_shape(row: Row) -> PodShape | None:
    """Return the shape of a pod, None where a number cannot be read."""
    gpus, milli = row.integer("num_gpu", _MOST_GPUS), row.integer("gpu_milli")
    cpu, memory = row.integer("cpu_milli"), row.integer("memory_mib")
    models = _models(row)
    if gpus is None or milli is None or cpu is None or memory is None:
        return None
    shape = PodShape(gpus, milli, cpu, memory, models)
    _check_gpus(row, shape)
    return shape


def _check_gpus(row: Row, shape: PodShape) -> None:
    """Refuse requests that no document can say, and that the published trace does not hold."""
    gpus, milli = shape.gpus, shape.milli
    if not gpus and milli:
        row.fault("DT1955", "gpu_milli", f"the pod asks for {milli} thousandths of no GPU")
    elif not gpus and shape.models:
        row.fault("DT1955", "gpu_spec", "the pod asks for a GPU model and for no GPU")
    elif gpus and not 0 < milli <= _WHOLE_GPU:
        row.fault("DT1955", "gpu_milli", f"gpu_milli is {milli}, and must be from 1 to 1000 for each GPU")
    elif gpus > 1 and milli < _WHOLE_GPU:
        message = f"the pod asks for parts of {gpus} GPUs; a share is part of one GPU"
        row.fault("DT1955", "gpu_milli", message)


def _models(row: Row) -> tuple[str, ...]:
    """Return the models that a pod may run on; the trace repeats some of them."""
    spec = row.cells["gpu_spec"]
    models = [model.strip() for model in spec.split("|")] if spec else []
    for model in models:
        _check_model(row, "gpu_spec", model)
    return tuple(sorted(set(models)))


def _check_labels(models: Iterable[str], log: FaultLog) -> None:
    """Refuse models that differ only in what a name of a document cannot keep."""
    by_label: dict[str, str] = {}
    for model in sorted(models):
        other = by_label.setdefault(_label(model), model)
        if other != model:
            log.add("DT1952", f"the GPU models {other} and {model} differ only in case or punctuation")


# --- writing ---------------------------------------------------------------------------------


def _project(nodes: Path, pods: Path) -> str:
    heading = emit.comment(
        "The Alibaba GPU trace 2023 (openb) as documents, made by `dovetail import openb`",
        f"from {nodes.name} and {pods.name}.",
        "",
        "The trace tells no policy, so no pack is chosen: this is the packing problem alone.",
        "To plan it under rules, name packs, for instance [baseline].",
    )
    spec = [
        '  documents: ["*.yaml", "workloads/*.yaml"]',
        "  packs: []",
        f"  tenants: [{NAMESPACE}]",
    ]
    return emit.file(heading, [emit.document("Project", {"name": "openb"}, spec)])


def _cluster(groups: Mapping[NodeShape, Sequence[str]]) -> str:
    heading = emit.comment(
        "One group per shape of node, with the trace's names of nodes. Its GPUs are shared by arbitrary",
        "thousandths (`fraction`). It tells no racks, so node is the only level.",
    )
    spec = ["  levels: [{name: node}]", "  nodeGroups:"]
    for shape, names in groups.items():
        spec += _group(shape, names)
    return emit.file(heading, [emit.document("Cluster", {"name": "openb"}, spec)])


def _group(shape: NodeShape, names: Sequence[str]) -> list[str]:
    lines = [f"  - name: {_group_name(shape)}", "    names:"]
    lines += [f"    - {emit.text(each)}" for each in hostlist.fold(names)]
    if shape.gpus:
        lines.append(f"    accelerator: {accelerator(shape.model)}")
    lines += [
        f"    gpus: {shape.gpus}",
        f"    cpu: {format_cpu(shape.cpu)}",
        f"    memory: {format_memory(shape.memory)}",
    ]
    if shape.gpus:
        lines.append("    sharing: {mechanism: fraction}")
    return lines


def _group_name(shape: NodeShape) -> str:
    """Return a DNS label that tells the whole shape: ``g2-8x-96c-384gi``."""
    gpus = f"{_label(shape.model)}-{shape.gpus}x" if shape.gpus else "cpu"
    cpu = f"{shape.cpu // 1000}c" if shape.cpu % 1000 == 0 else f"{shape.cpu}m"
    return f"{gpus}-{cpu}-{format_memory(shape.memory).lower()}"


def _accelerators(models: Sequence[str]) -> str:
    heading = emit.comment(
        "Models of the trace that the built-in catalogue does not hold; the trace tells their names alone.",
        f"The memory of {STAND_IN_MEMORY} is a stand-in on which no share depends: the trace's pods ask for",
        "thousandths of a GPU, and a share without a figure for memory takes that fraction of the card.",
    )
    source = emit.text("the trace tells the name alone; memory is a stand-in")
    spec = [f"  memory: {STAND_IN_MEMORY}", f"  source: {source}", "  verified: false"]
    documents = [
        emit.document("Accelerator", {"name": accelerator(model)}, [f"  aliases: [{emit.text(model)}]", *spec])
        for model in models
    ]
    return emit.file(heading, documents)


def _workloads(shapes: Mapping[PodShape, int]) -> dict[str, str]:
    """Return the files of workloads, numbered over all files, the most frequent shape first."""
    width = max(4, len(str(len(shapes))))
    documents: dict[str, list[list[str]]] = {}
    for number, (shape, count) in enumerate(shapes.items(), start=1):
        lines = _workload(f"p-{number:0{width}}", shape, count)
        documents.setdefault(_file_of(shape), []).append(lines)
    heading = emit.comment(
        f"One workload per shape of pod and one replica per pod; the most frequent shape is p-{1:0{width}}.",
    )
    return {file: emit.file(heading, documents[file]) for file in sorted(documents)}


def _file_of(shape: PodShape) -> str:
    if not shape.gpus:
        return _CPU_ONLY
    return _SHARES if shape.is_share else _WHOLE


def _workload(name: str, shape: PodShape, count: int) -> list[str]:
    request: dict[str, emit.Value] = {}
    if shape.is_share:
        request["share"] = {"compute": Decimal(format_milli(shape.milli))}
    elif shape.gpus:
        request["gpus"] = shape.gpus
    if shape.cpu:
        request["cpu"] = Decimal(format_cpu(shape.cpu))
    if shape.memory:
        request["memory"] = format_memory(shape.memory)
    spec = ["  type: job", f"  replicas: {count}", f"  request: {emit.inline(request)}"]
    if shape.models:
        spec.append(f"  accelerators: {emit.inline([accelerator(model) for model in shape.models])}")
    return emit.document("Workload", {"name": name, "namespace": NAMESPACE}, spec)


def _label(model: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", model.lower())
