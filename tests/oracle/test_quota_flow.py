"""What a cohort borrows too much is what a maximum flow leaves unserved, by hand and at random."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import NamedTuple

import pytest
from tests.support.specs import make_spec, node, policy, workload

from dovetail.placement import Place
from dovetail.rules import context_of
from dovetail.rules.quota import Quota
from dovetail.spec import ReplicaId, Spec, WorkloadSelector


class Group(NamedTuple):
    """A tenant: replicas of one GPU that it wants and has, its own GPUs, and its limits; None is no limit."""

    wants: int
    has: int
    own: int
    borrows: int | None = None
    lends: int | None = None


def max_flow(edges: dict[tuple[str, str], int], source: str = "source", sink: str = "sink") -> int:
    """Return the maximum flow, by shortest augmenting paths (Edmonds and Karp 1972)."""
    left = dict(edges)
    for tail, head in edges:
        left.setdefault((head, tail), 0)
    total = 0
    while True:
        before: dict[str, str] = {source: source}
        queue = deque([source])
        while queue and sink not in before:
            here = queue.popleft()
            for (tail, head), room in left.items():
                if tail == here and room > 0 and head not in before:
                    before[head] = here
                    queue.append(head)
        if sink not in before:
            return total
        path = [sink]
        while path[-1] != source:
            path.append(before[path[-1]])
        steps = list(zip(path[1:], path, strict=False))
        amount = min(left[step] for step in steps)
        for tail, head in steps:
            left[tail, head] -= amount
            left[head, tail] += amount
        total += amount


def unserved(groups: list[Group], lends: str) -> int:
    """Return the GPUs in use that neither a group's own nor lent ones cover."""
    edges: dict[tuple[str, str], int] = {}
    everything = sum(g.has + g.own for g in groups)
    for number, g in enumerate(groups):
        idle = g.own if lends == "unused" else max(0, g.own - g.wants)
        edges["source", f"use{number}"] = g.has
        edges[f"use{number}", f"own{number}"] = everything
        edges[f"use{number}", "cohort"] = everything
        edges["cohort", f"own{number}"] = idle if g.lends is None else min(idle, g.lends)
        edges[f"own{number}", "sink"] = g.own
    return sum(g.has for g in groups) - max_flow(edges)


def violations(groups: list[Group], lends: str) -> dict[str, int]:
    """Return what the rule says of these groups, in GPUs."""
    policies = [
        policy(
            f"q{number}",
            Quota(
                guaranteed=(("gpus", 1000 * g.own),),
                borrowing=None if g.borrows is None else (("gpus", 1000 * g.borrows),),
                lending=None if g.lends is None else (("gpus", 1000 * g.lends),),
                lends=lends,  # type: ignore[arg-type]
                cohort="c",
            ),
            workloads=WorkloadSelector(tenants=(f"t{number}",)),
        )
        for number, g in enumerate(groups)
    ]
    spec = make_spec(
        [node("a", 64)], [workload(f"t{n}/w", g.wants, gpus=1) for n, g in enumerate(groups) if g.wants], policies
    )
    return _told(spec, groups)


def _told(spec: Spec, groups: list[Group]) -> dict[str, int]:
    places = {ReplicaId(f"t{n}/w", "", i): Place("a", (i,)) for n, g in enumerate(groups) for i in range(g.has)}
    context = context_of(spec)
    found = context.violations(context.view(places))
    return {f"{name} {subject}": count // 1000 for name, told in found.items() for subject, count in told.items()}


@pytest.mark.parametrize(
    ("groups", "lends", "expected"),
    [
        ([Group(4, 4, 2), Group(0, 0, 2)], "idle", {}),
        ([Group(4, 4, 2), Group(1, 0, 2)], "idle", {"q0 cohort c/gpus": 1}),
        ([Group(4, 4, 2), Group(1, 0, 2)], "unused", {}),
        ([Group(4, 4, 2, borrows=1), Group(0, 0, 2)], "idle", {"q0 all/gpus": 1}),
        ([Group(4, 4, 2), Group(0, 0, 2, lends=1)], "idle", {"q0 cohort c/gpus": 1}),
        ([Group(3, 3, 2), Group(3, 3, 2), Group(2, 0, 2)], "unused", {}),
        ([Group(3, 3, 2), Group(4, 4, 2), Group(2, 0, 2)], "unused", {"q0 cohort c/gpus": 1}),
        ([Group(0, 0, 0), Group(3, 3, 2)], "idle", {"q0 cohort c/gpus": 1}),
    ],
)
def test_by_hand(groups: list[Group], lends: str, expected: dict[str, int]) -> None:
    assert violations(groups, lends) == expected


def test_at_random() -> None:
    rng, short = Random(24), 0
    for _ in range(400):
        groups = []
        for _ in range(rng.randint(2, 4)):
            wants = rng.randint(0, 6)
            limit = rng.choice((None, None, 0, 1, 3))
            groups.append(Group(wants, rng.randint(0, wants), rng.randint(0, 5), rng.choice((None, 2)), limit))
        lends = rng.choice(("idle", "unused"))
        found = violations(groups, lends)
        above = {
            f"q{n} all/gpus": g.has - g.own - g.borrows
            for n, g in enumerate(groups)
            if g.borrows is not None and g.has > g.own + g.borrows
        }
        missing = unserved(groups, lends)
        short += missing > 0
        assert found == {**above, **({"q0 cohort c/gpus": missing} if missing else {})}, (groups, lends)
    assert short >= 100
