"""Going without replicas of which a policy that searches says that they are too many, such as none could restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from dovetail.mig import parse_instance
from dovetail.model.legal import legalise
from dovetail.model.score import hard_policies, view_of
from dovetail.model.state import Fill, Slot, State, slot_of
from dovetail.placement import Place, View
from dovetail.problem import Problem
from dovetail.spec import ReplicaId

_ROUNDS: Final = 8
"""Replicas are named anew after each, so that others may be too many; what stays broken then is no plan."""


def without_too_many(problem: Problem, state: State) -> State:
    """Return a state without the replicas that hard policies call too many, the same one where there are none."""
    for _ in range(_ROUNDS):
        view = view_of(problem, state)
        gone = sorted(_too_many(problem, view))
        fewer = _without(problem, state, ((replica, view.places[replica]) for replica in gone))
        if fewer is state:
            break
        state = legalise(problem, fewer)
    return state


def _too_many(problem: Problem, view: View) -> Iterator[ReplicaId]:
    hard, context = hard_policies(problem), problem.context
    for policy in problem.spec.policies:
        if policy.rule.searches and policy.name in hard:
            yield from policy.rule.too_many(view, context.scopes[policy.name], context.tolerated[policy.name])


def _without(problem: Problem, state: State, gone: Iterable[tuple[ReplicaId, Place]]) -> State:
    """Return a state without replicas at some places, but for those that stay where they run; else the same."""
    fills: dict[int, Fill] = {}
    for replica, place in gone:
        index = problem.node_index[place.node]
        fill = fills.get(index) or state.fill(index).copy()
        shape = problem.shapes_of_role[replica.workload, replica.role]
        profile = parse_instance(place.instance).profile if place.instance else ""
        staying: Counter[Slot] = Counter()
        for present, count in fill.kept.items():
            staying[slot_of(problem, index, present)] += count
        movable = [
            slot
            for slot, count in fill.slots.items()
            if slot.shape == shape and slot.profile == profile and count > staying[slot]
        ]
        if movable:
            fill.slots[min(movable, key=lambda slot: (slot.gpu not in place.gpus, slot))] -= 1
            fills[index] = Fill(+fill.slots, fill.kept)
    return state.with_fills(fills) if fills else state
