"""Parts of GPUs: the engine and brute force agree in every tier, and `verify` agrees with both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from tests.oracle.brute import TooLarge, brute
from tests.support.mig_specs import card, mig_request, tiny_mig
from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine import solve
from dovetail.mig import Instance
from dovetail.model.part import PartModel
from dovetail.model.state import State
from dovetail.placement import Place
from dovetail.plan import Plan
from dovetail.problem import compile_problem
from dovetail.rules import context_of
from dovetail.rules.admission import Admission
from dovetail.rules.reserve import Reserve
from dovetail.rules.separate import Separate
from dovetail.rules.sharing import Sharing
from dovetail.rules.spread import Spread
from dovetail.rules.survive import Survive
from dovetail.spec import (
    Cluster,
    Enforcement,
    Node,
    Policy,
    ReplicaId,
    Request,
    Role,
    Share,
    Spec,
    Workload,
    WorkloadSelector,
)
from dovetail.spec.workload import ShareMode
from dovetail.verify import verify

SLICE = 24
RULED = 15
CAMPAIGN = 400


def difference(seed: int, drawn: Callable[[int], Spec] = tiny_mig) -> tuple[Spec, Plan, str | None] | None:
    """Return a Spec, its plan and how that differs from the best there is; None where brute force gives up."""
    spec = drawn(seed)
    try:
        best = brute(spec, leaves=3_000, evaluations=800)
    except TooLarge:
        return None
    plan = solve(spec)
    if not verify(spec, plan).ok:
        return spec, plan, f"seed {seed}: the plan is broken"
    if best is None:
        return spec, plan, None if plan.outcome.status == "infeasible" else f"seed {seed}: there is no plan"
    told = {tier.name: tier.value for tier in plan.tiers}
    if plan.outcome.status != "optimal" or told != best.by_name:
        return spec, plan, f"seed {seed}: engine {told}, brute force {best.by_name}"
    return spec, plan, None


@cache
def cases() -> tuple[tuple[Spec, Plan, str | None], ...]:
    return tuple(found for seed in range(SLICE) if (found := difference(seed)) is not None)


def test_engine_and_brute_force_agree() -> None:
    assert [wrong for _, _, wrong in cases() if wrong] == []


def test_the_specs_ask_for_something() -> None:
    found: Counter[str] = Counter()
    for spec, plan, _ in cases():
        found["cut"] += bool(plan.gpus)
        found["cut today"] += bool(spec.current.gpus)
        found["left out"] += len(plan.placements) < sum(workload.replicas for workload in spec.workloads)
        found["cut anew"] += bool(plan.summary.get("gpusRepartitioned"))
    assert min(found[name] for name in ("cut", "cut today", "left out", "cut anew")) >= 4, found


def _ruled(seed: int) -> Spec:
    """Return a Spec of small shares, cut GPUs or not, with a rule of what may be together on one GPU."""
    draw = Random(f"ruled {seed}")
    spec = tiny_mig(seed)
    nodes = tuple(replace(node, mechanism="fraction") for node in spec.cluster.nodes)
    cluster = replace(spec.cluster, nodes=nodes, reconfiguration=spec.cluster.reconfiguration or "gpu")
    work = tuple(_sharing(draw, w) if w.id.startswith("new") else w for w in spec.workloads)
    rule = draw.choice((Sharing(1), Sharing(2), *(Separate("workload", "gpu", unless="mig"),) * 2))
    own = policy("p", rule, enforcement=draw.choice(("hard", "hard", 2, 3000)))
    return replace(spec, cluster=cluster, workloads=work, policies=(own,))


def _sharing(draw: Random, work: Workload) -> Workload:
    modes: tuple[ShareMode, ...] = draw.choice((("mig",), ("fraction",), *(("fraction", "mig"),) * 2))
    asked = Request(cpu=work.roles[0].request.cpu, share=Share(draw.choice((100, 250, 400)), modes=modes))
    return replace(work, roles=(Role("", draw.choice((1, 2)), asked, asked.gpu_milli),))


def _breaks(spec: Spec) -> bool:
    """Tell whether the best plan would break the rule if it were only reported."""
    told = replace(spec, policies=tuple(replace(p, enforcement=Enforcement("audit")) for p in spec.policies))
    return any(row.violation for row in solve(told).policies.values())


def test_they_agree_under_rules_at_gpus() -> None:
    found = [each for seed in range(RULED) if (each := difference(seed, _ruled)) is not None]
    assert [wrong for _, _, wrong in found if wrong] == []
    assert sum(_breaks(spec) for spec, _, _ in found) >= RULED // 5


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 50))
def test_engine_and_brute_force_agree_on_many(first: int) -> None:
    found = [difference(seed) for seed in range(first, first + 50)]
    assert [each[2] for each in found if each is not None and each[2]] == []


def _surviving(seed: int) -> Spec:
    """Return a Spec of two nodes of which either may be lost, work being given up for that or not."""
    draw = Random(f"surviving {seed}")
    found = next(spec for n in range(20) if len((spec := tiny_mig(20 * seed + n)).cluster.nodes) == 2)
    names = sorted(w.id for w in found.workloads)
    matched = WorkloadSelector(names=tuple(draw.sample(names, draw.randint(1, len(names)))))
    may_evict = draw.choice((None, WorkloadSelector(), WorkloadSelector()))
    enforcement = draw.choice(("hard", 1, 3000, 3000))
    own = policy("p", Survive(of="node", may_evict=may_evict), enforcement=enforcement, workloads=matched)
    return replace(found, policies=(own,))


def test_engine_and_brute_force_agree_on_what_restarts_on_instances(tell: Callable[[str], None]) -> None:
    found = [each for seed in range(6) if (each := difference(seed, _surviving)) is not None]
    assert [wrong for _, _, wrong in found if wrong] == []
    again = [place for _, plan, _ in found for rows in plan.recovery.get("p", {}).values() for place in rows.values()]
    on_instances = sum(bool(place.instance) for place in again)
    tell(f"{len(found)} tiny Specs with MIG survive; {len(again)} restarts, {on_instances} of them on instances")
    assert on_instances >= 2


@pytest.mark.campaign
def test_no_recovery_on_instances_is_worse_than_what_is_proved() -> None:
    """A model may know more room than there is; then no plan is called optimal, and none is called impossible."""
    for seed in range(9, 200):
        found = difference(seed, _surviving)
        assert found is None or found[2] is None or found[1].outcome.status in ("feasible", "unknown"), found[2]


def test_a_recovery_on_an_instance_that_is_not_there_is_found() -> None:
    lent = WorkloadSelector(names=("lent",))
    one = mig_request("A100-80GB", "3g.40gb")
    nodes = tuple(Node(f"n{i}", "g", cpu=9, memory=9, gpus=1, accelerator="A100-80GB") for i in range(2))
    work = [Workload(name, "", name, "job", (Role("", 1, one, one.gpu_milli),)) for name in ("kept", "lent")]
    own = policy("p", Survive(of="node", may_evict=lent), workloads=WorkloadSelector(names=("kept",)))
    cards = {"A100-80GB": card("A100-80GB")}
    spec = Spec("s", Cluster("c", ("node",), nodes), cards, tuple(work), policies=(own,))
    plan = solve(spec)
    assert verify(spec, plan).ok
    ((case, rows),) = plan.recovery["p"].items()
    ((replica, place),) = rows.items()
    assert plan.placements[ReplicaId("lent", "", 0)] == place  # who is evicted gives up the instance
    for wrong in ("", "3g.40gb@0" if place.instance == "3g.40gb@4" else "3g.40gb@4", "1g.10gb@0"):
        told = {"p": {case: {replica: Place(place.node, place.gpus, wrong)}}}
        found = verify(spec, replace(plan, recovery=told))
        assert not found.ok, wrong


def test_instances_that_count_for_more_than_a_gpu_do_not_fail_for_want_of_one() -> None:
    work = []
    for name in ("3g.40gb", "4g.40gb"):
        one = mig_request("A100-80GB", name)
        work.append(Workload(name, "", name, "job", (Role("", 1, one, one.gpu_milli),)))
    assert sum(w.roles[0].request.gpu_milli for w in work) > 1000
    nodes = tuple(Node(f"n{i}", "g", cpu=9, memory=9, gpus=1, accelerator="A100-80GB", price=5) for i in range(2))
    own = policy("p", Survive(of="node"), enforcement=1)
    spec = Spec("s", Cluster("c", ("node",), nodes), {"A100-80GB": card("A100-80GB")}, tuple(work), policies=(own,))
    plan = solve(spec)
    assert {tier.name: tier.value for tier in plan.tiers}["policies"] == 2  # where both are, and nothing elsewhere
    assert plan.outcome.status == "optimal"


def test_a_gpu_that_is_cut_is_paid_once_beside_a_share_that_is_held_free_nowhere() -> None:
    room = policy("room", Reserve(replicas=1, request=Request(share=Share(400))), enforcement=1)
    node = Node("n", "g", 10, 10, 1, "A30-24GB", mechanism="fraction", gpu_price=7)
    role = Role("", 2, mig_request("A30-24GB", "2g.12gb"), 500)
    work = Workload("w", "", "w", "job", (role,))
    cards = {"A30-24GB": card("A30-24GB")}
    spec = Spec("s", Cluster("c", ("node",), (node,)), cards, (work,), (room,))
    part = PartModel(compile_problem(context_of(spec)), range(1), State())
    assert part.model.range_of(part.gpus_used("n")) == (0, 1)
    assert {tier.name: tier.value for tier in solve(spec).tiers}["cost"] == 7


def _apart(*more: Policy) -> Spec:
    """Return two replicas that survive the loss of a node; a GPU of one node is cut today, and nothing is on it."""
    nodes = [node("n0", 2, accelerator="L4"), node("n1", 2, accelerator="A100-80GB")]
    work = [workload("w", 2, gpus=1)]
    spec = make_spec(nodes, work, [policy("survives", Survive(of="node")), *more])
    cards = {**spec.accelerators, "A100-80GB": card("A100-80GB")}
    cluster = replace(spec.cluster, reconfiguration="gpu")
    today = replace(spec.current, gpus={"n1/0": (Instance("1g.10gb", 3),)})
    return replace(spec, accelerators=cards, cluster=cluster, current=today)


def test_whole_gpus_are_cut_ones_where_others_are_needed_after_a_failure() -> None:
    spec = _apart(policy("all", Admission()), policy("apart", Spread("node", max_per_domain=1)))
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert plan.placements[ReplicaId("w", "", 1)] == Place("n1", (0,))
    assert verify(spec, plan).ok
