"""A small project with scenarios, read from text."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from dovetail.documents import DocumentSet, load_project
from dovetail.whatif import Question, Scenario, prepare, read_scenario

AS_OF = dt.date(2026, 6, 1)
PROJECT = """\
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  levels: [{name: block}, {name: rack}, {name: node}]
  nodeGroups:
  - name: h100
    count: 8
    accelerator: H100-80GB
    gpus: 2
    cpu: 32
    memory: 256Gi
    domains: {block: {size: 4}, rack: {size: 2}}
  - name: edge
    names: [alpha, beta]
    accelerator: A100-40GB
    gpus: 1
    cpu: 16
    memory: 64Gi
    domains: {block: {name: b9}, rack: {ranges: {left: alpha, right: beta}}}
    labels: {zone: west}
    taints: [{key: edge, effect: NoSchedule}]
  nodes:
    h100-007: {cordoned: true}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: train, namespace: research}
spec: {type: gang, priority: 900, replicas: 4, request: {gpus: 2, cpu: 1}, checkpointEvery: 1h}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: web, namespace: search}
spec: {type: service, priority: 500, replicas: 3, request: {gpus: 1, cpu: 1}}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: pair}
spec:
  type: job
  roles:
  - {name: head, replicas: 1, request: {cpu: 1}}
  - {name: hand, replicas: 2, request: {cpu: 1}}
---
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: apart}
spec:
  match: {workloads: {}}
  rule: {separate: {by: tenant, at: node}}
  enforcement: hard
---
apiVersion: dovetail/v1alpha1
kind: Waiver
metadata: {name: for-now}
spec: {policy: apart, match: {workloads: {names: [pair]}}, reason: r, owner: o, expires: 2026-12-31}
"""
HEAD = "---\napiVersion: dovetail/v1alpha1\nkind: Scenario\nmetadata: {name: case}\nspec:\n"
FIRST_LINE = (PROJECT + HEAD).count("\n") + 1
"""The line of the file that `spec` of the scenario starts on."""


def documents_of(folder: Path, scenario: str = "  patches: []\n", *, more: str = "") -> DocumentSet:
    """Return the project's documents, with a scenario whose `spec` is given as lines."""
    path = folder / "project.yaml"
    path.write_text(PROJECT + more + HEAD + scenario, encoding="utf-8")
    return load_project(path)


def scenario_of(documents: DocumentSet) -> Scenario:
    return read_scenario(documents.of_kind("Scenario")[0])


def asked(folder: Path, scenario: str, *, more: str = "") -> Question:
    """Return both sides of a scenario."""
    documents = documents_of(folder, scenario, more=more)
    return prepare(documents, scenario_of(documents), as_of=AS_OF)


def patched(folder: Path, *patches: str) -> Question:
    """Return both sides of a scenario that consists of patches, each in flow style."""
    return asked(folder, "".join(["  patches:\n", *(f"  - {patch}\n" for patch in patches)]) if patches else "  {}\n")
