"""Whether as many of a workload are in a field as may be."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.engine.construction.field import Field
from dovetail.model.bonds import path_of
from dovetail.model.spans import Spans
from dovetail.spec import Workload


def is_legal(field: Field, workload: Workload) -> bool:
    """Tell whether a workload has as many replicas and groups as it may have (S2.1, S2.5, S2.6)."""
    problem, shapes = field.problem, shapes_of(field, workload)
    if not workload.allows({role: field.admitted[shape] for role, shape in shapes.items()}):
        return False
    roles = {shape: role for role, shape in shapes.items()} if workload.squads else {}
    spots = [
        (roles[slot.shape], (problem.nodes[index], slot))
        for index, fill in (field.fills.items() if roles else ())
        for slot, count in fill.slots.items()
        for _ in range(count if slot.shape in roles else 0)
    ]
    divided = Spans(workload, spots, lambda level, at: path_of(level, *at))
    return not spots or all(divided.most(nest) >= workload.groups_owed(nest) for nest in workload.squads)


def shapes_of(field: Field, workload: Workload) -> Mapping[str, int]:
    """Return the shape of each role that has replicas."""
    of = field.problem.shapes_of_role
    return {role.name: of[workload.id, role.name] for role in workload.roles if role.replicas}
