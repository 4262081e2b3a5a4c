"""Services that survive failures, where not all can: as many are admitted as restart, and bounds say so (S4.7)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.support.mig_specs import card
from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine import solve
from dovetail.engine.construction.forgoing import without_too_many
from dovetail.engine.start import start
from dovetail.mig import parse_instance
from dovetail.model.score import hard_policies, owed
from dovetail.model.state import State
from dovetail.placement import Place
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.proof.fleet import FleetModel
from dovetail.rules import context_of
from dovetail.rules.survive import Survive
from dovetail.spec import Request, Role, Spec, Workload, WorkloadSelector
from dovetail.verify import verify

CARD = "A100-80GB"
GIB = 1024


def short_of_cpu(racks: int, asked: int) -> Spec:
    """Return racks of two nodes with GPUs for sixteen replicas and cores for eight."""
    nodes = [node(f"r{r}-{i}", 8, cpu=32_000, domains={"rack": f"r{r}"}) for r in range(racks) for i in range(2)]
    service = workload("web", asked, gpus=1, cpu=8_000, type="service", priority=900)
    rule = policy("any-rack", Survive(of="rack"))
    return make_spec(nodes, [service], [rule], levels=("rack", "node"))


def on_instances(evictable: int) -> Spec:
    """Return two racks of MIG nodes with a service on instances, and as many others of the same profile."""
    racks = [{"rack": f"r{r}"} for r in range(2)]
    nodes = [node(each["rack"], 8, cpu=128_000, memory=1000 * GIB, accelerator=CARD, domains=each) for each in racks]
    roles = {
        name: Role("", count, Request(cpu=1_000, memory=GIB, mig="1g.10gb", mig_milli=143), 100)
        for name, count in (("chat", 10), ("batch", evictable))
        if count
    }
    work = [
        Workload(name, "", name, "service", (role,), min_replicas=1, priority={"chat": 900, "batch": 100}[name])
        for name, role in roles.items()
    ]
    work.append(workload("train", 2, gpus=4, cpu=8_000, priority=500))
    rule = Survive(of="rack", may_evict=WorkloadSelector(names=("batch",)))
    own = policy("any-rack", rule, workloads=WorkloadSelector(names=("chat",)))
    spec = make_spec(nodes, work, [own], levels=("rack", "node"))
    return replace(spec, accelerators={CARD: card(CARD)}, cluster=replace(spec.cluster, reconfiguration="gpu"))


def started(spec: Spec) -> tuple[Problem, State]:
    """Return a compiled Spec and the state that a search starts from, which keeps all hard policies."""
    problem = compile_problem(context_of(spec))
    state, unpaid = start(problem, None, Stop())
    assert not unpaid
    return problem, state


def admitted(problem: Problem, state: State, name: str) -> int:
    """Return the admitted replicas of a workload."""
    found = state.admitted()
    return sum(found[shape] for shape in problem.shapes_of_workload[name])


def test_where_cores_are_short_as_many_are_there_as_restart_on_what_is_left() -> None:
    problem, state = started(short_of_cpu(4, 32))
    assert admitted(problem, state, "web") == 24  # of 32 that have room: any of four racks may go


def test_who_restarts_nowhere_stays_out_and_the_others_come_in() -> None:
    problem, state = started(on_instances(0))
    assert admitted(problem, state, "chat") == 0
    assert admitted(problem, state, "train") == 2


def test_instances_that_others_give_up_are_restarted_on() -> None:
    spec = on_instances(30)
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    there = Counter(replica.workload for replica in plan.placements)
    assert there == {"chat": 10, "batch": 30, "train": 2}
    assert all(place.instance for rows in plan.recovery["any-rack"].values() for place in rows.values())
    assert verify(spec, plan).ok


def most(spec: Spec, name: str) -> int:
    """Return the most replicas of a workload that the bounds of a fleet allow, of a shape of its own."""
    fleet = FleetModel(compile_problem(context_of(spec)))
    return fleet.model.range_of(fleet.admitted_shape(fleet.problem.shapes_of_workload[name][0]))[1]


def test_bounds_know_who_restarts_nowhere() -> None:
    assert most(on_instances(0), "chat") == 0
    assert most(on_instances(30), "chat") == 10


def test_a_state_that_lacks_nothing_is_left_as_it_is() -> None:
    problem, state = started(short_of_cpu(4, 16))
    assert without_too_many(problem, state) is state
    assert not owed(problem, state, hard_policies(problem))


def asking(**roles: str) -> Workload:
    """Return a job with a replica on an instance of each profile, by role; its id is that of its roles."""
    own = tuple(Role(r, 1, Request(cpu=100, memory=GIB, mig=each, mig_milli=143), 100) for r, each in roles.items())
    name = "-".join(roles)
    return Workload(name, "", name, "job", own, min_replicas=1, priority=500)


def beside_what_runs(*work: Workload, idle: tuple[str, ...] = (), evictable: tuple[str, ...] = ()) -> Spec:
    """Return two racks with a job on an instance of the first, idle instances on the second, and more work."""
    racks = [{"rack": f"r{r}"} for r in range(2)]
    nodes = [node(each["rack"], 2, cpu=64_000, memory=500 * GIB, accelerator=CARD, domains=each) for each in racks]
    rule = Survive(of="rack", may_evict=WorkloadSelector(names=evictable) if evictable else None)
    matched = WorkloadSelector(names=tuple(w.id for w in (asking(old="1g.10gb"), *work) if w.id not in evictable))
    spec = make_spec(
        nodes,
        [asking(old="1g.10gb"), *work],
        [policy("any-rack", rule, workloads=matched)],
        running={"old.old#0": Place("r0", (0,), "1g.10gb@0")},
    )
    cut = {"r0/0": (parse_instance("1g.10gb@0"),)} | ({"r1/0": tuple(map(parse_instance, idle))} if idle else {})
    now = replace(spec.current, gpus=cut, all_gpus=True, from_outside=True)
    cluster = replace(spec.cluster, reconfiguration="gpu")
    return replace(spec, accelerators={CARD: card(CARD)}, cluster=cluster, current=now)


def test_bounds_know_the_instances_of_today_that_others_restart_on() -> None:
    work = asking(new="2g.20gb"), asking(never="7g.80gb")
    spec = beside_what_runs(*work, idle=("1g.10gb@0", "2g.20gb@2"))
    assert (most(spec, "old"), most(spec, "new"), most(spec, "never")) == (1, 1, 0)
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert {replica.workload for replica in plan.placements} == {"old", "new"}
    assert verify(spec, plan).ok


def test_several_alike_who_restart_nowhere_stay_out_beside_one_that_runs() -> None:
    twins = [replace(asking(one="2g.20gb"), id=name, name=name) for name in ("a", "b")]
    spec = beside_what_runs(*twins, idle=("1g.10gb@0",))
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert {replica.workload for replica in plan.placements} == {"old"}
    assert verify(spec, plan).ok


def test_roles_alike_of_work_on_one_profile_and_on_several_are_told_apart() -> None:
    spec = beside_what_runs(asking(one="2g.20gb"), asking(one="2g.20gb", two="3g.40gb"), idle=("1g.10gb@0",))
    assert verify(spec, solve(spec)).ok
    given_up = [asking(one="1g.10gb"), asking(one="1g.10gb", two="2g.20gb")]
    spec = beside_what_runs(*given_up, asking(new="1g.10gb"), evictable=("one", "one-two"))
    plan = solve(spec)
    assert len(plan.placements) == 5
    assert verify(spec, plan).ok
