"""Rows on what is admitted in all: demand, protection, all or nothing, accelerators of a gang (S2.1, S2.4, S5.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dovetail.linear import Linear
from dovetail.spec import Role, Workload
from dovetail.spec.slo import host_of

if TYPE_CHECKING:
    from dovetail.model.counting import Counting
    from dovetail.model.part import PartModel


def add_demands(part: PartModel) -> None:
    """Add the rows of every shape and workload that a part can change."""
    for shape in part.shapes:
        expression = part.admitted_shape(shape)
        if part.model.range_of(expression)[1] > part.problem.shapes[shape].demand:
            part.model.require(expression, upper=part.problem.shapes[shape].demand)
    for workload in part.changing(part.spec.workloads):
        if workload.id in part.problem.shapes_of_workload:
            _add_workload(part, workload)


def _add_workload(part: PartModel, workload: Workload) -> None:
    for role in workload.roles:
        shape = part.problem.shapes_of_role.get((workload.id, role.name), -1)
        if least := part.problem.protected[shape]:
            part.model.require(part.admitted_shape(shape), lower=least)
        if not workload.movable:
            part.model.require(part.moved_role(workload, role), upper=0)
    if workload.atomic or workload.elastic or workload.min_replicas > 1:
        add_threshold(part, workload)
    if workload.atomic and workload.mix != "any":
        _add_mix(part, workload)


def add_threshold(part: Counting, workload: Workload) -> int:
    """Admit nothing, or at least the least number of replicas, which is all of them for a gang.

    Returns the variable that tells which.
    """
    flag = part.model.boolean(f"admit:{workload.id}")
    total = part.admitted(workload)
    part.model.require(total.minus(Linear.of(flag, workload.replicas)), upper=0)
    part.model.require(total.minus(Linear.of(flag, workload.min_replicas)), lower=0)
    for role in workload.roles:
        if role.least is not None and role.replicas:
            _add_width(part, workload, role, flag)
    return flag


def _add_width(part: Counting, workload: Workload, role: Role, flag: int) -> None:
    """Admit of an elastic role its least number and whole steps more, where anything is admitted (S2.6)."""
    least, admitted = role.least or 0, part.admitted_shape(part.problem.shapes_of_role[workload.id, role.name])
    steps = part.model.integer(0, (role.replicas - least) // role.step)
    part.model.require(admitted.minus(Linear({flag: least, steps: role.step})), lower=0, upper=0)
    part.model.require(admitted.minus(Linear.of(flag, role.replicas)), upper=0)


def _add_mix(part: PartModel, workload: Workload) -> None:
    """Keep a gang, or each of its roles, on one accelerator."""
    roles = [role for role in workload.roles if role.request.gpu_count and role.replicas]
    for group in [[role] for role in roles] if workload.mix == "perRole" else [roles]:
        counts = by_accelerator(part, workload, group)
        if len(counts) > 1:
            flags = [part.model.at_least_one(count) for _, count in sorted(counts.items())]
            part.model.require(Linear({flag.variable: 1 for flag in flags}), upper=1)


def by_accelerator(part: PartModel, workload: Workload, roles: Iterable[Role]) -> dict[str, Linear]:
    """Return how many replicas of some roles are on each accelerator, in the part and outside."""
    problem = part.problem
    shapes = {problem.shapes_of_role[workload.id, role.name] for role in roles if role.replicas}
    counts: dict[str, Linear] = {}
    for shape in sorted(shapes):
        for node, variable in part.variables.of_shape.get(shape, ()):
            counts.setdefault(problem.nodes[node].accelerator or "", Linear()).add_term(variable)
        for node, held in part.held_outside(shape):
            counts.setdefault(problem.nodes[node].accelerator or "", Linear()).constant += held
    return counts


def by_host(part: PartModel, workload: Workload) -> dict[str, Linear]:
    """Return how many replicas of a workload are on each host (S2.8), in the part and outside."""
    counts: dict[str, Linear] = {}
    nodes, profiles = part.problem.nodes, part.variables.profiles
    for shape in part.problem.shapes_of_workload.get(workload.id, ()):
        for node, variable in part.variables.of_shape.get(shape, ()):
            host = host_of(nodes[node].accelerator, profiles.get(variable, ""))
            counts.setdefault(host, Linear()).add_term(variable)
        for node, slot, held in part.slots_outside(shape):
            counts.setdefault(host_of(nodes[node].accelerator, slot.profile), Linear()).constant += held
    return counts
