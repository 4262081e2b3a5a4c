"""What today breaks is mended by moves: as many as that takes, of those that have to leave, and nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from tests.support.mixed_further import further
from tests.support.mixed_specs import mixed
from tests.support.specs import CARD, make_spec, node, place, policy, replica, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.mending import mended
from dovetail.engine.start import mended_first
from dovetail.model.legal import legalise
from dovetail.model.score import debt, hard_policies, sound, view_of
from dovetail.model.state import State, today_state
from dovetail.objectives import Tier, limit_given, sign_of
from dovetail.objectives.disruption import GpuTimeLost, Moves
from dovetail.objectives.violations import Mend
from dovetail.placement import Place, View
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import Rule, context_of
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.move import Move
from dovetail.rules.require import Forbid
from dovetail.rules.separate import Separate
from dovetail.rules.sharing import Sharing
from dovetail.rules.spread import Spread
from dovetail.spec import Node, NodeSelector, Policy, Spec, Workload, WorkloadSelector


def started(spec: Spec) -> tuple[Problem, State]:
    problem = compile_problem(context_of(spec))
    return problem, legalise(problem, construct(problem, today_state(problem), Stop()))


def values(problem: Problem, state: State) -> dict[str, int]:
    view = view_of(problem, state)
    return {tier.name: tier.measure(view, problem.context) for tier in problem.tiers}


def after(spec: Spec) -> tuple[dict[str, int], View]:
    problem, before = started(spec)
    state = mended(problem, before, Stop(), lambda: False)
    return values(problem, state), view_of(problem, state)


def running(**rows: str) -> Mapping[str, Place]:
    """Return places of workloads, one GPU a replica: `w="aab"` has its first two on node `a`, the third on `b`."""
    used: dict[str, int] = {}
    found = {}
    for name, hosts in rows.items():
        for ordinal, host in enumerate(hosts):
            found[f"{name}#{ordinal}"] = place(host, used.get(host, 0))
            used[host] = used.get(host, 0) + 1
    return found


def test_who_makes_room_for_mending_has_to_do_so_before_more_of_it_is_added() -> None:
    """Of `b`, as soon as it has a fourth replica, none can leave rack `y`, and `a` must come there."""
    nodes = [node(rack, gpus, domains={"rack": rack}) for rack, gpus in (("x", 5), ("y", 3))]
    even = policy("even", Spread(over="rack", max_skew=1))
    spec = make_spec(
        nodes, [workload("a", 4, gpus=1), workload("b", 4, gpus=1)], [even], running=running(a="xxxy", b="xyy")
    )
    problem, before = started(spec)
    state = mended(problem, before, Stop(), lambda: False)
    assert values(problem, state)["mend"] == 1
    first = mended_first(problem, state, Stop(), lambda: False)
    assert (values(problem, first)["mend"], values(problem, first)["disruption.evicted"]) == (0, 0)
    assert mended_first(problem, first, Stop(), lambda: False) is first, "there is nothing left to mend"


def hosts(view: View, name: str) -> str:
    """Return the nodes of a workload's replicas, in order."""
    return "".join(sorted(where.node for who, where in view.places.items() if who.workload == name))


def four(rule: Rule, *more: Policy, where: Mapping[str, Place], work: list[Workload], **about: object) -> Spec:
    """Return nodes `a` to `d` of four GPUs with a new policy on what runs."""
    nodes = [node(name, 4) for name in "abcd"]
    new = policy("new", rule, **about)  # type: ignore[arg-type]
    return make_spec(nodes, work, policies=(new, *more), running=where)


def ones(**counts: int) -> list[Workload]:
    return [workload(name, count, gpus=1) for name, count in counts.items()]


def test_as_many_leave_a_domain_as_it_has_too_many() -> None:
    spec = four(Spread(over="node", max_per_domain=1), where=running(w="aaab"), work=ones(w=4))
    told, view = after(spec)
    assert (told["mend"], told["disruption.moves"]) == (0, 2)
    assert hosts(view, "w") == "abcd"


def test_the_fullest_domain_is_left_first() -> None:
    """One by one from `a` it takes four moves to be even, beginning with `b` five."""
    spec = four(Spread(over="node", max_skew=1), where=running(w="bbbaaaa"), work=ones(w=7))
    told, view = after(spec)
    assert (told["mend"], told["disruption.moves"]) == (0, 3)
    assert hosts(view, "w") in ("aabbccd", "aabbcdd", "aabccdd", "abbccdd")


def test_where_the_emptiest_domain_is_full_others_become_less_uneven() -> None:
    spec = four(
        Spread(over="node", max_skew=1),
        where=running(w="aaaab", other="dddd"),
        work=[*ones(w=5), workload("other", 4, gpus=1, movable=False)],
        workloads=WorkloadSelector(names=("w",)),
    )
    told, view = after(spec)
    assert told["mend"] == 1  # two, two, one and none
    assert hosts(view, "w") == "aabbc"
    assert told["disruption.moves"] == 2


@pytest.mark.parametrize("rule", [Separate(by="tenant", at="node"), Exclusive(at="node")])
def test_the_fewest_leave_a_node_that_must_not_be_shared(rule: Rule) -> None:
    work = [workload("x/w", 2, gpus=1), workload("y/v", 1, gpus=1)]
    where = {"x/w#0": place("a", 0), "x/w#1": place("a", 1), "y/v#0": place("a", 2)}
    about = {"workloads": WorkloadSelector(tenants=("x",))} if isinstance(rule, Exclusive) else {}
    told, view = after(four(rule, where=where, work=work, **about))
    assert (told["mend"], told["disruption.moves"]) == (0, 1)
    assert view.places[replica("y/v#0")].node != "a"


def test_those_who_cannot_all_leave_stay() -> None:
    """One of `y` would find a place, which mends nothing as long as the other is there."""
    nodes = [node("a", 4), node("b", 1)]
    work = [workload("x/w", 2, gpus=1), workload("y/v", 2, gpus=1)]
    where = {"x/w#0": place("a", 0), "x/w#1": place("a", 1), "y/v#0": place("a", 2), "y/v#1": place("a", 3)}
    told, view = after(
        make_spec(nodes, work, policies=(policy("new", Separate(by="tenant", at="node")),), running=where)
    )
    assert (told["mend"], told["disruption.moves"]) == (1, 0)
    assert all(where.node == "a" for where in view.places.values())


def test_clients_leave_a_gpu_that_has_too_many() -> None:
    where = {f"w#{i}": place("a", 0) for i in range(3)}
    spec = four(Sharing(max_clients=2), where=where, work=[workload("w", 3, share=250)])
    told, view = after(spec)
    assert (told["mend"], told["disruption.moves"]) == (0, 1)
    assert sum(place.gpus == (0,) and place.node == "a" for place in view.places.values()) == 2


def test_forbidden_nodes_are_left_and_cordoned_ones_are_not() -> None:
    nodes: list[Node] = [node("a", 4, labels={"old": "yes"}), node("b", 4, cordoned=True), node("c", 4)]
    off = policy("new", Forbid(), nodes=NodeSelector(match_labels={"old": "yes"}))
    told, view = after(make_spec(nodes, ones(w=4), policies=(off,), running=running(w="aabb")))
    assert (told["mend"], told["disruption.moves"]) == (0, 2)
    assert hosts(view, "w") == "bbcc"


def test_others_make_way() -> None:
    """Both places that may be taken hold others, who may be where `w` must not."""
    nodes = [node("a", 2, labels={"old": "yes"}), node("b", 1), node("c", 1)]
    off = policy(
        "new",
        Forbid(),
        workloads=WorkloadSelector(names=("w",)),
        nodes=NodeSelector(match_labels={"old": "yes"}),
    )
    spec = make_spec(nodes, ones(w=1, o=2), policies=(off,), running=running(w="a", o="bc"))
    told, view = after(spec)
    assert (told["mend"], told["disruption.moves"]) == (0, 2)
    assert hosts(view, "o")[0] == "a"
    assert hosts(view, "w") in ("b", "c")


def test_who_makes_way_may_need_that_of_another_where_rules_look_at_places_too() -> None:
    """`w` may only go to `b`, `s` from there to `c`, and `t` from there to `d`."""
    nodes = [
        node("a", 1, labels={"old": "yes"}),
        node("b", 1, accelerator="A100-40GB"),
        node("c", 1, accelerator="A100-40GB", cpu=4000),
        node("d", 1, accelerator="L4"),
    ]
    work = [
        workload("w", 1, gpus=1, cpu=6000, accelerators=(CARD, "A100-40GB")),
        workload("s", 1, gpus=1, accelerators=("A100-40GB",)),
        workload("t", 1, gpus=1, accelerators=("A100-40GB", "L4")),
    ]
    off = policy("new", Forbid(), nodes=NodeSelector(match_labels={"old": "yes"}))
    few = policy("few", Spread(over="node", max_per_domain=1))
    told, view = after(make_spec(nodes, work, policies=(off, few), running=running(w="a", s="b", t="c")))
    assert (told["mend"], told["disruption.moves"]) == (0, 3)
    assert (hosts(view, "w"), hosts(view, "s"), hosts(view, "t")) == ("b", "c", "d")


def test_no_more_move_than_may_and_nobody_who_may_not() -> None:
    few = policy("few-moves", Move(max_moves=1))
    spec = four(Spread(over="node", max_per_domain=1), few, where=running(w="aaa"), work=ones(w=3))
    told, _ = after(spec)
    assert (told["mend"], told["disruption.moves"]) == (1, 1)
    stays = [workload("w", 3, gpus=1, movable=False)]
    spec = four(Spread(over="node", max_per_domain=1), where=running(w="aaa"), work=stays)
    told, _ = after(spec)
    assert (told["mend"], told["disruption.moves"]) == (2, 0)


def test_nothing_is_touched_where_nothing_is_broken() -> None:
    spec = four(Spread(over="node", max_per_domain=2), where=running(w="aab"), work=ones(w=3))
    problem, before = started(spec)
    assert mended(problem, before, Stop(), lambda: False) is before


def test_mend_adds_up_what_is_excused_of_all_policies() -> None:
    twice = policy("other", Spread(over="node", max_per_domain=2))
    spec = four(Spread(over="node", max_per_domain=1), twice, where=running(w="aaa", v="bb"), work=ones(w=3, v=2))
    problem, before = started(spec)
    assert Mend().measure(view_of(problem, before), problem.context) == (2 + 1) + 1


def broken(seed: int, *, gangs: bool = False) -> Spec:
    """Return nodes on which replicas run anyhow, some GPUs to spare, and one new policy or two that today breaks."""
    rng = Random(f"broken {seed}")
    while not any(context_of(spec := drawn(rng, gangs)).tolerated.values()):
        pass
    return spec


def drawn(rng: Random, gangs: bool) -> Spec:
    nodes = [node(name, rng.choice((2, 4)), cpu=rng.choice((6000, 20_000)), labels={"n": name}) for name in "abcde"]
    work, rows = [], {}
    free = {each.name: list(range(each.gpus)) for each in nodes}
    cpu = {each.name: each.cpu for each in nodes}
    for number in range(rng.randint(3, 5)):
        name, many, cores = f"{'xyz'[number % 3]}/w{number}", rng.randint(1, 4), rng.choice((1000, 2000))
        open_to = [n for n in free if free[n] and cpu[n] >= cores]
        chosen = rng.choices(open_to, k=many) if open_to else []
        placed = 0
        for host in chosen:
            if free[host] and cpu[host] >= cores and sum(map(len, free.values())) > 5:
                rows[f"{name}#{placed}"] = place(host, free[host].pop(0))
                cpu[host] -= cores
                placed += 1
        saves = {"checkpoint_every": 600_000, "restart": 60_000} if rng.random() < 0.3 else {}
        gang = {"type": "gang"} if gangs and saves and placed and rng.random() < 0.5 else {}
        movable = {} if gang else {"movable": rng.random() < 0.9}
        work.append(workload(name, max(1, placed), gpus=1, cpu=cores, **movable, **saves, **gang))  # type: ignore[arg-type]
    rules: list[Rule] = [
        Spread(over="node", max_per_domain=1),
        Spread(over="node", max_skew=1),
        Separate(by="tenant", at="node"),
        Exclusive(at="node"),
        Forbid(),
    ]
    policies: list[Policy] = []
    for rule in rng.sample(rules, rng.choice((1, 1, 2))):
        some = WorkloadSelector(tenants=("x",)) if isinstance(rule, Exclusive) or rng.random() < 0.5 else None
        closed = NodeSelector(match_labels={"n": rng.choice("abcde")}) if isinstance(rule, Forbid) else None
        policies.append(policy(f"new-{rule.kind}-{len(policies)}", rule, workloads=some, nodes=closed))
    elapsed = {each.id: rng.randint(0, 7_200_000) for each in work}
    return make_spec(nodes, work, policies=policies, running=rows, elapsed=elapsed)


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_is_better_than_the_exact_engine_has_it(seed: int) -> None:
    spec = broken(seed, gangs=True)
    problem, before = started(spec)
    found = values(problem, mended(problem, before, Stop(), lambda: False))
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    signs = [sign_of(tier.sense) for tier in problem.tiers]
    best = [sign * tier.value for sign, tier in zip(signs, plan.tiers, strict=True)]
    told, was = (
        [s * each for s, each in zip(signs, one.values(), strict=True)] for one in (found, values(problem, before))
    )
    assert was <= told <= best


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("tier", [Moves(), GpuTimeLost()])
def test_no_fewer_move_than_arithmetic_says(tier: Tier, seed: int) -> None:
    """Neither with all mended that can be, nor where some is left as it is."""
    spec = broken(seed, gangs=True)
    problem, before = started(spec)
    for state in (before, mended(problem, before, Stop(), lambda: False)):
        told = values(problem, state)
        assert limit_given(tier, problem.context, {"mend": told["mend"]}) <= told[tier.name]
    best = {told.name: told for told in solve(spec).tiers}
    limit = limit_given(tier, problem.context, {"mend": best["mend"].value})
    assert limit <= best[tier.name].value
    assert best[tier.name].proof == "trivial" or limit < best[tier.name].value


@pytest.mark.parametrize("tier", [Moves(), GpuTimeLost()])
def test_often_no_more_is_lost_than_arithmetic_says(tier: Tier) -> None:
    told = []
    for seed in range(60):
        spec = broken(seed, gangs=True)
        problem, _ = started(spec)
        best = {each.name: each.value for each in solve(spec).tiers}
        told.append(best[tier.name] - limit_given(tier, problem.context, {"mend": best["mend"]}))
    print(f"{tier.name}: in {told.count(0)} of {len(told)} no more than that")
    assert told.count(0) > 25


def test_most_of_what_can_be_mended_is() -> None:
    left = could = 0
    for seed in range(60):
        spec = broken(seed)
        problem, before = started(spec)
        told = values(problem, mended(problem, before, Stop(), lambda: False))
        best = {tier.name: tier.value for tier in solve(spec).tiers}["mend"]
        left += told["mend"] - best
        could += values(problem, before)["mend"] - best
    print(f"of {could} violations that can be mended {left} are left")
    assert could > 60
    assert left <= 0.1 * could


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("draw", [tiny, mixed, further])
def test_mending_breaks_nothing_and_drops_nobody(draw: object, seed: int) -> None:
    problem, before = started(draw(seed))  # type: ignore[operator]
    state = mended(problem, before, Stop(), lambda: False)
    kept = hard_policies(problem)
    assert sound(problem, view_of(problem, state)) == sound(problem, view_of(problem, before))
    assert debt(problem, view_of(problem, state), kept) <= debt(problem, view_of(problem, before), kept)
    assert values(problem, state).get("mend", 0) <= values(problem, before).get("mend", 0)


def test_what_is_broken_inside_a_node_is_not_counted_by_the_node() -> None:
    """Of two in either socket one would have to go, and not three of four."""
    half = (0, 1), (2, 3)
    nodes = [node("a", 4, sockets=half), node("b", 4, sockets=half)]
    few = policy("new", Spread(over="socket", max_per_domain=1))
    problem, before = started(make_spec(nodes, ones(w=4), policies=(few,), running=running(w="aaaa")))
    assert problem.context.tolerated["new"] == {"w": 2}
    assert mended(problem, before, Stop(), lambda: False) is before
