"""Taking off what cannot stand alone: gangs that are not whole, services below their least number of replicas."""

from __future__ import annotations

from collections import Counter

from dovetail.model.expand import expand
from dovetail.model.state import Fill, State
from dovetail.placement import by_workload, mix_holds
from dovetail.problem import Problem


def legalise(problem: Problem, state: State) -> State:
    """Return a state without the replicas of workloads that miss their threshold or mix accelerators (S2.1, S2.4)."""
    admitted = state.admitted()
    places = by_workload(expand(problem, state))
    refused: set[int] = set()
    for workload in problem.spec.workloads:
        shapes = problem.shapes_of_workload.get(workload.id, ())
        joint = workload.atomic or workload.min_replicas > 1
        count = sum(admitted[shape] for shape in shapes) if joint else 0
        if not count:
            continue
        if count < workload.min_replicas or not mix_holds(problem.spec, workload, places[workload.id]):
            refused |= set(shapes)
    return _without(state, refused) if refused else state


def _without(state: State, shapes: set[int]) -> State:
    return State(
        {
            index: Fill(
                Counter({slot: n for slot, n in fill.slots.items() if slot.shape not in shapes}),
                Counter({place: n for place, n in fill.kept.items() if place.shape not in shapes}),
            )
            for index, fill in state.fills.items()
        }
    )
