"""One GPU that is cut today: whether more fits beside who stays, and how few must go, by brute force over starts."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from tests.support.mig_specs import card, mig_request

from dovetail.engine import solve
from dovetail.mig import Instance, layouts
from dovetail.spec import Cluster, Current, Node, PresentReplica, ReplicaId, Role, Spec, Workload
from dovetail.verify import verify

PRODUCTS = ("A100-80GB", "A30-24GB")
SLICE = 24
CAMPAIGN = 200


def brown(seed: int) -> tuple[Spec, list[Instance], Counter[str]]:
    """Return a GPU with a layout of today, who is pinned to it, and what more is to run, dearer than all of them."""
    draw = Random(seed)
    product = PRODUCTS[draw.random() < 0.25]
    one = card(product)
    assert one.mig is not None
    plain = [lay for lay in layouts(one.mig) if lay and all("+" not in each.profile for each in lay)]
    layout = draw.choice(plain)
    tenants = [instance for instance in layout if draw.random() < 0.6]
    names = [profile.name for profile in one.mig.profiles if "+" not in profile.name]
    wanted = Counter(draw.choice(names) for _ in range(draw.choice([1, 1, 2, 3])))
    works = [
        Workload(f"t{i}", "", f"t{i}", "job", (_role(product, each.profile, 1, 1),), movable=False, preemptible=True)
        for i, each in enumerate(tenants)
    ]
    works += [
        Workload(
            f"w{i}", "", f"w{i}", "gang", (_role(product, name, n, None),), priority=9, atomic=True, min_replicas=n
        )
        for i, (name, n) in enumerate(sorted(wanted.items()))
    ]
    running = tuple(PresentReplica(ReplicaId(f"t{i}", "", 0), "n", (0,), str(each)) for i, each in enumerate(tenants))
    cluster = Cluster("c", ("node",), (Node("n", "g", 10, 10, 1, product),), reconfiguration="instance")
    return (
        Spec("brown", cluster, {product: one}, tuple(works), current=Current(running, gpus={"n/0": layout})),
        (tenants),
        wanted,
    )


def _role(product: str, name: str, replicas: int, value: int | None) -> Role:
    request = mig_request(product, name)
    return Role("", replicas, request, request.gpu_milli if value is None else value)


def most_that_stay(spec: Spec, tenants: list[Instance], wanted: Counter[str]) -> int | None:
    """Return how many tenants can stay beside all that is wanted, None where not even an empty GPU holds that."""
    geometry = next(iter(spec.accelerators.values())).mig
    assert geometry is not None
    best: int | None = None
    for layout in layouts(geometry):
        here = [instance for instance in tenants if instance in layout]
        for count in range(len(here), -1, -1):
            if best is not None and count <= best:
                break
            for staying in combinations(here, count):
                rest = Counter(each.profile for each in layout if each not in staying)
                if all(rest[name] >= n for name, n in wanted.items()):
                    best = count
                    break
    return best


def difference(seed: int) -> str | None:
    spec, tenants, wanted = brown(seed)
    best = most_that_stay(spec, tenants, wanted)
    plan = solve(spec)
    assert verify(spec, plan).ok, seed
    new = [replica for replica in plan.placements if replica.workload.startswith("w")]
    stay = len(plan.placements) - len(new)
    if best is None:
        return None if len(new) < wanted.total() else f"seed {seed}: all fits, and nothing does"
    if len(new) < wanted.total() or plan.outcome.status != "optimal":
        return f"seed {seed}: {wanted} fits, and the plan has {len(new)} ({plan.outcome.status})"
    return None if stay == best else f"seed {seed}: {stay} of {len(tenants)} stay, {best} can"


def test_as_few_go_as_brute_force_over_starts_says() -> None:
    assert [wrong for seed in range(SLICE) if (wrong := difference(seed))] == []


def test_positions_bind_in_some() -> None:
    found = [(most_that_stay(*brown(seed)), len(brown(seed)[1])) for seed in range(SLICE // 2)]
    assert sum(best is not None and 0 < best < tenants for best, tenants in found) >= 2
    assert sum(best == tenants for best, tenants in found) >= 2


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 50))
def test_as_few_go_in_many(first: int) -> None:
    assert [wrong for seed in range(first, first + 50) if (wrong := difference(seed))] == []
