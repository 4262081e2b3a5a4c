"""What waits is let in where others can make way, with the fewest moves; bounds on moves are told and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from random import Random

import pytest
from tests.support.mixed_specs import mixed
from tests.support.specs import CARD, make_spec, node, place, policy, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.engine.construction.clearing import Clearing, cleared, make_room
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.ways import THOROUGH, Ways, Work
from dovetail.engine.fleet.fleet_bounds import FleetBounds, proof_of
from dovetail.model.legal import legalise
from dovetail.model.score import debt, hard_policies, sound, view_of
from dovetail.model.state import Fill, Slot, State, newcomers, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.proof.certificate import Leaf
from dovetail.proof.fleet_models import FleetModels
from dovetail.proof.models import Earlier
from dovetail.proof.standing import StandingModel
from dovetail.proof.tree import Unproved, check_tree
from dovetail.rules import context_of
from dovetail.rules.move import Move
from dovetail.rules.require import Require
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import NodeSelector, Policy, Spec, Workload, WorkloadSelector


def values(problem: Problem, state: State) -> dict[str, int]:
    view = view_of(problem, state)
    return {tier.name: tier.measure(view, problem.context) for tier in problem.tiers}


def started(spec: Spec) -> tuple[Problem, State]:
    problem = compile_problem(context_of(spec))
    return problem, legalise(problem, construct(problem, today_state(problem), Stop()))


def waits(problem: Problem, state: State) -> int:
    return sum(shape.demand - state.admitted()[shape.index] for shape in problem.shapes)


def after(spec: Spec) -> tuple[Problem, State, dict[str, int]]:
    """Return the state once room is made for what waits at first, and its values."""
    problem, before = started(spec)
    assert waits(problem, before)
    state = legalise(problem, cleared(problem, before, Stop(), lambda: False))
    return problem, state, values(problem, state)


def fragmented() -> Spec:
    """Return four nodes of 4 GPUs, each half taken by one replica, and work for a node as a whole."""
    nodes = [node(name, 4) for name in "abcd"]
    work = [workload("small", 4, gpus=2), workload("wide", 1, gpus=4)]
    return make_spec(nodes, work, running={f"small#{i}": place(name, 0, 1) for i, name in enumerate("abcd")})


def test_one_replica_leaves_for_what_needs_a_whole_node() -> None:
    problem, before = started(fragmented())
    after = cleared(problem, before, Stop(), lambda: False)
    told = values(problem, after)
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 1)
    assert sum(after.admitted().values()) == 5


def chained() -> Spec:
    """Return nodes where `wide` needs the GPUs of `small`, that the CPU of `loader`, which may be on a third."""
    nodes = [node("a", 4, cpu=8000), node("b", 4, cpu=8000, accelerator="A100-40GB"), node("c", 0, cpu=8000)]
    work = [
        workload("small", 1, gpus=4, cpu=6000),
        workload("loader", 1, cpu=4000),
        workload("wide", 1, gpus=4, cpu=7000, accelerators=(CARD,)),
    ]
    return make_spec(nodes, work, running={"small#0": place("a", 0, 1, 2, 3), "loader#0": place("b")})


def tight(seed: int) -> Spec:
    """Return nodes that what runs has filled in no good order, short of CPU, GPUs or both, and some that waits."""
    rng = Random(seed)
    nodes = [node(name, rng.choice((2, 4)), cpu=rng.choice((6000, 10_000))) for name in "abcd"]
    work, running = [], {}
    for host in nodes:
        gpus, cpu = list(range(host.gpus)), host.cpu
        for number in range(rng.randint(1, 3)):
            asked, cores = rng.choice((0, 1, 1, 2)), rng.choice((1000, 2000, 4000))
            if asked <= len(gpus) and cores <= cpu:
                work.append(workload(f"{host.name}{number}", 1, gpus=asked, cpu=cores))
                running[f"{host.name}{number}#0"] = place(host.name, *gpus[:asked])
                gpus, cpu = gpus[asked:], cpu - cores
    waits = [workload(f"w{i}", 1, gpus=rng.choice((1, 2, 4)), cpu=rng.choice((2000, 5000))) for i in range(2)]
    spread = [workload("s", 3, gpus=1, cpu=1000)] if seed % 2 else []
    if spread and gpus:  # of the last node
        running["s#0"] = place(host.name, gpus[0])
    if seed % 3 == 0:
        nodes[1] = replace(nodes[1], down=True)
    few = policy("few", Spread(over="node", max_per_domain=1), workloads=WorkloadSelector(names=("s",)))
    return make_spec(nodes, [*work, *waits, *spread], running=running, policies=(few,) if spread else ())


def bound_on(problem: Problem, after: State, name: str = "disruption.moves") -> int:
    bounds, given = FleetBounds(problem, Stop()), dict[str, int]()
    routes = Ways(Outlooks(Field(problem, today_state(problem))), frozenset())
    for tier in problem.tiers:
        value = values(problem, after)[tier.name]
        if tier.name == name:
            bounds.stand(tier, given, value, newcomers(problem, after), None, routes)
            found = bounds.best(tier, given)
            assert found is not None
            return found[0]
        given[tier.name] = value
    raise AssertionError(f"no tier is {name}")


def test_two_that_must_leave_each_make_another_leave_and_no_replica_twice() -> None:
    """Both find the same way: a node that the other one has taken already, and whose replica is gone."""
    nodes = [node("a", 2), node("c", 2, cpu=4000), node("d", 2, cpu=4000), node("e", 2, accelerator="L4")]
    work = [
        workload("light", 2, gpus=1, cpu=4000, accelerators=(CARD,)),
        workload("loose", 2, gpus=1, cpu=4000),
        workload("heavy", 1, gpus=2, cpu=90_000, accelerators=(CARD,)),
    ]
    running = {"light#0": place("a", 0), "light#1": place("a", 1), "loose#0": place("c", 0), "loose#1": place("d", 0)}
    problem, before = started(make_spec(nodes, work, running=running))
    after = cleared(problem, before, Stop(), lambda: False)
    names = {shape.index: shape.workload.id for shape in problem.shapes}
    found = {
        problem.nodes[index].name: {names[slot.shape]: n for slot, n in fill.slots.items()}
        for index, fill in after.fills.items()
    }
    assert found == {"a": {"heavy": 1}, "c": {"light": 1}, "d": {"light": 1}, "e": {"loose": 2}}
    assert after.admitted() == Counter({shape.index: shape.demand for shape in problem.shapes})


def test_that_one_must_leave_is_proved() -> None:
    problem, before = started(fragmented())
    assert bound_on(problem, cleared(problem, before, Stop(), lambda: False)) == 1


def test_who_leaves_may_need_another_to_leave_and_that_is_proved() -> None:
    problem, before = started(chained())
    after = cleared(problem, before, Stop(), lambda: False)
    told = values(problem, after)
    assert (sum(after.admitted().values()), told["disruption.moves"]) == (3, 2)
    assert bound_on(problem, after) == 2


def test_the_proof_is_checked_from_the_documents_and_no_more_is() -> None:
    problem, before = started(chained())
    after = cleared(problem, before, Stop(), lambda: False)
    told, given = values(problem, after), dict[str, int]()
    position = [tier.name for tier in problem.tiers].index("disruption.moves")
    for tier in problem.tiers[:position]:
        given[tier.name] = told[tier.name]
    bounds, routes = FleetBounds(problem, Stop()), Ways(Outlooks(Field(problem, today_state(problem))), frozenset())
    bounds.stand(problem.tiers[position], given, 2, newcomers(problem, after), None, routes)
    best = bounds.best(problem.tiers[position], given)
    assert best is not None
    proof = proof_of("disruption.moves", best[0], given, best[1])
    fleet = StandingModel(problem)  # made anew, as `verify` does
    models = FleetModels(fleet)
    statement = models.of_tier(position, {name: Earlier(value, None) for name, value in given.items()})
    check_tree(statement.question(-2), proof.tree, proof.cuts)
    with pytest.raises(Unproved):
        check_tree(statement.question(-3), proof.tree, proof.cuts)
    (leaf,) = proof.tree
    assert isinstance(leaf, Leaf)
    row = fleet.arrivals[fleet.problem.shapes_of_role["wide", ""]]
    with pytest.raises(Unproved):
        check_tree(statement.question(-2), (replace(leaf, multipliers={**leaf.multipliers, row: 0}),), proof.cuts)


def test_cpu_alone_is_made_room_for_and_that_is_proved() -> None:
    """Two of three leave a node whose GPUs are idle, as nobody else can be there who needs them."""
    nodes = [node("a", 4, cpu=10_000), node("b", 0, cpu=10_000)]
    work = [workload("light", 3, cpu=3000), workload("wide", 1, gpus=4, cpu=7000)]
    spec = make_spec(nodes, work, running={f"light#{i}": place("a") for i in range(3)})
    problem, before = started(spec)
    after = cleared(problem, before, Stop(), lambda: False)
    assert values(problem, after)["disruption.moves"] == 2
    assert sum(after.admitted().values()) == 4
    assert bound_on(problem, after) == 2


def test_a_rule_that_keeps_apart_makes_others_leave() -> None:
    nodes = [node("a", 4), node("b", 2)]
    work = [workload("x/small", 1, gpus=1), workload("y/wide", 1, gpus=3)]
    rule = policy("apart", Separate(by="tenant", at="node"))
    problem, before = started(make_spec(nodes, work, policies=(rule,), running={"x/small#0": place("a", 0)}))
    after = cleared(problem, before, Stop(), lambda: False)
    assert (sum(after.admitted().values()), values(problem, after)["disruption.moves"]) == (2, 1)


def test_who_has_shown_to_find_no_place_is_not_asked_to_leave_again() -> None:
    """Each of many could be where it was, and nowhere else; one other may leave, and few ways are tried in vain."""
    nodes = [node(f"a{i:02}", 1, domains={"rack": "r"}) for i in range(20)]
    nodes += [node("z", 1, domains={"rack": "s"}), node("z-free", 1, accelerator="A100-40GB", domains={"rack": "s"})]
    work = [
        workload("kept", 20, gpus=1, accelerators=(CARD,)),
        workload("loose", 1, gpus=1),
        workload("waits", 1, gpus=1, accelerators=(CARD,)),
    ]
    runs = {f"kept#{i}": place(f"a{i:02}", 0) for i in range(20)} | {"loose#0": place("z", 0)}
    rule = policy("even", Spread(over="rack", max_skew=20), workloads=WorkloadSelector(names=("kept",)))
    problem, before = started(make_spec(nodes, work, policies=(rule,), running=runs))
    outlooks = Outlooks(Field(problem, before))
    clearing = Clearing(outlooks, Ways(outlooks, frozenset()), inf, patience=3)
    assert clearing.place(next(s.index for s in problem.shapes if s.workload.id == "waits"))
    assert clearing.left == {20}


def test_the_place_that_one_leaves_is_no_place_for_the_next() -> None:
    """As a rule looks at who is where, places are looked for while somebody is away, one after the other."""
    nodes = [node("a", 1, domains={"rack": "r"}), node("b", 1, domains={"rack": "r"})]
    rule = policy("two", Spread(over="rack", max_per_domain=2))
    runs = {f"kept#{i}": place(name, 0) for i, name in enumerate(("a", "b"))}
    problem, before = started(make_spec(nodes, [workload("kept", 2, gpus=1)], policies=(rule,), running=runs))
    ways = Ways(Outlooks(Field(problem, before)), frozenset())
    assert [ways.follow(leaver, 0) for index in (0, 1) for leaver in ways.leavers(index)] == [None, None]


def test_with_little_work_only_the_first_nodes_are_looked_at() -> None:
    """The way is on the last of many nodes: each other one has somebody who may not leave."""
    nodes = [node(f"a{i:02}", 1) for i in range(30)] + [node("z", 1), node("free", 1, accelerator="L4")]
    work = [workload("kept", 30, gpus=1, accelerators=(CARD,)), workload("loose", 1, gpus=1)]
    work.append(workload("waits", 1, gpus=1, accelerators=(CARD,)))
    runs = {f"kept#{i}": place(f"a{i:02}", 0) for i in range(30)} | {"loose#0": place("z", 0)}
    problem, before = started(make_spec(nodes, work, running=runs))
    waits = problem.shapes_of_workload["waits"][0]
    found = [
        Ways(Outlooks(Field(problem, before)), frozenset(), work=work).find(waits, 1)
        for work in (THOROUGH, Work(20, 20))
    ]
    assert found == [1, None]


@pytest.mark.parametrize("seed", range(40))
def test_moves_are_no_fewer_than_the_bound_and_no_rule_is_broken(seed: int) -> None:
    problem, before = started(tight(seed))
    after = legalise(problem, cleared(problem, before, Stop(), lambda: False))
    plan = solve(tight(seed))
    assert plan.outcome.status == "optimal"
    best, told = {tier.name: tier.value for tier in plan.tiers}, values(problem, after)
    order = [name for name in told if name != "cost"]
    signs = [-1 if name.startswith("disruption") else 1 for name in order]
    assert [sign * told[n] for sign, n in zip(signs, order, strict=True)] <= [
        sign * best[n] for sign, n in zip(signs, order, strict=True)
    ]
    for position, name in enumerate(order):
        if name in ("disruption.evicted", "disruption.moves") and all(told[n] == best[n] for n in order[:position]):
            assert bound_on(problem, after, name) <= best[name]


def test_ways_that_cost_more_are_found_beside_those_that_cost_less() -> None:
    nodes = [node("a", 2), node("b", 2), node("c", 4, accelerator="L4")]
    work = [
        workload("pair", 1, gpus=2),
        workload("one", 2, gpus=1),
        workload("wide", 1, gpus=2, accelerators=(CARD,)),
    ]
    running = {"pair#0": place("a", 0, 1), "one#0": place("b", 0), "one#1": place("b", 1)}
    problem, before = started(make_spec(nodes, work, running=running))
    ways = Ways(Outlooks(Field(problem, before)), frozenset())
    wide = problem.shapes_of_workload["wide"][0]
    assert ways.find(wide, 2) == 1
    assert [way.node for way in ways.more(wide, 1)] == [0]
    assert [way.node for way in ways.more(wide, 2)] == [1]


def test_nothing_leaves_where_nothing_waits() -> None:
    nodes = [node("a", 4), node("b", 4)]
    problem, before = started(make_spec(nodes, [workload("small", 2, gpus=2)], running={"small#0": place("a", 0, 1)}))
    assert cleared(problem, before, Stop(), lambda: False) == before


def shared_out(*waiting: Workload, room: int = 2, policies: Sequence[Policy] = ()) -> Spec:
    """Return a node whose GPUs have five shares each, another one with idle GPUs, and what waits for the first."""
    nodes = [node("a", 2), node("b", room, accelerator="L4")]
    running = {f"part#{i}": place("a", i // 5) for i in range(10)}
    return make_spec(nodes, [workload("part", 10, share=200), *waiting], policies, running=running)


WIDE = workload("wide", 1, gpus=2, accelerators=(CARD,), cpu=95_000)


def test_many_leave_a_node_for_one_that_needs_all_of_it() -> None:
    problem, before = started(shared_out(WIDE))
    told = values(problem, cleared(problem, before, Stop(), lambda: False))
    assert (told["admitted[0]"], told["disruption.evicted"], told["disruption.moves"]) == (4000, 0, 10)


def test_no_more_leave_a_gpu_for_a_share_than_it_needs() -> None:
    problem, before = started(shared_out(workload("half", 1, share=500, accelerators=(CARD,))))
    told = values(problem, cleared(problem, before, Stop(), lambda: False))
    assert (told["admitted[0]"], told["disruption.moves"]) == (2500, 3)


def test_all_of_many_stay_where_some_have_no_other_place() -> None:
    problem, before = started(shared_out(WIDE, room=1))
    assert values(problem, cleared(problem, before, Stop(), lambda: False)) == values(problem, before)


@pytest.mark.parametrize(("most", "moves"), [(9, 0), (10, 10)])
def test_no_more_of_many_leave_than_a_policy_lets_move(most: int, moves: int) -> None:
    problem, before = started(shared_out(WIDE, policies=[policy("calm", Move(max_moves=most))]))
    told = values(problem, cleared(problem, before, Stop(), lambda: False))
    assert told["disruption.moves"] == moves


@pytest.mark.parametrize(("length", "found"), [(10, True), (300, False)])
def test_chains_of_what_came_anew_end(length: int, found: bool) -> None:
    """Each may be on its node or the next one alone, at no move: nothing but their number keeps who follows short."""
    names = [f"n{k:03d}" for k in range(length + 1)]
    work = [workload(f"w{k:03d}", 1, gpus=1) for k in range(length)]
    places = {w.id: (names[k], names[k + 1]) for k, w in enumerate(work)} | {"first": (names[0],)}
    tied = [
        policy(f"p-{name}", Require(), workloads=WorkloadSelector(names=(name,)), nodes=NodeSelector(names=own))
        for name, own in places.items()
    ]
    spec = make_spec([node(name, 1) for name in names], [*work, workload("first", 1, gpus=1)], tied)
    problem = compile_problem(context_of(spec))
    shape_of = {shape.workload.id: shape.index for shape in problem.shapes}
    fills = {k: Fill(Counter({Slot(shape_of[w.id]): 1})) for k, w in enumerate(work)}
    field = Field(problem, State().with_fills(fills))
    make_room(Outlooks(field), {shape_of["first"]: 1}, Stop())
    assert bool(field.admitted[shape_of["first"]]) == found
    assert field.admitted.total() == length + found


def test_whom_a_rule_keeps_where_they_are_stay_and_others_leave_for_them() -> None:
    """Those of a rack that evenness fills leave a node one by one at the most: another node's replicas all leave."""
    nodes = [
        node("a", 2, domains={"rack": "r"}),
        node("b", 2, domains={"rack": "r"}),
        node("c", 6, accelerator="L4", domains={"rack": "s"}),
    ]
    even = policy("even", Spread(over="rack", max_skew=1), workloads=WorkloadSelector(names=("even",)))
    running = {f"even#{i}": place("a", i // 4) for i in range(8)}
    running |= {f"even#{i}": place("c", i % 2) for i in range(8, 16)}
    running |= {f"part#{i}": place("b", i // 5) for i in range(10)}
    work = [workload("even", 16, share=250), workload("part", 10, share=200), WIDE]
    problem, before = started(make_spec(nodes, work, [even], running=running))
    after = cleared(problem, before, Stop(), lambda: False)
    assert (values(problem, after)["admitted[0]"], values(problem, after)["disruption.moves"]) == (8000, 10)
    assert before.fill(0) == after.fill(0)


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("draw", [tiny, mixed])
def test_whoever_leaves_breaks_no_rule_and_nobody_goes(draw: object, seed: int) -> None:
    problem, before = started(draw(seed))  # type: ignore[operator]
    after = legalise(problem, cleared(problem, before, Stop(), lambda: False))
    kept = hard_policies(problem)
    assert sound(problem, view_of(problem, after)) == sound(problem, view_of(problem, before))
    assert debt(problem, view_of(problem, after), kept) <= debt(problem, view_of(problem, before), kept)
    admitted = [name for name in values(problem, before) if name.startswith("admitted")]
    assert [values(problem, after)[n] for n in admitted] >= [values(problem, before)[n] for n in admitted]
