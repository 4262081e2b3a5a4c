"""Taking off what cannot stand: gangs that are not whole, services with too few replicas, places held for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from dovetail.model.score import short_of_groups, view_of
from dovetail.model.state import Fill, State
from dovetail.placement import mix_holds
from dovetail.problem import Problem
from dovetail.spec import Role, Workload


def legalise(problem: Problem, state: State) -> State:
    """Return a state without the replicas of workloads that miss their threshold or mix accelerators (S2.1, S2.4).

    Nor has it places that are held where they do not count (S4.7): no plan tells them, and nothing is kept off them.
    """
    admitted = state.admitted()
    refused: set[int] = set()
    for workload in problem.spec.workloads:
        if not workload.joint:
            continue
        shapes = problem.shapes_of_workload.get(workload.id, ())
        counts = {role.name: _count(problem, admitted, workload, role) for role in workload.roles}
        if any(counts.values()) and not (workload.allows(counts) and _may_mix(problem, state, workload)):
            refused |= set(shapes)
    state = without_shapes(state, refused) if refused else state
    if problem.in_squads:
        few = short_of_groups(problem, view_of(problem, state))
        refused = {shape for workload in few for shape in problem.shapes_of_workload[workload.id]}
        state = without_shapes(state, refused) if refused else state
    return _without_vain_places(problem, state)


def _count(problem: Problem, admitted: Counter[int], workload: Workload, role: Role) -> int:
    """Return how many replicas of a role are admitted; roles of joint workloads have shapes of their own."""
    return admitted[problem.shapes_of_role.get((workload.id, role.name), -1)]


def _may_mix(problem: Problem, state: State, workload: Workload) -> bool:
    """Tell whether the accelerators that a workload is on agree as it demands."""
    if not workload.atomic or workload.mix == "any":
        return True
    view = view_of(problem, state)
    return mix_holds(problem.spec, workload, {r: view.places[r] for r in view.admitted(workload)})


def _without_vain_places(problem: Problem, state: State) -> State:
    """Return a state without the places that are held on nodes where they do not count."""
    fills: dict[int, Fill] = {}
    for workload in problem.spec.placeholders:
        shape = problem.shapes_of_workload[workload.id][0]
        told = (view_of(problem, state).held or {}).get(workload.holds, ())
        counted = {place.node for place in told}
        for node in state.totals().where.get(shape, {}):
            if problem.nodes[node].name not in counted:
                fill = fills.get(node) or state.fill(node)
                slots = Counter({slot: n for slot, n in fill.slots.items() if slot.shape != shape})
                fills[node] = Fill(slots, fill.kept)
    return state.with_fills(fills) if fills else state


def without_shapes(state: State, shapes: Container[int]) -> State:
    """Return a state without any replica of some shapes."""
    return State(
        {
            index: Fill(
                Counter({slot: n for slot, n in fill.slots.items() if slot.shape not in shapes}),
                Counter({place: n for place, n in fill.kept.items() if place.shape not in shapes}),
            )
            for index, fill in state.fills.items()
        }
    )
