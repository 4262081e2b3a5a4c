"""Any Spec as nodes and pods for the baselines, its hard rules as a gate, and their placements as plans."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from benchmarks.baselines import MILLI, Fleet, Node, Pod
from numpy.typing import NDArray

from dovetail.placement import Place
from dovetail.plan import Outcome, Plan, TierResult, finish
from dovetail.problem import Problem, compile_problem
from dovetail.rules import Context, context_of
from dovetail.rules.base import Guard
from dovetail.spec import ReplicaId, Request, Spec
from dovetail.spec.cluster import GPU_LEVEL, NODE_LEVEL

ALONE: NDArray[np.int64] = np.array([], dtype=np.int64)


class Rules:
    """The hard policies of a Problem, asked through the guards that its rules have."""

    def __init__(self, problem: Problem) -> None:
        self._nodes = problem.nodes
        self._roles = [(shape.workload, shape.role) for shape in problem.shapes]
        hard = [policy for policy in problem.spec.policies if policy.enforcement.kind == "hard"]
        scopes = problem.context.scopes
        found = [policy.rule.guard(scopes[policy.name]) for policy in hard]
        self._guards: list[Guard] = [guard for guard in found if guard is not None]
        self._domains: dict[tuple[str, str | None], NDArray[np.int64]] = {}
        self._hosts = self._open(problem)
        for policy in hard:
            closed = policy.rule.closed_nodes(scopes[policy.name])
            positions = [problem.node_index[name] for name in closed if name in problem.node_index]
            for shape in problem.shapes if positions else ():
                if shape.workload.id in scopes[policy.name].ids:
                    self._hosts[shape.index, positions] = False

    @staticmethod
    def _open(problem: Problem) -> NDArray[np.bool_]:
        """Return, per shape and node, whether nothing but rules and room can be in the way."""
        hosts = np.zeros((len(problem.shapes), len(problem.nodes)), dtype=np.bool_)
        for node_class in problem.classes:
            hosts[np.ix_(problem.hosted[node_class.index], node_class.nodes)] = True
        return hosts

    def hosts(self, kind: int) -> NDArray[np.bool_]:
        """Return which nodes may ever take a replica of a shape."""
        return np.asarray(self._hosts[kind], dtype=np.bool_)

    def bars(self, kind: int) -> bool:
        """Tell whether a replica of a shape is blocked wherever it goes."""
        return any(guard.bars(*self._roles[kind]) for guard in self._guards)

    def opened(self, kind: int) -> Hashable:
        """Return what changes whenever places may have opened for a shape."""
        return tuple(guard.opened(self._roles[kind][0]) for guard in self._guards)

    def objection(self, kind: int, node: int, gpu: int | None) -> NDArray[np.int64] | None:
        """Return the nodes that a rule keeps a replica from: none but that one if empty, None if no rule objects."""
        role, where = self._roles[kind], self._nodes[node]
        for guard in self._guards:
            if guard.blocks(*role, where, gpu):
                level = getattr(guard, "level", NODE_LEVEL)
                return self._domain(level, where.domain(level)) if level not in (NODE_LEVEL, GPU_LEVEL) else ALONE
        return None

    def _domain(self, level: str, path: str | None) -> NDArray[np.int64]:
        if (level, path) not in self._domains:
            members = [index for index, node in enumerate(self._nodes) if node.domain(level) == path]
            self._domains[level, path] = np.array(members, dtype=np.int64)
        return self._domains[level, path]

    def blocks(self, kind: int, node: int, gpu: int | None) -> bool:
        """Tell whether a rule keeps a replica from a node."""
        return self.objection(kind, node, gpu) is not None

    def add(self, pod: Pod, node: int, gpu: int | None) -> None:
        """Count a replica in."""
        for guard in self._guards:
            guard.add(*self._roles[pod.kind], self._nodes[node], gpu, 1)


@dataclass(frozen=True)
class Case:
    """A Spec as baselines see it; `pods` arrive in an order that a seed gives, higher bands first."""

    context: Context
    problem: Problem
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    replicas: dict[str, ReplicaId]

    def gate(self) -> Rules:
        """Return the rules with nothing counted in yet."""
        return Rules(self.problem)

    def places(self, fleet: Fleet) -> dict[ReplicaId, Place]:
        """Return where a baseline put every replica."""
        return {
            self.replicas[pod.name]: Place(self.problem.nodes[node].name, gpus) for pod, node, gpus in fleet.placed
        }

    def plan(self, places: dict[ReplicaId, Place]) -> Plan:
        """Return a placement as a plan whose tiers have values and no bounds."""
        view = self.context.view(places)
        tiers = tuple(
            TierResult(tier.name, tier.measure(view, self.context), None, tier.unit, tier.sense, "none")
            for tier in self.problem.tiers
        )
        return finish(self.context, places, tiers, Outcome("feasible", "work"))


def case_of(spec: Spec, seed: int = 1) -> Case:
    """Return a Spec without current state for the baselines."""
    context = context_of(spec)
    problem = compile_problem(context)
    nodes = tuple(
        Node(node.name, node.cpu, node.memory, node.gpus, node.accelerator or "", tuple(sorted(node.failed_gpus)))
        for node in problem.nodes
    )
    replicas: dict[str, ReplicaId] = {}
    pods: list[Pod] = []
    for shape in problem.shapes:
        for member in shape.members:
            for ordinal in range(member.role.replicas):
                replica = ReplicaId(member.workload.id, member.role.name, ordinal)
                replicas[str(replica)] = replica
                pods.append(_pod(str(replica), shape.index, spec.band_of(member.workload), shape.request))
    Random(seed).shuffle(pods)
    return Case(context, problem, nodes, tuple(sorted(pods, key=lambda pod: -pod.band)), replicas)


def _pod(name: str, kind: int, band: int, request: Request) -> Pod:
    milli = request.share.compute if request.share else MILLI if request.gpus else 0
    return Pod(name, request.cpu, request.memory, request.gpu_count, milli, frozenset(), kind, band)


def values(plan: Plan) -> dict[str, int]:
    """Return what a plan reaches, per tier."""
    return {tier.name: tier.value for tier in plan.tiers}


def allocated(pods: Sequence[Pod]) -> int:
    """Return the milli-GPU of some pods."""
    return sum(pod.total for pod in pods)
