"""What idle GPU is good for: the bound on fragmentation never passes a plan, and patterns tell what they lose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
from tests.oracle.test_fragmentation import judged
from tests.support.mig_specs import tiny_mig
from tests.support.mixed_specs import mixed
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import make_spec, node, request, role, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.engine.contents.idling import Idling
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.engine.generation.crews import crews
from dovetail.model.score import view_of
from dovetail.model.state import Fill, Slot, State
from dovetail.objectives.fragmentation import Fragmentation
from dovetail.plan.model import Plan
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.proof.fleet import FleetModel
from dovetail.rules import context_of
from dovetail.spec import Expected, Objective, Request, Role, Share, Spec
from dovetail.verify import verify

TIERS = ("admitted", "fragmentation")


def fragmentation_of(problem: Problem) -> Fragmentation:
    return next(tier for tier in problem.tiers if isinstance(tier, Fragmentation))


@cache
def bounded(made: Callable[[int], Spec], seed: int) -> tuple[Plan, tuple[int, ...]] | None:
    """Return the best plan of a Spec and what the LPs bound its fragmentation by, None where that is not told."""
    spec = judged(made(seed), seed)
    plan, problem = solve(spec, Limits(work=3.0)), compile_problem(context_of(spec))
    bounds = FleetBounds(problem, Stop())
    tiers = [tier.name for tier in problem.tiers]
    if plan.outcome.status != "optimal" or "fragmentation" not in tiers:
        return None
    tier = fragmentation_of(problem)
    given = {told.name: told.value for told in plan.tiers[: tiers.index(tier.name)]}
    found = []
    for priced in (False, True):
        if bounds.knows(tier):
            bounds.prove(tier, given, priced=priced)
            best = bounds.best(tier, given)
            found += [] if best is None else [best[0]]
    return plan, tuple(found)


@pytest.mark.parametrize("made", [tiny, tiny_mig, tiny_sharing, mixed])
def test_no_plan_is_less_fragmented_than_the_bound(made: Callable[[int], Spec]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(24):
        if (found := bounded(made, seed)) is not None:
            plan, bounds = found
            value = next(tier.value for tier in plan.tiers if tier.name == "fragmentation")
            assert all(bound <= value for bound in bounds), seed
            seen["above nothing"] += any(bound > 0 for bound in bounds)
    assert seen["above nothing"] >= 2, seen


def shares(name: str, count: int, compute: int, cpu: int = 1000) -> Role:
    return role(name, count, Request(cpu=cpu, share=Share(compute, modes=("fraction",))))


def fleet(nodes: int, replicas: int) -> Spec:
    """Return nodes of two GPUs with half as many shares of two thirds as GPUs, and small ones."""
    work = [
        workload(f"w{i}", roles=[r]) for i, r in enumerate([shares("a", replicas, 700), shares("b", replicas, 300)])
    ]
    mix = (Expected(Request(gpus=2), (), 1),)
    objective = Objective(tiers=TIERS, future_mix=mix)
    return make_spec([node(f"n{i}", 2, mechanism="fraction") for i in range(nodes)], work, objective=objective)


def test_a_fleet_is_proved_to_leave_whole_nodes() -> None:
    plan = solve(fleet(40, 20))
    told = {tier.name: tier for tier in plan.tiers}
    assert verify(fleet(40, 20), plan).ok
    assert (told["fragmentation"].value, told["fragmentation"].bound) == (0, 0)


def test_patterns_lose_what_the_measure_says() -> None:
    mix = (
        Expected(Request(gpus=2, cpu=4000), (), 3),
        Expected(Request(cpu=1000, share=Share(400, modes=("fraction",))), (), 2),
    )
    objective = Objective(tiers=TIERS, future_mix=mix)
    work = [workload("w", roles=[shares("a", 4, 500, cpu=3000)]), workload("v", roles=[role("b", 2, request(1))])]
    spec = make_spec([node("n", 3, cpu=8000, mechanism="fraction")], work, objective=objective)
    problem = compile_problem(context_of(spec))
    judge = fragmentation_of(problem).judge
    (kind,) = FleetModel(problem).kinds
    idling = Idling.of(problem, kind)
    assert idling is not None
    half, whole = (shape.index for shape in sorted(problem.shapes, key=lambda shape: shape.request.gpus))
    for slots in ({}, {Slot(half, 0): 1}, {Slot(half, 0): 2}, {Slot(half, 0): 1, Slot(half, 1): 1}, {Slot(whole): 1}):
        state = State({0: Fill(Counter(slots))}) if slots else State()
        found = judge.of_view(view_of(problem, state))
        assert idling.most - idling.lost(tuple(sorted(slots.items()))) == found.idle - found.amount


def test_places_held_free_leave_the_bound_to_arithmetic() -> None:
    """A proof of another kind of plan, however made, finds no tier to speak of."""
    problem = compile_problem(context_of(make_spec([node("n")], [workload("w", 1)])))
    assert "fragmentation" not in FleetModel(problem, priced=True, tells_idle=True).tiers


def test_gangs_without_counted_domains_go_where_the_lp_has_them() -> None:
    """Nodes with much CPU come first, and are left to those who need it."""
    rich = [node(f"a{i}", cpu=100_000, domains={"rack": "r"}) for i in range(2)]
    plain = [node(f"b{i}", cpu=10_000, domains={"rack": "r"}) for i in range(2)]
    gang = workload("gang", roles=[role("g", 2, request(8))], type="gang", communicates=True)
    needy = workload("needy", roles=[role("n", 2, request(8, cpu=50_000))])
    problem = compile_problem(
        context_of(make_spec([*rich, *plain], [gang, needy], objective=Objective(tiers=("admitted",))))
    )
    bounds = FleetBounds(problem, Stop())
    lp = bounds.target(dict.fromkeys((tier.name for tier in problem.tiers), 0))
    names = {problem.nodes[index].name for index in crews(lp, Stop()).fills}
    assert names == {"b0", "b1"}
