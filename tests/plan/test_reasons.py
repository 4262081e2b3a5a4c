"""Reasons for what is left out are facts of the plan, the dominant one first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.support.mig_specs import card
from tests.support.plans import measured, plan_for
from tests.support.specs import CARD, CARDS, make_spec, node, place, places, policy, request, role, workload

from dovetail.placement import Place
from dovetail.plan import Outcome, Status, finish
from dovetail.rules import context_of, policy_of, strategy_of
from dovetail.rules.admission import Admission
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.reserve import Reserve
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import (
    Group,
    Node,
    NodeSelector,
    Objective,
    Policy,
    Share,
    Taint,
    Topology,
    Workload,
    WorkloadSelector,
)


def reasons(
    nodes: list[Node],
    work: list[Workload],
    rows: Mapping[str, tuple[str, tuple[int, ...]]] | None = None,
    policies: list[Policy] | None = None,
    status: Status = "optimal",
    running: Mapping[str, Place] | None = None,
    objective: Objective | None = None,
) -> dict[str, tuple[str, ...]]:
    spec = make_spec(nodes, work, policies or [], running=running, objective=objective)
    plan = plan_for(spec, places({key: place(name, *gpus) for key, (name, gpus) in (rows or {}).items()}), status)
    return {name: result.reasons for name, result in plan.admitted.items()}


def closed_to_w(policies: list[Policy]) -> list[Policy]:
    return [replace(each, workloads=WorkloadSelector(names=("w",))) for each in policies]


W = workload("w", 1, gpus=2)
HIGH = workload("high", 2, gpus=2, priority=9)
PEER = workload("peer", 2, gpus=2)


@pytest.mark.parametrize(
    ("nodes", "work", "codes"),
    [
        ([node("n", 0)], W, ("DT4101",)),
        ([node("n", 4)], workload("w", gpus=1, accelerators=("L4",)), ("DT4101",)),
        ([node("n", 1)], W, ("DT4101",)),
        ([node("n", 1), node("m", 1)], W, ("DT4102",)),
        ([node("n", 2, failed_gpus=frozenset({0}))], W, ("DT4101",)),
        ([node("n", 2, cpu=500)], W, ("DT4103",)),
        ([node("n", 2, memory=500)], W, ("DT4104",)),
        ([node("n", 2)], workload("w", gpus=2, resources={"rdma": 1}), ("DT4104",)),
        ([node("n", 2, cordoned=True)], W, ("DT4105",)),
        ([node("n", 2, down=True)], W, ("DT4105",)),
        ([node("n", 2, taints=(Taint("keep"),)), node("m", 1)], W, ("DT4105",)),
        ([node("n", 1, cordoned=True)], W, ("DT4101",)),
        ([node("n", 2, mechanism="devicePlugin")], workload("w", share=100), ("DT4109",)),
        ([node("n", 2, accelerator="L4")], workload("w", share=(100, 23_041)), ("DT4111",)),
        ([node("n", 2, cordoned=True)], workload("w", share=(100, 23_041)), ("DT4105",)),
        ([node("n", 0, cpu=500)], workload("w"), ("DT4103",)),
        ([node("n", 0, memory=500)], workload("w"), ("DT4104",)),
    ],
)
@pytest.mark.parametrize("status", ["optimal", "feasible"])
def test_what_no_empty_cluster_could_take(
    nodes: list[Node], work: Workload, codes: tuple[str, ...], status: Status
) -> None:
    assert reasons(nodes, [work], status=status) == {"w": codes}


def test_capacity_taken_by_higher_priority() -> None:
    found = reasons([node("n", 4)], [W, HIGH], {"high#0": ("n", (0, 1)), "high#1": ("n", (2, 3))})
    assert found == {"w": ("DT4101", "DT4107")}


def test_capacity_taken_by_equals_does_not_outrank() -> None:
    found = reasons([node("n", 4)], [W, PEER], {"peer#0": ("n", (0, 1)), "peer#1": ("n", (2, 3))})
    assert found == {"w": ("DT4101",)}


def test_free_gpus_on_no_single_node() -> None:
    work = [W, workload("one", 2, gpus=1, priority=9)]
    found = reasons([node("n", 2), node("m", 2)], work, {"one#0": ("n", (0,)), "one#1": ("m", (0,))})
    assert found == {"w": ("DT4102", "DT4107")}


def test_idle_parts_of_gpus_are_no_free_gpus() -> None:
    half = workload("half", 2, share=500, priority=9)
    rows = {"half#0": ("n", (0,)), "half#1": ("m", (0,))}
    assert reasons([node("n", 2), node("m", 1)], [W, half], rows) == {"w": ("DT4101", "DT4107")}
    assert reasons([node("n", 2), node("m", 2)], [W, half], rows) == {"w": ("DT4102", "DT4107")}


def test_a_share_that_fits_no_single_gpu() -> None:
    work = [workload("s", 3, share=600)]
    assert reasons([node("n", 2)], work, {"s#0": ("n", (0,)), "s#1": ("n", (1,))}) == {"s": ("DT4111",)}


def test_cpu_and_memory_taken() -> None:
    work = [W, workload("c", 1, cpu=5500, memory=0)]
    assert reasons([node("n", 2, cpu=6000)], work, {"c#0": ("n", ())}) == {"w": ("DT4103",)}
    work = [W, workload("c", 1, memory=5500, cpu=0)]
    assert reasons([node("n", 2, memory=6000)], work, {"c#0": ("n", ())}) == {"w": ("DT4104",)}


def test_nothing_is_claimed_to_be_final_while_the_band_is_open() -> None:
    rows = {"high#0": ("n", (0, 1)), "high#1": ("n", (2, 3))}
    assert reasons([node("n", 4)], [W, HIGH], rows, status="feasible") == {"w": ("DT4100", "DT4101", "DT4107")}


def test_a_place_that_was_not_taken_is_not_explained_away() -> None:
    assert reasons([node("n", 4)], [W], status="feasible") == {"w": ("DT4100",)}


def test_a_gang_that_fits_in_part() -> None:
    gang = workload("g", 3, gpus=2, type="gang")
    assert reasons([node("n", 4)], [gang]) == {"g": ("DT4108",)}
    assert reasons([node("n", 4)], [workload("g", 4, gpus=2, min_replicas=3)]) == {"g": ("DT4108",)}


def elastic(step: int, *, gpus: int = 2, topology: Topology | None = None) -> Workload:
    """Return a gang of two to ten replicas in steps."""
    asked = replace(role("", 10, request(gpus)), least=2, step=step)
    return replace(workload("g", type="gang", roles=[asked], topology=topology), min_replicas=2)


def wide(count: int, name: str = "n", gpus: int = 2) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {f"g#{i}": (name, tuple(range(gpus * i, gpus * i + gpus))) for i in range(count)}


def test_an_elastic_gang_that_has_no_room_for_a_step() -> None:
    assert reasons([node("n", 16)], [elastic(4)], wide(6)) == {"g": ("DT4108",)}
    assert reasons([node("n", 12)], [elastic(4)], wide(6)) == {"g": ("DT4101",)}
    assert reasons([node("n", 20)], [elastic(4)], wide(6), status="feasible") == {"g": ("DT4100",)}
    assert reasons([node("n", 16)], [elastic(2)], wide(6), status="feasible") == {"g": ("DT4100",)}


def test_an_elastic_gang_that_may_not_have_a_step() -> None:
    quota = [policy("q", Quota((("gpus", 16_000),)))]
    assert reasons([node("n", 20)], [elastic(2)], wide(6), quota) == {"g": ("DT4100",)}
    assert reasons([node("n", 20)], [elastic(4)], wide(6), quota) == {"g": ("DT4106",)}
    spread = [policy("s", Spread("node", max_per_domain=1))]
    nodes, rows = [node("n", 4), node("m", 4)], {"g#0": ("n", (0, 1)), "g#1": ("m", (0, 1))}
    assert reasons(nodes, [elastic(2)], rows, spread) == {"g": ("DT4106",)}


@pytest.mark.parametrize(("level", "code"), [("rack", "DT4113"), ("block", "DT4100")])
def test_an_elastic_gang_grows_where_it_is(level: str, code: str) -> None:
    nodes = [node(f"n{i}", 8, domains={"block": "b", "rack": f"b/r{i // 2}"}) for i in range(4)]
    gang = elastic(4, topology=Topology(level))
    held = policy_of([gang])
    rows = {f"g#{i}": (f"n{i // 4}", (2 * (i % 4), 2 * (i % 4) + 1)) for i in range(6)}
    assert reasons(nodes, [gang], rows, [held] if held else []) == {"g": (code,)}


def test_a_gang_that_fits_only_over_two_accelerators() -> None:
    nodes = [node("n", 2), node("m", 2, accelerator="L4")]
    gang = workload("g", 2, gpus=2, type="gang")
    assert reasons(nodes, [gang]) == {"g": ("DT4108",)}
    mixed = workload("g", 2, gpus=2, type="gang", mix="any")
    assert reasons(nodes, [mixed], status="feasible") == {"g": ("DT4100",)}


def test_policies_that_close_every_node() -> None:
    only = [policy("p", Require(), nodes=NodeSelector(names=("other",)))]
    assert reasons([node("n", 4), node("other", 0)], [W], policies=only) == {"w": ("DT4106",)}
    free = [node("n", 4), node("other", 2)]
    assert reasons(free, [W, PEER], {"peer#0": ("other", (0, 1)), "peer#1": ("n", (0, 1))}, closed_to_w(only)) == {
        "w": ("DT4106",)
    }
    never = [policy("p", Forbid(), nodes=NodeSelector(names=("n",)))]
    assert reasons([node("n", 4)], [W], policies=never) == {"w": ("DT4106",)}


def test_closed_nodes_with_room_for_a_part_of_a_gang_forbid_nothing() -> None:
    gang, closed = (
        workload("g", 3, gpus=2, type="gang"),
        [policy("p", Forbid(), nodes=NodeSelector(names=("m", "k")))],
    )
    closed = [replace(each, workloads=WorkloadSelector(names=("g",))) for each in closed]
    rows = {"high#0": ("n", (0, 1)), "high#1": ("n", (2, 3))}
    nodes = [node("n", 4), node("m", 4)]
    assert reasons(nodes, [gang, HIGH], rows, closed) == {"g": ("DT4101", "DT4107")}
    assert reasons([*nodes, node("k", 2)], [gang, HIGH], rows, closed) == {"g": ("DT4106",)}


def test_nodes_that_are_all_closed_are_told_whatever_is_free_there() -> None:
    never = [policy("p", Forbid(), nodes=NodeSelector(names=("n",)), workloads=WorkloadSelector(names=("w",)))]
    rows = {"peer#0": ("n", (0, 1)), "peer#1": ("n", (2, 3))}
    assert reasons([node("n", 4)], [W, PEER], rows, never) == {"w": ("DT4106",)}


def test_a_share_that_an_instance_of_another_profile_would_hold_is_not_forbidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(CARDS, CARD, card(CARD))
    nodes = [node("n", 2, mig_strategy="single")]
    one_kind = strategy_of(nodes)
    assert one_kind is not None
    small, large = (replace(request(), share=Share(milli, modes=("fraction", "mig"))) for milli in (100, 250))
    work = [workload("w", roles=[role("", 1, small)]), workload("large", roles=[role("", 1, large)])]
    spec = make_spec(nodes, work, [one_kind])
    for profile in ("2g.20gb", "7g.80gb", ""):
        where = Place("n", (0,), f"{profile}@0" if profile else "")
        assert plan_for(spec, places({"large#0": where}), "feasible").admitted["w"].reasons == ("DT4100",)


def test_room_that_is_held_for_a_part_of_a_gang_is_no_room_for_it() -> None:
    spare = policy("spare", Reserve(replicas=1, request=request(2)))
    gang = workload("g", 3, gpus=2, type="gang")
    work, rows = [gang, HIGH], {"high#0": place("n", 0, 1), "high#1": place("n", 2, 3)}
    for size, codes in ((6, ("DT4101", "DT4107")), (10, ("DT4108",)), (11, ("DT4108",))):
        spec = make_spec([node("n", size)], work, [spare])
        context, held = context_of(spec), {"spare": (place("n", 4, 5),)}
        tiers = measured(context, places(rows), proved=True)
        plan = finish(context, places(rows), tiers, Outcome("optimal"), held=held)
        assert plan.admitted["g"].reasons == codes


def test_quotas_forbid_one_replica_and_a_gang() -> None:
    quota = [policy("q", Quota((("gpus", 3000),)))]
    assert reasons([node("n", 8)], [PEER], {"peer#0": ("n", (0, 1))}, quota) == {"peer": ("DT4106",)}
    assert reasons([node("n", 8)], [workload("g", 2, gpus=2, type="gang")], policies=quota) == {"g": ("DT4106",)}


def test_soft_policies_forbid_nothing() -> None:
    soft = [policy("q", Quota((("gpus", 1000),)), enforcement=1)]
    assert reasons([node("n", 8)], [W], policies=soft, status="feasible") == {"w": ("DT4100",)}


def test_policies_are_named_only_when_every_place_is_forbidden() -> None:
    apart = [policy("s", Separate("workload", "node"))]
    rows = {"peer#0": ("n", (0, 1)), "peer#1": ("n", (2, 3))}
    assert reasons([node("n", 8)], [W, PEER], rows, apart) == {"w": ("DT4106",)}
    assert reasons([node("n", 8), node("m", 8)], [W, PEER], rows, apart, "feasible") == {"w": ("DT4100",)}


def test_spread_forbids_a_second_replica_on_a_node() -> None:
    spread = [policy("s", Spread("node", max_per_domain=1)), policy("m", Move(max_moves=0))]
    assert reasons([node("n", 8)], [PEER], {"peer#0": ("n", (0, 1))}, spread) == {"peer": ("DT4106",)}


def test_roles_are_told_apart() -> None:
    gang = workload("g", type="gang", roles=[role("gpu", 1, request(1)), role("rdma", 1, request(rdma=1))])
    assert reasons([node("n", 2)], [gang]) == {"g": ("DT4104",)}


RUN = workload("run", 2, gpus=1, priority=9)
APART = {"run#0": place("n", 0), "run#1": place("m", 0)}
TWO = [node("n", 2), node("m", 2)]
LIMITS = [policy("limit", Move(max_moves=0))]


def left_out(policies: list[Policy], run: Workload = RUN, **more: Any) -> tuple[str, ...]:
    rows = {key: (where.node, where.gpus) for key, where in APART.items()}
    return reasons(TWO, [W, run], rows, policies, running=APART, **more)["w"]


@pytest.mark.parametrize("rule", [Move(max_moves=0), Move(never=True)])
def test_a_limit_on_moves_is_named_where_a_move_would_do(rule: Move) -> None:
    assert left_out([policy("limit", rule)]) == ("DT4110", "DT4102")
    assert left_out([policy("limit", rule)], status="feasible") == ("DT4100", "DT4110", "DT4102")


def test_a_limit_on_moves_is_not_named_where_it_leaves_moves() -> None:
    assert left_out([policy("limit", Move(max_moves=1))]) == ("DT4102", "DT4107")
    assert left_out([policy("limit", Move(max_moves=0), enforcement="audit")]) == ("DT4102", "DT4107")


def test_a_limit_on_moves_is_not_named_where_moves_do_not_help() -> None:
    assert left_out(LIMITS, replace(RUN, movable=False)) == ("DT4102", "DT4107")
    apart = policy("apart", Spread("node", max_per_domain=1), workloads=WorkloadSelector(names=("run",)))
    assert left_out([*LIMITS, apart]) == ("DT4102", "DT4107")


def test_a_limit_on_moves_is_not_named_where_the_objective_puts_something_first() -> None:
    first = Objective(tiers=("mend", "disruption", "admitted", "policies", "cost"))
    assert left_out(LIMITS, objective=first) == ("DT4102", "DT4107")


def test_a_gang_that_moves_would_admit() -> None:
    gang = workload("g", 2, gpus=2, type="gang")
    nodes = [*TWO, node("o", 2)]
    rows = {key: (where.node, where.gpus) for key, where in APART.items()}
    assert reasons(nodes, [gang, RUN], rows, LIMITS, running=APART) == {"g": ("DT4110", "DT4108")}
    assert reasons(TWO, [gang, RUN], rows, LIMITS, running=APART) == {"g": ("DT4102", "DT4107")}


@pytest.mark.parametrize(
    ("topology", "codes"),
    [
        (Topology("rack"), ("DT4113",)),
        (Topology(groups=(Group("node", 3),)), ("DT4113",)),
        (Topology(groups=(Group("rack", 6), Group("node", 2))), ("DT4113",)),
        (Topology(groups=(Group("node", 2),)), ("DT4100",)),
        (Topology("block"), ("DT4100",)),
    ],
)
def test_room_that_is_not_together_is_a_reason(topology: Topology, codes: tuple[str, ...]) -> None:
    nodes = [node(f"n{i}", 4, domains={"block": "b", "rack": f"b/r{i // 2}"}) for i in range(4)]
    gang = workload("g", 6, gpus=2, type="gang", topology=topology)
    held = policy_of([gang])
    assert held is not None
    assert reasons(nodes, [gang], policies=[held]) == {"g": codes}


@pytest.mark.parametrize(("priority", "codes"), [(9, ("DT4108", "DT4107")), (0, ("DT4108",))])
def test_a_gang_of_which_a_part_fits_beside_higher_priorities(priority: int, codes: tuple[str, ...]) -> None:
    gang, other = workload("g", 2, gpus=4, type="gang"), workload("o", 1, gpus=4, priority=priority)
    assert reasons([node("a", 4), node("b", 4)], [gang, other], {"o#0": ("a", (0, 1, 2, 3))}) == {"g": codes}


@pytest.mark.parametrize(("movable", "code"), [(False, "DT4115"), (True, "DT4100")])
def test_what_runs_of_a_gang_and_may_not_move_is_a_reason(movable: bool, code: str) -> None:
    down = node("n1", 4, domains={"rack": "r0"}, down=True)
    nodes = [node("n0", 4, domains={"rack": "r0"}), down, *(node(f"n{i}", 4, domains={"rack": "r1"}) for i in (2, 3))]
    gang = workload("g", 2, gpus=4, type="gang", movable=movable, topology=Topology("rack"))
    held = policy_of([gang])
    assert held is not None
    running = {f"g#{i}": place(f"n{i}", 0, 1, 2, 3) for i in (0, 1)}
    assert reasons(nodes, [gang], policies=[held], running=running) == {"g": (code,)}


TOGETHER: list[tuple[dict[str, Any], str]] = [
    ({"at_least": "minimum"}, "DT4106"),
    ({"at_least": "all"}, "DT4106"),
    ({"at_least": 5}, "DT4106"),
    ({"at_least": 4}, "DT4100"),  # `w` alone would do
    ({"at_least": 2, "count": "workloads"}, "DT4106"),
    ({"at_least": 1, "count": "workloads"}, "DT4100"),
    ({"at_least": "floors"}, "DT4100"),  # nothing was promised
]
"""What of a group must be there if anything is, and why four replicas that have room are not."""


@pytest.mark.parametrize(("rule", "code"), TOGETHER)
@pytest.mark.parametrize("runs", [False, True])
def test_what_is_admitted_with_others_only_is_forbidden_without_them(
    rule: dict[str, Any], code: str, runs: bool
) -> None:
    mine, other = workload("w", 4, gpus=1, type="gang", preemptible=True), workload("x", 1, gpus=9)
    mine, other = replace(mine, min_replicas=4), replace(other, min_replicas=1)
    held = policy("p", Admission(per="all", or_none=True, **rule))
    running = {f"w#{index}": place("n", index) for index in range(4)} if runs else {}
    found = reasons([node("n", 4)], [mine, other], policies=[held], running=running)
    assert found["w"] == ("DT4115" if runs and code == "DT4100" else code,)


def test_who_is_admitted_with_others_that_are_there_is_not_forbidden() -> None:
    one, other = workload("w", 1, gpus=1), workload("x", 1, gpus=1)
    held = policy("p", Admission(per="all", or_none=True, at_least=1))
    found = reasons([node("n", 4)], [one, other], {"x#0": ("n", (0,))}, policies=[held])
    assert found == {"w": ("DT4100",)}


@pytest.mark.parametrize(
    ("islands", "busy", "code"),
    [
        (((0, 1), (2, 3)), (0, 2), "DT4114"),  # two GPUs are free, one in each
        (((0,), (1,), (2,), (3,)), (), "DT4114"),  # no island is large enough
        ((), (0, 1, 2), "DT4101"),
        (((0, 1), (2, 3)), (0, 1, 2), "DT4101"),
    ],
)
def test_enough_gpus_in_no_one_island(islands: tuple[tuple[int, ...], ...], busy: tuple[int, ...], code: str) -> None:
    rows = {f"one#{index}": ("n", (gpu,)) for index, gpu in enumerate(busy)}
    found = reasons([node("n", 4, islands=islands)], [W, workload("one", len(busy) or 1, gpus=1)], rows)
    assert found["w"] == (code,)


def test_one_island_for_all_of_a_gang() -> None:
    gang = workload("w", 2, type="gang", gpus=1, topology=Topology("island"))
    nodes = [node("n", 4, islands=((0, 1), (2, 3)))]
    rows = {"one#0": ("n", (0,)), "one#1": ("n", (2,))}
    held = policy_of([gang])
    found = reasons(nodes, [gang, workload("one", 2, gpus=1)], rows, [held] if held else [])
    assert found["w"] == ("DT4113",)


@pytest.mark.parametrize(("tiers", "code"), [(("mend", "admitted"), "DT4106"), (("admitted", "mend"), "DT4100")])
@pytest.mark.parametrize("gang", [True, False])
def test_what_today_excuses_keeps_out_whom_it_would_stay_broken_for(
    tiers: tuple[str, ...], code: str, gang: bool
) -> None:
    """Mending comes before what is admitted, where the objective says so: who makes a quota whole is let go."""
    tune = workload("tune", 2, gpus=1, type="gang" if gang else "job", preemptible=True, movable=True)
    keep, few = workload("keep", 1, gpus=1), policy("few", Quota((("gpus", 1_000),)))
    running = {"keep#0": place("n", 0), "tune#0": place("n", 1), "tune#1": place("n", 2)}
    goal = Objective(tiers=tiers)
    found = reasons([node("n", 4)], [tune, keep], {"keep#0": ("n", (0,))}, [few], running=running, objective=goal)
    assert found == {"tune": (code,)}
