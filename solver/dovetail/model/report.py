"""What a Problem is made of, for people: classes, shapes, what split them, how large the model is, which way it goes.

Everything is told from what the engine uses itself: the keys that classes and shapes are made by, the exact model's
own rows, and the sizes at which the engine takes another way. So a new rule or attribute needs no word here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dovetail.documents.kinds import API_VERSION
from dovetail.model.part import PartModel
from dovetail.model.state import State
from dovetail.problem import Problem, Shape
from dovetail.problem.classes import POLICY, RUNNING, busy_nodes, node_attributes
from dovetail.problem.shapes import role_attributes, rule_signature, running_workloads
from dovetail.problem.splits import Split, splits_of
from dovetail.problem.steps import EXACT_FIRST, EXACT_VARIABLES, steps_of
from dovetail.spec import Policy, ReplicaId


@dataclass(frozen=True, slots=True)
class Kind:
    """Nodes that only what they hold today tells apart: the `empty` ones are one class, each busy one its own.

    `gpus` counts healthy ones over all of the nodes; `first` is the first node's name.
    """

    first: str
    nodes: int
    busy: int
    accelerator: str | None
    gpus: int

    @property
    def classes(self) -> int:
        """How many classes they make up."""
        return self.busy + (1 if self.nodes > self.busy else 0)


@dataclass(frozen=True, slots=True)
class ShapeSize:
    """A shape, and on how many nodes its replicas may newly be; `roles` counts its members."""

    shape: Shape
    nodes: int

    @property
    def first(self) -> str:
        """The first member's identity."""
        return ReplicaId(self.shape.workload.id, self.shape.role.name, 0).role_id


@dataclass(frozen=True, slots=True)
class ExactSize:
    """How many variables and rows the exact model of the whole has, tiers not counted."""

    variables: int
    rows: int


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What a Problem is made of.

    Parameters
    ----------
    counts : the least number of variables of the exact model of the whole.
    exact : its true size, None where it is too large to be tried, and so was not built.
    steps : the phases that a search goes through, unless one before ends it.
    """

    problem: Problem
    kinds: tuple[Kind, ...]
    node_splits: tuple[Split, ...]
    shapes: tuple[ShapeSize, ...]
    shape_splits: tuple[Split, ...]
    counts: int
    exact: ExactSize | None
    steps: tuple[str, ...]

    @property
    def name(self) -> str:
        """The project's name."""
        return self.problem.spec.name

    def policy(self, split: Split) -> Policy | None:
        """Return the policy that a split is due to, None where it is due to nodes or workloads themselves."""
        policies = {POLICY + policy.name: policy for policy in self.problem.spec.policies}
        return policies.get(split.attribute)


def report_on(problem: Problem) -> ModelReport:
    """Return what a Problem is made of; the exact model is built, and counted, only where the engine would try it."""
    counts = problem.counts
    kinds, node_splits = _nodes(problem)
    shapes = tuple(ShapeSize(shape, _hosts(problem, shape)) for shape in problem.shapes)
    exact = _exact(problem) if counts <= EXACT_VARIABLES else None
    return ModelReport(problem, kinds, node_splits, shapes, _shape_splits(problem), counts, exact, steps_of(counts))


def _nodes(problem: Problem) -> tuple[tuple[Kind, ...], tuple[Split, ...]]:
    busy = busy_nodes(problem.context)
    keys = [node_attributes(problem.context, node, busy) for node in problem.nodes]
    alike: dict[object, list[int]] = defaultdict(list)
    for position, key in enumerate(keys):
        alike[tuple(value for name, value in key.items() if name != RUNNING)].append(position)
    return tuple(_kind(problem, nodes, busy) for nodes in alike.values()), splits_of(keys)


def _kind(problem: Problem, positions: Sequence[int], busy: frozenset[str]) -> Kind:
    nodes = [problem.nodes[position] for position in positions]
    gpus = sum(len(node.healthy_gpus()) for node in nodes)
    return Kind(nodes[0].name, len(nodes), sum(node.name in busy for node in nodes), nodes[0].accelerator, gpus)


def _hosts(problem: Problem, shape: Shape) -> int:
    makes = problem.makes
    return sum(len(makes.members[make]) for make in makes.hosting(shape.workload, shape.role))


def _shape_splits(problem: Problem) -> tuple[Split, ...]:
    context, running = problem.context, running_workloads(problem.context)
    keys = []
    for workload in problem.spec.workloads:
        signature = rule_signature(context, workload)
        asked = [role for role in workload.roles if role.replicas]
        keys += [role_attributes(context, workload, role, signature, running) for role in asked]
    return splits_of(keys)


def _exact(problem: Problem) -> ExactSize:
    model = PartModel(problem, range(len(problem.nodes)), State()).model
    return ExactSize(len(model.lower), len(model.rows))


def to_document(report: ModelReport) -> dict[str, Any]:
    """Return a report as a document of kind ModelReport."""
    problem = report.problem
    exact = report.exact
    return {
        "apiVersion": API_VERSION,
        "kind": "ModelReport",
        "metadata": {"name": report.name},
        "spec": {
            "nodes": len(problem.nodes),
            "gpus": sum(kind.gpus for kind in report.kinds),
            "roles": sum(len(shape.members) for shape in problem.shapes),
            "replicas": sum(shape.demand for shape in problem.shapes),
            "tiers": [tier.name for tier in problem.tiers],
            "classes": len(problem.classes),
            "kinds": [_kind_row(kind) for kind in report.kinds],
            "nodeSplits": [_split_row(report, split) for split in report.node_splits],
            "shapes": [_shape_row(row) for row in report.shapes],
            "shapeSplits": [_split_row(report, split) for split in report.shape_splits],
            "model": {
                "counts": report.counts,
                "variables": exact.variables if exact else None,
                "rows": exact.rows if exact else None,
                "exactFirst": EXACT_FIRST,
                "exactLargest": EXACT_VARIABLES,
                "steps": list(report.steps),
            },
        },
    }


def _kind_row(kind: Kind) -> dict[str, Any]:
    return {
        "first": kind.first,
        "nodes": kind.nodes,
        "busy": kind.busy,
        "classes": kind.classes,
        "accelerator": kind.accelerator,
        "gpus": kind.gpus,
    }


def _split_row(report: ModelReport, split: Split) -> dict[str, Any]:
    row = {"attribute": split.attribute, "values": split.values, "adds": split.adds, "alone": split.alone}
    policy = report.policy(split)
    return {**row, "policy": policy.name, "rule": policy.rule.kind} if policy else row


def _shape_row(row: ShapeSize) -> dict[str, Any]:
    request = row.shape.request
    return {
        "first": row.first,
        "roles": len(row.shape.members),
        "demand": row.shape.demand,
        "gpuMilli": request.gpu_milli,
        **({"mig": request.mig} if request.mig else {}),
        "share": request.share is not None,
        "cpuMilli": request.cpu,
        "memoryMiB": request.memory,
        "resources": dict(sorted(request.resources.items())),
        "nodes": row.nodes,
    }
