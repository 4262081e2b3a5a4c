"""A project of 12,500 nodes with 100,000 GPUs, and a plan of a row per GPU, both generated."""

from __future__ import annotations

from pathlib import Path

from dovetail.placement import Place
from dovetail.plan import Outcome, Plan, write
from dovetail.spec import ReplicaId

NODES, GPUS_PER_NODE = 12_500, 8
WORKLOADS = 1_000  # of 100 replicas each: as many as there are GPUs
MODELS = ("H100-80GB", "A100-SXM4-80GB", "L40S-48GB", "T4-16GB")
KIND = "apiVersion: dovetail/v1alpha1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n"


def write_fleet(out: Path) -> Path:
    """Write the project: four models in racks and blocks, three types of workloads, some policies."""
    (out / "workloads").mkdir(parents=True)
    project = KIND.format("Project", "fleet") + '  documents: ["*.yaml", "workloads/*.yaml"]\n  packs: [baseline]\n'
    (out / "dovetail.yaml").write_text(project, encoding="utf-8")
    (out / "cluster.yaml").write_text(_cluster(), encoding="utf-8")
    texts = [_workload(number) for number in range(WORKLOADS)]
    (out / "workloads/all.yaml").write_text("---\n".join(texts), encoding="utf-8")
    return out


def _cluster() -> str:
    lines = ["  levels: [{name: block}, {name: rack}, {name: node}]", "  nodeGroups:"]
    for model in MODELS:
        lines += [
            f"  - name: {model.split('-')[0].lower()}",
            f"    count: {NODES // len(MODELS)}",
            f"    accelerator: {model}",
            f"    gpus: {GPUS_PER_NODE}",
            "    cpu: 96",
            "    memory: 1Ti",
            "    sharing: {mechanism: fraction}",
            "    domains: {block: {size: 400}, rack: {size: 8}}",
        ]
    return KIND.format("Cluster", "fleet") + "\n".join(lines) + "\n"


def _workload(number: int) -> str:
    kind = ("job", "service", "gang")[number % 3]
    request = "share: {compute: 0.5}" if number % 5 == 0 and kind != "gang" else f"gpus: {(1, 2, 4, 8)[number % 4]}"
    body = f"  type: {kind}\n  replicas: 100\n  request: {{{request}, cpu: {1 + number % 7}, memory: 16Gi}}\n"
    return KIND.format("Workload", f"w-{number:04d}") + body


def write_rows(file: Path) -> Path:
    """Write a plan of 100,000 rows."""
    rows = {
        ReplicaId(f"w-{index // 100:04d}", "", index % 100): Place(
            f"gpu-{index // GPUS_PER_NODE:05d}", (index % GPUS_PER_NODE,)
        )
        for index in range(NODES * GPUS_PER_NODE)
    }
    plan = Plan("fleet", "sha256:" + "0" * 64, Outcome("feasible", "work"), placements=rows)
    file.write_text(write(plan), encoding="utf-8")
    return file
