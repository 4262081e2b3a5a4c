"""The project that `dovetail init` writes; `{name}` stands for its name."""

from __future__ import annotations

from collections.abc import Mapping

_SCHEMA = "https://dovetail.dev/schemas/v1alpha1"


def _headed(kind: str, text: str) -> str:
    """Put an editor's hint, where the schema is, before a document."""
    return f"# yaml-language-server: $schema={_SCHEMA}/{kind}.schema.json\napiVersion: dovetail/v1alpha1\n{text}"


_PROJECT = """\
kind: Project
metadata: {name: {name}}
spec:
  documents: ["cluster.yaml", "workloads/**/*.yaml", "tests/*.yaml"]
  packs: [baseline]
  tenants: [research, search]
"""

_CLUSTER = """\
kind: Cluster
metadata: {name: {name}}
spec:
  levels: [{name: rack}, {name: node}]
  nodeGroups:
  - name: h100
    count: 4
    accelerator: H100-80GB
    gpus: 8
    cpu: 96
    memory: 1Ti
    reserved: {cpu: 4, memory: 32Gi}      # for daemons
    domains: {rack: {size: 2}}            # two racks of two nodes each
    sharing: {mechanism: fraction}        # shares of a GPU may land here
"""

_TRAINING = """\
kind: Workload
metadata: {name: llm-train, namespace: research}
spec:
  type: gang                              # all replicas or none
  priority: 900
  replicas: 2
  request: {gpus: 8, cpu: 64, memory: 512Gi}
  accelerators: [H100-80GB]
  checkpointEvery: 30m
"""

_SERVICE = """\
kind: Workload
metadata: {name: embedder, namespace: search}
spec:
  type: service
  priority: 500
  replicas: 4
  request: {share: {compute: 0.25, memory: 16Gi}, cpu: 4, memory: 16Gi}
  observed: {compute: 0.1}                # what a replica really uses
"""

_NOTEBOOKS = """\
kind: Workload
metadata: {name: notebooks, namespace: research}
spec:
  type: job
  priority: 100
  replicas: 6
  request: {gpus: 1, cpu: 8, memory: 64Gi}
"""

_TEST = """\
kind: PolicyTest
metadata: {name: losing-a-node}
spec:
  cases:
  - name: search notices nothing when a node fails
    patches: [{fail: {node: h100-000}}]
    expect:
    - {workload: search/embedder, admitted: full}
"""

_CI = """\
name: plan
on: [pull_request]
jobs:
  plan:
    runs-on: ubuntu-latest
    steps:
    - uses: actions/checkout@v4
      with: {fetch-depth: 0}
    - uses: actions/setup-python@v5
      with: {python-version: "3.11"}
    # ADAPT: dovetail is published on no public index; whatever has its name there is somebody else's.
    # So this installs a wheel that your team built and keeps in this repository.
    - run: pip install ./wheels/dovetail-*.whl
    - run: dovetail validate -o github
    - run: dovetail test -o github
    - name: plan, from what the target branch has
      run: |
        base="origin/$GITHUB_BASE_REF:plan.yaml"
        git cat-file -e "$base" && set -- --base "$base"
        dovetail plan "$@" --out plan.yaml --also md=plan.md -o github
    - run: cat plan.md >> "$GITHUB_STEP_SUMMARY"
"""

_IGNORED = """\
# times and logs of a run; the plan itself is committed
*.run.json
"""

FILES: Mapping[str, str] = {
    "dovetail.yaml": _headed("project", _PROJECT),
    "cluster.yaml": _headed("cluster", _CLUSTER),
    "workloads/llm-train.yaml": _headed("workload", _TRAINING),
    "workloads/embedder.yaml": _headed("workload", _SERVICE),
    "workloads/notebooks.yaml": _headed("workload", _NOTEBOOKS),
    "tests/losing-a-node.yaml": _headed("policytest", _TEST),
    ".github/workflows/plan.yaml": _CI,
    ".gitignore": _IGNORED,
}

KEPT = frozenset({".gitignore"})
"""What a repository may have already; it is then left as it is."""
