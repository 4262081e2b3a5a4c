"""One GPU that is cut today: whether more fits beside who stays, and how few must go, by brute force over starts."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from tests.oracle.brute import TooLarge, brute
from tests.support.mig_specs import card, mig_request, tiny_mig

from dovetail.engine import solve
from dovetail.engine.budget import Budget
from dovetail.engine.exact import climb
from dovetail.mig import Instance, layouts
from dovetail.model.part import PartModel
from dovetail.model.score import view_of
from dovetail.model.state import State
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
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


def recut_for_nothing(first: int, last: int) -> tuple[int, list[str]]:
    """Return how many tiny Specs with layouts of today there are, and where more GPUs are cut anew than need be.

    The exact model cuts as few as any of brute force's best plans; a search may end before it looks for that.
    """
    looked, told = 0, []
    for seed in range(first, last):
        spec = tiny_mig(seed)
        context = context_of(spec)
        try:
            optimum = brute(spec) if context.today.layouts else None
        except TooLarge:
            continue
        if optimum is None:
            continue
        least = min(len(context.view(places).recut) for places in optimum.ties)
        problem = compile_problem(context)
        part = PartModel(problem, range(len(problem.nodes)), State())
        found = climb(part, problem.search_tiers, None, None, Budget(20.0), Stop())
        looked += 1
        if (exact := len(view_of(problem, found.state).recut)) != least:
            told.append(f"seed {seed}: {exact} GPUs are cut anew, {least} would do")
    return looked, told


def test_no_gpu_is_cut_anew_for_nothing() -> None:
    looked, told = recut_for_nothing(0, 20)
    assert told == []
    assert looked >= 7


def test_idle_instances_of_today_are_used_before_anything_is_cut() -> None:
    cards = {"H100-80GB": card("H100-80GB")}
    nodes = tuple(Node(f"n{i}", "g", 64, 1000, 4, "H100-80GB") for i in range(3))
    today: dict[str, tuple[Instance, ...]] = {"n1/2": (Instance("3g.40gb", 0), Instance("3g.40gb", 4))}
    today["n2/1"] = tuple(Instance("1g.10gb", start) for start in range(7))
    asked = {"three": ("3g.40gb", 2), "one": ("1g.10gb", 5)}
    works = tuple(
        Workload(name, "", name, "job", (_role("H100-80GB", profile, number, None),))
        for name, (profile, number) in sorted(asked.items())
    )
    cluster = Cluster("c", ("node",), nodes, reconfiguration="gpu")
    plan = solve(Spec("idle", cluster, cards, works, current=Current(gpus=today)))
    assert (plan.outcome.status, len(plan.placements)) == ("optimal", 7)
    assert plan.summary["gpusRepartitioned"] == 0


@pytest.mark.campaign
def test_no_gpu_is_cut_anew_for_nothing_in_many() -> None:
    assert recut_for_nothing(1_000, 1_600)[1] == []


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 50))
def test_as_few_go_in_many(first: int) -> None:
    assert [wrong for seed in range(first, first + 50) if (wrong := difference(seed))] == []
