"""What runs today, in the terms of a Problem without it: the relaxation of whole fleets counts as if nothing ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from dovetail.placement import judge
from dovetail.problem import Problem, compile_problem
from dovetail.spec import Current, Enforcement


def without_today(original: Problem) -> Problem:
    """Return the Problem as if nothing ran today, except for what today excuses."""
    if not original.context.today.present():
        return original
    spec = replace(original.spec, current=Current())
    return compile_problem(replace(original.context.about(spec), today=judge(spec)))


def without_held(original: Problem) -> Problem:
    """Return the Problem with nothing held free: that costs nothing, and nodes in use count all that they hold."""
    spec = original.spec
    holding = {workload.holds for workload in spec.placeholders}
    if not holding:
        return original
    policies = [replace(p, enforcement=Enforcement("audit")) if p.name in holding else p for p in spec.policies]
    return compile_problem(original.context.about(replace(spec, policies=tuple(policies))))


def protected(original: Problem, problem: Problem) -> Counter[int]:
    """Return, per shape of the Problem without today, how many replicas must stay admitted (S5.3)."""
    return Counter(problem.shapes_of_role[r.workload, r.role] for r in original.context.today.protected)


def present_shapes(original: Problem, problem: Problem) -> Mapping[int, frozenset[int]]:
    """Return, per node, the shapes (of the Problem without today) of what runs there."""
    found = {}
    for node, places in original.present.items():
        members = [original.shapes[place.shape].members[0] for place in places]
        found[node] = frozenset(problem.shapes_of_role[m.workload.id, m.role.name] for m in members)
    return found


def twins_of(original: Problem, problem: Problem) -> Mapping[int, int]:
    """Return, for shapes of the Problem with today, their twins without it; what is held free may have none."""
    members = ((shape.index, shape.members[0]) for shape in original.shapes)
    roles = ((index, (member.workload.id, member.role.name)) for index, member in members)
    return {index: problem.shapes_of_role[role] for index, role in roles if role in problem.shapes_of_role}
