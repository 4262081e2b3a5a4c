"""Documents mean exactly one Spec: every unit, default and reference of a small project."""

from __future__ import annotations

import datetime as dt

from tests.build.text import AS_OF, HEAD, spec_of

from dovetail.rules.separate import Separate
from dovetail.spec import (
    Accelerator,
    Cluster,
    Current,
    Enforcement,
    Node,
    NodeGroup,
    NodeSelector,
    Objective,
    Observed,
    Policy,
    PresentReplica,
    ReplicaId,
    Request,
    Requirement,
    Role,
    Share,
    Spec,
    Taint,
    Toleration,
    Waiver,
    Workload,
    WorkloadSelector,
)

TEXT = f"""
{HEAD}
kind: Project
metadata: {{name: prod}}
spec: {{documents: ["*.yaml"], objective: cheap, tenants: [research, search]}}
---
{HEAD}
kind: Cluster
metadata: {{name: east}}
spec:
  levels: [{{name: rack}}, {{name: node}}]
  nodeGroups:
  - name: gpu
    names: ["n[1-2]"]
    accelerator: mine
    gpus: 4
    cpu: 64.5
    memory: 512Gi
    resources: {{rdma: 2}}
    reserved: {{cpu: 500m, memory: 1.5Mi}}
    domains: {{rack: {{size: 1}}}}
    labels: {{zone: a}}
    taints: [{{key: gpu, value: "on", effect: NoSchedule}}]
    sharing: {{mechanism: fraction}}
    pricePerHour: 24.50
    pricePerGpuHour: 0.000001
  - {{name: host, count: 1, gpus: 0, cpu: 8, memory: 1Gi, domains: {{rack: {{name: gpu-rack0}}}}}}
  nodes:
    n2: {{cordoned: true, failed: true, failedGpus: [3, 1], labels: {{zone: b, own: "1"}}}}
---
{HEAD}
kind: Accelerator
metadata: {{name: mine}}
spec: {{memory: 40Gi, aliases: [MINE-40], source: a data sheet, verified: false}}
---
{HEAD}
kind: Workload
metadata: {{name: serve, namespace: search, labels: {{app: x}}}}
spec:
  type: service
  priority: 5
  replicas: 3
  request: {{share: {{compute: 0.125, memory: 2.5Gi}}, cpu: 250m, memory: 1.5Mi, resources: {{rdma: 1, none: 0}}}}
  accelerators: [MINE-40]
  observed: {{compute: 0.05, memory: 1Gi}}
  value: 7
  isolation: memory
  preemptible: true
  tolerations: [{{key: gpu, operator: Exists, effect: NoSchedule}}]
  restart: 1m30s
---
{HEAD}
kind: Workload
metadata: {{name: train, namespace: research}}
spec:
  type: gang
  roles:
  - {{name: worker, replicas: 4, request: {{gpus: 2}}}}
  - {{name: lead, request: {{cpu: 1}}}}
  accelerators: [mine, H100-80GB]
  mix: perRole
  checkpointEvery: 30m
---
{HEAD}
kind: Policy
metadata: {{name: apart}}
spec:
  match:
    workloads:
      matchLabels: {{app: x}}
      matchExpressions: [{{key: app, operator: In, values: [x, b]}}]
      tenants: [search]
      namespaces: [search]
      names: [search/serve]
      types: [service]
      priority: {{min: 1, max: 9}}
    nodes:
      matchLabels: {{zone: b}}
      groups: [gpu]
      accelerators: [MINE-40]
      names: ["n[1-2]"]
      domains: [gpu-rack1]
  rule: {{separate: {{by: label, label: app, at: rack}}}}
  enforcement: {{soft: {{weight: 4}}}}
---
{HEAD}
kind: Waiver
metadata: {{name: pilot}}
spec: {{policy: apart, match: {{workloads: {{}}}}, reason: a pilot, owner: me, expires: 2026-12-31}}
---
{HEAD}
kind: Objective
metadata: {{name: cheap}}
spec: {{bands: [0, 5], tiers: [admitted, cost, {{disruption: [moves, evicted]}}]}}
---
{HEAD}
kind: Placement
metadata: {{name: today}}
spec:
  placements:
    search/serve#1-2: {{node: n1, gpus: [0]}}
    research/train.worker#0: {{node: gone, gpus: [3, 1]}}
  running: {{search/serve: {{elapsed: 3h}}}}
"""

RACKS = ({"rack": "gpu-rack0"}, {"rack": "gpu-rack1"})
TEMPLATE = Node(
    name="",
    group="gpu",
    cpu=64_000,
    memory=524_286,
    gpus=4,
    accelerator="mine",
    resources={"rdma": 2},
    labels={"zone": "a"},
    taints=(Taint("gpu", "on", "NoSchedule"),),
    mechanism="fraction",
    price=24_500_000,
    gpu_price=1,
)


def gpu_node(name: str, **own: object) -> Node:
    fields = {spot: getattr(TEMPLATE, spot) for spot in TEMPLATE.__slots__}
    return Node(**{**fields, "name": name, **own})


HOST = Node(name="host-000", group="host", cpu=8_000, memory=1_024, domains=RACKS[0])
CLUSTER = Cluster(
    name="east",
    levels=("rack", "node"),
    nodes=(
        gpu_node("n1", domains=RACKS[0]),
        gpu_node(
            "n2",
            domains=RACKS[1],
            labels={"zone": "b", "own": "1"},
            cordoned=True,
            down=True,
            failed_gpus=frozenset({1, 3}),
        ),
        HOST,
    ),
    groups=(
        NodeGroup("gpu", TEMPLATE, ("n1", "n2"), generated=False),
        NodeGroup("host", Node("", "host", 8_000, 1_024, domains=RACKS[0]), ("host-000",), generated=True),
    ),
)
TRAIN = Workload(
    id="research/train",
    namespace="research",
    name="train",
    type="gang",
    communicates=True,
    roles=(
        Role("worker", 4, Request(gpus=2), 2_000, accelerators=("H100-80GB", "mine")),
        Role("lead", 1, Request(cpu=1_000), 1_000),
    ),
    tenant="research",
    atomic=True,
    min_replicas=5,
    movable=True,
    mix="perRole",
    checkpoint_every=1_800_000,
)
SERVE = Workload(
    id="search/serve",
    namespace="search",
    name="serve",
    type="service",
    roles=(
        Role(
            name="",
            replicas=3,
            request=Request(
                cpu=250, memory=2, share=Share(125, 2_560, barred=("time-slice",)), resources={"rdma": 1}
            ),
            value=7,
            accelerators=("mine",),
            observed=Observed(50, 1_024),
        ),
    ),
    tenant="search",
    labels={"app": "x"},
    priority=5,
    min_replicas=1,
    preemptible=True,
    isolation="memory",
    tolerations=(Toleration("gpu", "Exists", "", "NoSchedule"),),
    restart=90_000,
)
APART = Policy(
    name="apart",
    rule=Separate(by="label", at="rack", label="app"),
    workloads=WorkloadSelector(
        match_labels={"app": "x"},
        match_expressions=(Requirement("app", "In", ("b", "x")),),
        tenants=("search",),
        namespaces=("search",),
        names=("search/serve",),
        types=("service",),
        priority_min=1,
        priority_max=9,
    ),
    nodes=NodeSelector(
        match_labels={"zone": "b"},
        groups=("gpu",),
        accelerators=("mine",),
        names=("n1", "n2"),
        domains=("gpu-rack1",),
    ),
    enforcement=Enforcement("soft", 4),
)
WANTED = Spec(
    name="prod",
    cluster=CLUSTER,
    accelerators={"mine": Accelerator("mine", 40_960, ("MINE-40",), "a data sheet", verified=False)},
    workloads=(TRAIN, SERVE),
    policies=(APART,),
    waivers=(Waiver("pilot", "apart", WorkloadSelector(), "a pilot", "me", dt.date(2026, 12, 31)),),
    objective=Objective("cheap", (5, 0), ("admitted", "cost", "disruption"), ("moves", "evicted")),
    current=Current(
        replicas=(
            PresentReplica(ReplicaId("research/train", "worker", 0), "gone", (1, 3)),
            PresentReplica(ReplicaId("search/serve", "", 1), "n1", (0,)),
            PresentReplica(ReplicaId("search/serve", "", 2), "n1", (0,)),
        ),
        elapsed={"search/serve": 10_800_000},
    ),
    as_of=AS_OF,
)


def test_a_project_means_exactly_its_spec() -> None:
    found = spec_of(TEXT)
    assert found.cluster == WANTED.cluster
    assert found.workloads == WANTED.workloads
    assert found.policies == WANTED.policies
    assert found == WANTED
