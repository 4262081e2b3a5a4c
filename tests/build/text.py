"""Specs from documents that a test writes in short: kind, name and spec; the rest is filled in."""

from __future__ import annotations

import datetime as dt
import textwrap
from collections.abc import Iterable
from pathlib import Path

from dovetail.build import Built, assemble
from dovetail.documents import Document, DocumentSet, load_text
from dovetail.faults import Fault, Refused
from dovetail.spec import Current, Node, Spec, Workload

AS_OF = dt.date(2026, 6, 1)
HEAD = "apiVersion: dovetail/v1alpha1"


def document(kind: str, name: str, spec: str, metadata: str = "") -> str:
    """Return the text of a document."""
    body = textwrap.indent(textwrap.dedent(spec).strip("\n"), "  ")
    return f"{HEAD}\nkind: {kind}\nmetadata: {{name: {name}{metadata}}}\nspec:\n{body}\n"


def cluster(groups: str, levels: str = "") -> str:
    """Return a cluster of node groups, one per line: flow mappings, cpu and memory filled in where left out."""
    lines = [line.strip() for line in groups.strip().splitlines()]
    rows = [line if "cpu:" in line else line.replace("{", "{cpu: 64, memory: 512Gi, ", 1) for line in lines]
    head = [f"levels: [{', '.join(f'{{name: {level}}}' for level in levels.split())}]"] if levels else []
    return document("Cluster", "c", "\n".join([*head, "nodeGroups:", *(f"- {row}" for row in rows)]))


JOB = "type: job\nrequest: {cpu: 1}"
SMALL = cluster("{name: g, count: 4, accelerator: H100-80GB, gpus: 8, sharing: {mechanism: fraction}}")


def workload(spec: str, name: str = "w", metadata: str = "") -> str:
    """Return a workload."""
    return document("Workload", name, spec, metadata)


def policy(spec: str, name: str = "p", enforcement: str = "hard") -> str:
    """Return a policy; `spec` holds its match and rule."""
    return document("Policy", name, f"{textwrap.dedent(spec).strip()}\nenforcement: {enforcement}")


def project(spec: str = "", name: str = "x") -> str:
    """Return a project document."""
    return document("Project", name, f"documents: ['*.yaml']\n{textwrap.dedent(spec).strip()}")


def documents(*texts: str, files: int = 1) -> DocumentSet:
    """Return documents as a project would; they may stand in several files."""
    found: list[Document] = []
    for number in range(files):
        found += load_text("---\n".join(texts[number::files]), f"{number}.yaml")
    return DocumentSet(tuple(found), Path())


def built(*texts: str, current: Current | None = None) -> Built:
    """Return what documents mean, with the warnings."""
    return assemble(documents(*texts), current=current, as_of=AS_OF)


def spec_of(*texts: str) -> Spec:
    """Return what documents mean."""
    return built(*texts).spec


def nodes_of(groups: str, levels: str = "") -> tuple[Node, ...]:
    """Return the nodes of a cluster."""
    return spec_of(cluster(groups, levels)).cluster.nodes


def workload_of(spec: str, *more: str) -> Workload:
    """Return one workload on a small cluster."""
    return spec_of(SMALL, workload(spec), *more).by_id["w"]


def faults_of(*texts: str) -> tuple[Fault, ...]:
    """Return the faults of documents."""
    try:
        built(*texts)
    except Refused as refused:
        return refused.faults
    return ()


def codes(faults: Iterable[Fault]) -> list[str]:
    """Return the codes of faults."""
    return [fault.code for fault in faults]
