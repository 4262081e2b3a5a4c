"""A plan from today's state touches no more rows than it must, counted against brute force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest
from tests.oracle.brute import TooLarge, brute
from tests.support.specs import make_spec, node, place, policy, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.placement import Place, Places
from dovetail.plan import current_of
from dovetail.rules.require import Forbid
from dovetail.spec import NodeSelector, ReplicaId, Spec, Workload
from dovetail.verify import verify

LEAST = 24


def touched(before: Places, after: Places) -> int:
    """Return how many rows appear, disappear or change."""
    return sum(before.get(replica) != after.get(replica) for replica in before.keys() | after.keys())


def edited(rng: Random, spec: Spec, running: Mapping[ReplicaId, Place]) -> Spec:
    """Return a Spec one edit away: a workload scaled, gone, more important, or asking for more CPU."""
    chosen = rng.choice(spec.workloads)
    first = chosen.roles[0]
    options: list[Workload | None] = [
        replace(chosen, roles=(replace(first, replicas=first.replicas + 1), *chosen.roles[1:])),
        replace(chosen, roles=(replace(first, request=replace(first.request, cpu=1500)), *chosen.roles[1:])),
        replace(chosen, priority=2000),
    ]
    if len(spec.workloads) > 1:
        options.append(None)
    if first.replicas > 1:
        options.append(replace(chosen, roles=(replace(first, replicas=first.replicas - 1), *chosen.roles[1:])))
    new = rng.choice(options)
    if new is not None:
        new = replace(new, min_replicas=new.replicas if new.atomic else min(new.min_replicas, new.replicas))
    kept = tuple(w for w in (new if w.id == chosen.id else w for w in spec.workloads) if w is not None)
    return replace(spec, workloads=kept)


def _cases(first: int, count: int) -> list[tuple[int, int, int]]:
    """Return seed, rows the engine touches, and the fewest that any optimum that admits as many replicas touches.

    Replicas may be worth nothing; admitting one that waits is no change that nobody asked for.
    """
    found = []
    for seed in range(first, first + count):
        spec = replace(tiny(seed), current=make_spec([], []).current)
        if "disruption" not in spec.objective.tiers:
            continue  # then nothing asks for rows to stay where tiers tie
        plan = solve(spec)
        if plan.outcome.status != "optimal" or not plan.placements:
            continue
        after = edited(Random(seed), replace(spec, current=current_of(plan)), plan.placements)
        try:
            optimum = brute(after)
        except TooLarge:
            continue
        if optimum is not None:
            places = solve(after).placements
            rivals = [tie for tie in optimum.ties if len(tie) >= len(places)]
            fewest = min(touched(plan.placements, tie) for tie in rivals)
            found.append((seed, touched(plan.placements, places), fewest))
    return found


def test_a_plan_touches_the_fewest_rows_of_any_optimum() -> None:
    found = _cases(3000, 40)
    assert len(found) >= LEAST
    assert sum(fewest > 0 for _, _, fewest in found) >= LEAST // 3
    assert [case for case in found if case[1] > case[2]] == []


@pytest.mark.campaign
def test_a_plan_touches_the_fewest_rows_of_any_optimum_at_length() -> None:
    assert [case for case in _cases(20_000, 1500) if case[1] > case[2]] == []


def test_scaling_one_workload_by_one_touches_one_row() -> None:
    nodes = [node("a", 4), node("b", 4)]
    work = [workload("one", 3, gpus=1), workload("two", 2, gpus=2)]
    plan = solve(make_spec(nodes, work))
    more = make_spec(nodes, [workload("one", 4, gpus=1), workload("two", 2, gpus=2)])
    again = solve(replace(more, current=current_of(plan)))
    assert touched(plan.placements, again.placements) == 1


@pytest.mark.parametrize("movable", [True, False])
@pytest.mark.parametrize(("free", "moves"), [(2, 0), (4, 0), (5, 1), (7, 1)])
def test_what_was_lost_is_replaced_before_what_runs_moves(free: int, moves: int, movable: bool) -> None:
    """Six of which two run where one may not stay, four were lost, and another one or more waits."""
    nodes = [node("a", 1), node("b", 1), node("free", free), replace(node("lost", 4), down=True)]
    service = workload("w", 8, gpus=1, type="service", min_replicas=3, restart=600_000, movable=movable)
    running = {f"w#{i}": place(name, 0) for i, name in enumerate("ab")}
    running |= {f"w#{i}": place("lost", i - 2) for i in range(2, 6)}
    barred = policy("off-b", Forbid(), nodes=NodeSelector(names=("b",)))
    spec = make_spec(nodes, [service], [barred], running=running)
    plan = solve(spec)
    told = {tier.name: tier.value for tier in plan.tiers}
    assert (plan.outcome.status, verify(spec, plan).ok) == ("optimal", True)
    assert told["disruption.moves"] == (moves if movable else 0)
    assert len(plan.placements) == 1 + (free if movable or free <= 4 else 4)
