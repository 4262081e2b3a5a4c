"""What fleets that are full of one kind of work have in common: one group of hosts, and the texts of their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks.synthetic.documents import head

GPUS, MEMORY = 8, 1024  # of a host, with GiB


def project(name: str, cluster: str, work: Iterable[str], today: str) -> Mapping[str, str]:
    """Return the files of a project, by name."""
    return {
        "dovetail.yaml": head("Project", name) + "  documents: [cluster.yaml, workloads.yaml, today.yaml]\n",
        "cluster.yaml": cluster,
        "workloads.yaml": "---\n".join(work),
        "today.yaml": head("Placement", "today") + today,
    }


def hosts(name: str, count: int, cores: int, more: str = "") -> str:
    """Return the Cluster; `more` are further lines of its only group."""
    return head("Cluster", name) + (
        "  levels: [{name: rack}, {name: node}]\n"
        "  nodeGroups:\n"
        f"  - name: host\n    count: {count}\n    accelerator: A100-80GB\n    gpus: {GPUS}\n"
        f"    cpu: {cores}\n    memory: {MEMORY}Gi\n    domains: {{rack: {{size: 16}}}}\n{more}"
    )


def workload(name: str, kind: str, priority: int, replicas: int, asked: str) -> str:
    """Return a Workload whose replicas ask for what a flow mapping says."""
    return head("Workload", name) + (
        f"  type: {kind}\n  priority: {priority}\n  replicas: {replicas}\n  request: {{{asked}}}\n"
    )
