"""Runs command lines in this process, with a greedy stand-in for the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dovetail.engine import solve
from dovetail.engine.proving.certify import with_certificate
from dovetail.engine.second_opinion import SECONDS, with_second_opinion
from dovetail.objectives import tiers_of
from dovetail.placement import Place, Places, Room, obstacle
from dovetail.plan import Outcome, Plan, TierResult, finish
from dovetail.progress import Limits, Reporter, Stop
from dovetail.rules import Context, context_of
from dovetail.spec import Node, ReplicaId, Role, Spec
from dovetail_cli.main import run

GOLDEN = Path(__file__).parent / "golden"

CLUSTER = """\
apiVersion: dovetail/v1alpha1
kind: Project
metadata: {name: demo}
spec: {documents: ["*.yaml", "workloads/*.yaml"]}
---
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  levels: [{name: rack}, {name: node}]
  nodeGroups:
  - {name: h100, count: 3, accelerator: H100-80GB, gpus: 4, cpu: 64, memory: 1Ti, domains: {rack: {size: 2}}}
"""
POLICY = """\
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: one-tenant-per-node}
spec:
  match: {workloads: {}}
  rule: {separate: {by: tenant, at: node}}
  enforcement: audit
"""
WORKLOADS = {"train": ("research", 2, 4), "batch": ("research", 3, 1), "web": ("search", 2, 1)}


def workload(name: str, namespace: str, replicas: int, gpus: int) -> str:
    return (
        "apiVersion: dovetail/v1alpha1\nkind: Workload\n"
        f"metadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec: {{type: job, replicas: {replicas}, checkpointEvery: 1h, request: {{gpus: {gpus}, cpu: 1}}}}\n"
    )


def write_project(folder: Path) -> None:
    """Write a small project into a folder."""
    (folder / "workloads").mkdir()
    (folder / "dovetail.yaml").write_text(CLUSTER, encoding="utf-8")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    for name, (namespace, replicas, gpus) in WORKLOADS.items():
        text = workload(name, namespace, replicas, gpus)
        (folder / "workloads" / f"{name}.yaml").write_text(text, encoding="utf-8")


@dataclass
class Shell:
    """Runs command lines and keeps what they printed last."""

    capture: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str | Path) -> int:
        code = run([str(argument) for argument in arguments])
        self.out, self.err = self.capture.readouterr()
        return code


@dataclass
class Engine:
    """The stand-in: keeps who runs where it can, fills up the rest in order; `outcome` is what it claims."""

    outcome: Outcome = field(default_factory=lambda: Outcome("feasible", "work"))
    bound: int = 12_001
    error: Exception | None = None
    meanwhile: Callable[[Stop], None] = lambda stop: None

    def solve(
        self, spec: Spec, limits: Limits, *, hint: Places | None, reporter: Reporter, stop: Stop, solver: object
    ) -> Plan:
        if self.error is not None:
            raise self.error
        reporter.phase("construct")
        self.meanwhile(stop)
        context = context_of(spec)
        places = _greedy(context)
        outcome = Outcome("feasible", "interrupt") if stop else self.outcome
        return finish(context, places, list(self._tiers(context, places)), outcome)

    def _tiers(self, context: Context, places: Places) -> list[TierResult]:
        view = context.view(places)
        found: list[TierResult] = []
        for tier in tiers_of(context):
            value = tier.measure(view, context)
            bound = self.bound if tier.sense == "max" and self.outcome.status != "optimal" else value
            given = {earlier.name: earlier.value for earlier in found}
            found.append(TierResult(tier.name, value, bound, tier.unit, tier.sense, "solver", given))
        return found


class Here:
    """Stands for the process of solvers: what is not searched for happens in this one, which tests can change."""

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was started."""

    def certified(self, spec: Spec, plan: Plan, seconds: float | None, reporter: Reporter, stop: Stop) -> Plan:
        return plan  # what the stand-in claims, nobody has shown


class SolversHere(Here):
    """Stands for it with the solvers themselves: what they find is the same, without the start of a process."""

    def solve(self, spec: Spec, limits: Limits, *, hint: Places | None, reporter: Reporter, stop: Stop) -> Plan:
        return solve(spec, limits, hint=hint, reporter=reporter, stop=stop)

    def certified(self, spec: Spec, plan: Plan, seconds: float | None, reporter: Reporter, stop: Stop) -> Plan:
        return with_certificate(context_of(spec), plan, seconds=seconds, stop=stop)

    def second_opinion(self, spec: Spec, plan: Plan, seconds: float | None, reporter: Reporter, stop: Stop) -> Plan:
        return with_second_opinion(context_of(spec), plan, seconds=seconds or SECONDS, stop=stop)


def _greedy(context: Context) -> Places:
    spec = context.spec
    rooms = {node.name: Room(node, spec.accelerators) for node in spec.cluster.nodes}
    places: dict[ReplicaId, Place] = {}
    for replica, place in context.today.places.items():
        rooms[place.node].take(spec.by_id[replica.workload].by_role[replica.role].request, place.gpus)
        places[replica] = place
    for workload in spec.workloads:
        for replica in workload.replica_ids():
            role = workload.by_role[replica.role]
            fitting = [n for n in spec.cluster.nodes if not obstacle(workload, role, n, spec.accelerators)]
            found = next(filter(None, (_fit(rooms[n.name], role, n) for n in fitting)), None)
            if replica not in places and found:
                rooms[found.node].take(role.request, found.gpus)
                places[replica] = found
    return places


def _fit(room: Room, role: Role, node: Node) -> Place | None:
    free = tuple(index for index in node.healthy_gpus() if not room.tenants[index])[: role.request.gpu_count]
    return Place(node.name, free) if room.lacks(role.request, free) is None else None
