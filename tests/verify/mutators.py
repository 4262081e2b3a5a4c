"""For each check of `verify`, a way to break exactly that in a valid plan.

A mutation that changes places finishes the plan anew, so that the plan tells the truth about its bad places; one that
changes a claim leaves the places alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from tests.support.mig_specs import card, mig_request
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, places, policy, replica, request, role, workload
from tests.verify import recoveries

from dovetail.mig import Instance
from dovetail.objectives import tiers_of
from dovetail.placement import Place
from dovetail.plan import AdmissionResult, BrokenPromise, Lifted, Outcome, Plan, SecondOpinion, finish
from dovetail.rules import Told, context_of, policy_of
from dovetail.rules.admission import Admission
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid
from dovetail.rules.reserve import Reserve
from dovetail.rules.spread import Spread
from dovetail.rules.survive import Survive
from dovetail.spec import (
    Cluster,
    Current,
    EqualParts,
    Group,
    Node,
    NodeSelector,
    PresentReplica,
    Request,
    Role,
    Setting,
    Share,
    Slo,
    Spec,
    Taint,
    Topology,
    Workload,
    WorkloadSelector,
)
from dovetail.spec.workload import Pace

A100 = "A100-40GB"
RUNNING = {
    "y/run#0": place("cordoned", 0),
    "y/lost#0": place("failed", 0),
    "y/pinned#0": place("small", 2),
    "z/spot#0": place("small", 3),
}
PLACES = {
    "x/gang.lead#0": place("big", 0),
    "x/gang.work#0": place("big", 1),
    "x/svc#0": place("big", 2),
    "x/svc#1": place("failed", 1),
    "x/svc#2": place("failed", 2),
    "y/run#0": place("cordoned", 0),
    "y/lost#0": place("big", 3),
    "y/pinned#0": place("small", 2),
    "y/share#0": place("small", 0),
    "y/share#1": place("small", 0),
    "y/share#2": place("small", 1),
    "y/vram#0": place("small", 0),
    "y/vram#1": place("small", 1),
    "z/spot#0": place("small", 3),
    "z/only#0": place("small", 1),
    "z/cpu#0": place("host"),
    "z/cpu#1": place("host"),
    "z/more#0": place("big"),
    "z/mem#0": place("big"),
    "z/rdma#0": place("big"),
}


@cache
def base() -> tuple[Spec, Plan]:
    """Return a Spec with faults, cordons, pins, a move budget and running work, and a valid plan called optimal."""
    spec = make_spec(
        [
            node("big", 5, resources={"rdma": 1}, price=1_000_000),
            node("failed", 4, failed_gpus=frozenset({0})),
            node("small", 6, accelerator=A100, price=2_000_000),
            node("plugin", 2, mechanism="devicePlugin"),
            node("cordoned", 2, cordoned=True),
            node("tainted", 2, taints=(Taint("keep"),)),
            node("down", 2, down=True),
            node("host", 0, cpu=2000),
            node("tiny", 0, memory=10_000),
        ],
        [
            workload("x/gang", type="gang", priority=100, roles=[role(r, 1, request(1)) for r in ("lead", "work")]),
            workload("x/svc", 3, type="service", gpus=1, priority=100, min_replicas=2),
            workload("y/run", 1, gpus=1, priority=100, checkpoint_every=3_600_000),
            workload("y/lost", 1, gpus=1, priority=100),
            workload("y/pinned", 1, gpus=1, priority=100, movable=False),
            workload("y/share", 3, share=(400, 3000), priority=100, observed=100),
            workload("y/vram", 2, share=(100, 30_000), priority=100),
            workload("z/spot", 1, gpus=1, preemptible=True),
            workload("z/only", 1, share=(100, 1000), accelerators=(A100,)),
            workload("z/cpu", 2),
            workload("z/more", 1),
            workload("z/mem", 1, memory=50_000),
            workload("z/rdma", 1, resources={"rdma": 1}),
            workload("z/huge", 1, gpus=8),
        ],
        [
            policy("budget", Move(max_moves=1)),
            policy(
                "not-on-small",
                Forbid(),
                workloads=WorkloadSelector(names=("x/svc",)),
                nodes=NodeSelector(names=("small",)),
            ),
            policy("quota", Quota((("gpus", 6000),)), workloads=WorkloadSelector(namespaces=("x",))),
            policy(
                "spread",
                Spread("node", max_per_domain=1),
                workloads=WorkloadSelector(names=("x/svc",)),
                enforcement=3,
            ),
            policy(
                "told",
                Spread("node", max_per_domain=1),
                workloads=WorkloadSelector(tenants=("y",)),
                enforcement="audit",
            ),
        ],
        running=RUNNING,
    )
    return spec, plan_for(spec, places(PLACES))


MIG_PLACES = {
    "fault": Place("n", (1,), "2g.20gb@0"),
    "large": Place("n", (0,), "3g.40gb@4"),
    "more": Place("n", (1,), "3g.40gb@4"),
    "stays": Place("n", (0,), "1g.10gb@0"),
    "whole": Place("n", (2,)),
}


@cache
def cut() -> tuple[Spec, Plan]:
    """Return a Spec with GPUs that are cut, one of them today with work that may not move, and a valid plan."""
    requests = {
        "fault": Request(share=Share(200, 16_000, modes=("mig",))),
        "large": mig_request("A100-80GB", "3g.40gb"),
        "more": mig_request("A100-80GB", "3g.40gb"),
        "stays": mig_request("A100-80GB", "1g.10gb"),
        "whole": Request(gpus=1),
    }
    works = tuple(
        Workload(n, "", n, "job", (Role("", 1, r, r.gpu_milli),), movable=n != "stays") for n, r in requests.items()
    )
    today = (Instance("1g.10gb", 0), Instance("3g.40gb", 4))
    running = PresentReplica(replica("stays#0"), "n", (0,), "1g.10gb@0")
    one = Node("n", "g", cpu=10, memory=10, gpus=4, accelerator="A100-80GB", mechanism="fraction")
    spec = Spec(
        "cut",
        Cluster("cut", ("node",), (one,)),
        {"A100-80GB": card("A100-80GB")},
        works,
        current=Current((running,), gpus={"n/0": today}),
    )
    return spec, plan_for(spec, places({f"{name}#0": where for name, where in MIG_PLACES.items()}))


def recut(check: str, rows: Mapping[str, Place], *also: str, label: str = "") -> Mutation:
    """Return a mutation of the plan with GPUs that are cut: it puts replicas elsewhere."""

    def make() -> tuple[Spec, Plan]:
        spec, _ = cut()
        changed = {f"{name}#0": where for name, where in {**MIG_PLACES, **rows}.items()}
        return spec, plan_for(spec, places(changed))

    return Mutation(check, make, frozenset(also), label)


def unrated(*hosts: str) -> Mutation:
    """Return a mutation of the plan with GPUs that are cut: a share is that of a service with rates elsewhere."""

    def make() -> tuple[Spec, Plan]:
        spec, _ = cut()
        slo = Slo(1000, dict.fromkeys(hosts, 1000))
        works = (replace(w, type="service", slo=slo) if w.name == "fault" else w for w in spec.workloads)
        spec = replace(spec, workloads=tuple(works))
        return spec, plan_for(spec, places({f"{name}#0": where for name, where in MIG_PLACES.items()}))

    return Mutation("rates", make, label=", ".join(hosts))


def layout(check: str, gpus: Mapping[str, tuple[Instance, ...] | None], *also: str, label: str = "") -> Mutation:
    """Return a mutation of what the plan with GPUs that are cut tells of their layouts."""

    def make() -> tuple[Spec, Plan]:
        spec, plan = cut()
        told = {gpu: found for gpu, found in {**plan.gpus, **gpus}.items() if found is not None}
        return spec, replace(plan, gpus=told)

    return Mutation(check, make, frozenset(also), label)


def across_islands() -> tuple[Spec, Plan]:
    """Return a plan with a replica across two islands, and one beside it that runs so today."""
    spec = make_spec(
        [node("n", 6, islands=((0, 1, 2), (3, 4, 5)))],
        [workload("new", 1, gpus=2), workload("old", 1, gpus=2)],
        running={"old#0": place("n", 1, 4)},
    )
    return spec, plan_for(spec, places({"new#0": place("n", 2, 3), "old#0": place("n", 1, 4)}))


@dataclass(frozen=True)
class Mutation:
    """A broken plan, the check that must be named, and those that necessarily fall with it."""

    check: str
    make: Callable[[], tuple[Spec, Plan]]
    also: frozenset[str] = frozenset()
    label: str = ""

    def __str__(self) -> str:
        return f"{self.check}{self.label and '-'}{self.label}"


def move(check: str, rows: Mapping[str, Place | None], *also: str, label: str = "") -> Mutation:
    """Return a mutation that puts replicas elsewhere, or nowhere."""

    def make() -> tuple[Spec, Plan]:
        spec, _ = base()
        changed = {**PLACES, **rows}
        return spec, plan_for(spec, places({key: where for key, where in changed.items() if where is not None}))

    return Mutation(check, make, frozenset(also), label)


def row(check: str, text: str, where: Place, *also: str) -> Mutation:
    """Return a mutation that writes a row into the finished plan: such a row cannot be measured."""

    def make() -> tuple[Spec, Plan]:
        spec, plan = base()
        return spec, replace(plan, placements={**plan.placements, replica(text): where})

    return Mutation(check, make, frozenset(also), label=f"{text}")


def claim(check: str, change: Callable[[Plan], dict[str, Any]], *also: str, label: str = "") -> Mutation:
    """Return a mutation of what the plan says about itself."""

    def make() -> tuple[Spec, Plan]:
        spec, plan = base()
        return spec, replace(plan, **change(plan))

    return Mutation(check, make, frozenset(also), label)


@cache
def parted() -> tuple[Spec, Plan]:
    """Return a Spec with GPUs that are shared by equal parts, some of them today, and a valid plan."""
    spec = make_spec(
        [
            node("a", 2, mechanism="devicePlugin", sharing=EqualParts()),
            node("b", 3, mechanism="devicePlugin", sharing=EqualParts(mps=4, oversubscription=1500)),
            node("c", 1, mechanism="devicePlugin", sharing=EqualParts()),
            node("f", 1),
        ],
        [
            workload("stay", 2, share=(200, 8000)),
            workload("big", 1, share=(400, 30_000)),
            workload("note", 3, roles=[role("", 3, Request(share=Share(250, 20_000, barred=("mps",))))]),
            workload("safe", 1, roles=[role("", 1, Request(share=Share(300, 9_000, barred=("time-slice",))))]),
            workload("whole", 1, gpus=1),
        ],
        running={"stay#0": place("a", 0), "stay#1": place("a", 0)},
    )
    spec = replace(spec, current=replace(spec.current, settings={"a/0": Setting("mps", 2), "a/1": Setting("mps", 2)}))
    return spec, plan_for(spec, places(PARTED))


PARTED = {
    "stay#0": place("a", 0),
    "stay#1": place("a", 0),
    "big#0": place("a", 1),
    "note#0": place("b", 0),
    "note#1": place("b", 0),
    "note#2": place("b", 1),
    "safe#0": place("a", 1),
    "whole#0": place("c", 0),
}


def parts(check: str, rows: Mapping[str, Place], *also: str, label: str = "") -> Mutation:
    """Return a mutation of the plan with shared GPUs: it puts replicas elsewhere, and tells modes as they were."""

    def make() -> tuple[Spec, Plan]:
        spec, plan = parted()
        return spec, replace(plan_for(spec, places({**PARTED, **rows})), shared=plan.shared)

    return Mutation(check, make, frozenset(also), label)


def modes(check: str, shared: Mapping[str, Setting | None], *also: str, label: str = "") -> Mutation:
    """Return a mutation of the modes that the plan with shared GPUs tells."""

    def make() -> tuple[Spec, Plan]:
        spec, plan = parted()
        told = {gpu: setting for gpu, setting in {**plan.shared, **shared}.items() if setting is not None}
        return spec, replace(plan, shared=told)

    return Mutation(check, make, frozenset(also), label)


def paced(check: str, share: Share, where: Place, label: str) -> Mutation:
    """Return a plan with two shares in one place, of which slower GPUs have to give more."""

    def make() -> tuple[Spec, Plan]:
        even = node("even", 1, accelerator="L4", mechanism="devicePlugin", sharing=EqualParts())
        nodes = [node("quick", 1), node("slow", 1, accelerator="L4"), even]
        spec = make_spec(nodes, [workload("note", 2, roles=[role("", 2, Request(share=share))])])
        return spec, plan_for(spec, places({"note#0": where, "note#1": where}))

    return Mutation(check, make, label=label)


def alone() -> tuple[Spec, Plan]:
    """Return a plan with a share that has a GPU for itself, and may be on none in any mode."""
    share = Share(300, 1000, barred=("mps", "time-slice", "whole"))
    spec = make_spec(
        [node("even", 1, mechanism="devicePlugin", sharing=EqualParts())],
        [workload("note", 1, roles=[role("", 1, Request(share=share))])],
    )
    return spec, plan_for(spec, places({"note#0": place("even", 0)}))


def paced_instance() -> tuple[Spec, Plan]:
    """Return the plan with GPUs that are cut, with a share that takes more of them than of others."""
    spec, _ = cut()
    asked = Request(share=Share(200, 16_000, modes=("mig",), elsewhere=(Pace("A100-80GB", 400),)))
    works = (replace(w, roles=(Role("", 1, asked, 200),)) if w.name == "fault" else w for w in spec.workloads)
    spec = replace(spec, workloads=tuple(works))
    return spec, plan_for(spec, places({f"{name}#0": where for name, where in MIG_PLACES.items()}))


def tier(name: str, **changes: Any) -> Callable[[Plan], dict[str, Any]]:
    """Return a change of one tier; integers are added to what is there."""

    def change(plan: Plan) -> dict[str, Any]:
        def changed(result: Any) -> Any:
            fields = {k: getattr(result, k) + v if isinstance(v, int) else v for k, v in changes.items()}
            return replace(result, **fields)

        return {"tiers": tuple(changed(t) if t.name == name else t for t in plan.tiers)}

    return change


def one_more_tier(plan: Plan) -> dict[str, Any]:
    """Return a change that adds a tier, which assumes what a last one would."""
    last = plan.tiers[-1]
    return {"tiers": (*plan.tiers, replace(last, name="new", given={**last.given, last.name: last.value}))}


def feasible(change: Callable[[Plan], dict[str, Any]]) -> Callable[[Plan], dict[str, Any]]:
    """Return a change that also takes back the claim of being optimal."""
    return lambda plan: {**change(plan), "outcome": Outcome("feasible")}


def evicted_for_nothing() -> tuple[Spec, Plan]:
    """Return a plan that evicts preemptible work while only the same priority gains."""
    spec = make_spec(
        [node("n", 2)],
        [
            workload("high", 1, gpus=1, priority=9),
            workload("spot", 1, gpus=1, preemptible=True),
            workload("wish", 1, gpus=1),
        ],
        running={"high#0": place("n", 0), "spot#0": place("n", 1)},
    )
    return spec, plan_for(spec, places({"high#0": place("n", 0), "wish#0": place("n", 1)}))


def out_of_turn() -> tuple[Spec, Plan]:
    """Return a plan that starts replicas which wait in place of one that runs and one whose node failed."""
    spec = make_spec(
        [node("n", 2), node("failed", 1, failed_gpus=frozenset({0}))],
        [workload("svc", 4, gpus=1, min_replicas=2)],
        running={"svc#0": place("n", 0), "svc#1": place("failed", 0)},
    )
    return spec, plan_for(spec, places({"svc#2": place("n", 0), "svc#3": place("n", 1)}))


def refused(
    proof: Literal["certificate", "two-engines"] | None, stopped_by: str | None = None, **opinion: Any
) -> Callable[[], tuple[Spec, Plan]]:
    """Return a plan that says that there is none, and what that rests on."""
    spec = make_spec([node("n", 1)], [workload("w", 2, gpus=1)], [policy("all", Admission())])
    told = SecondOpinion("other", **opinion) if opinion else None
    outcome = Outcome("infeasible", stopped_by, proof=proof)
    plan = finish(context_of(spec), {}, (), outcome, second_opinion=told)
    return lambda: (spec, plan)


def refused_for_nothing() -> tuple[Spec, Plan]:
    """Return a plan that says that there is none, as two engines did, where no hard policy asks for anything."""
    spec = make_spec([node("n", 1)], [workload("w", 2, gpus=1)], [policy("few", Quota((("gpus", 1000),)))])
    told = SecondOpinion("other", agrees=True)
    told = replace(told, tiers=dict.fromkeys(each.name for each in tiers_of(context_of(spec))))
    return spec, finish(context_of(spec), {}, (), Outcome("infeasible", proof="two-engines"), second_opinion=told)


def held_and_used() -> tuple[Spec, Plan]:
    """Return a plan that calls a node held free which hosts a replica, while another one is untouched."""
    spec = make_spec(
        [node("a", 4), node("b", 4)],
        [workload("w", 1, gpus=1)],
        [policy("spare", Reserve(domains=1, of="node"))],
    )
    plan = plan_for(spec, places({"w#0": place("a", 0)}))
    return spec, replace(plan, held={"spare": Told(untouched=("a",))})


def conflict(*names: str) -> Callable[[], tuple[Spec, Plan]]:
    """Return a plan that says that there is none, and that these policies are why, of which `all` is one."""
    hard = [policy("all", Admission()), policy("few", Quota((("gpus", 1000),)))]
    spec = make_spec([node("n", 1)], [workload("w", 2, gpus=1)], [*hard, policy("soft", Admission(), enforcement=5)])
    plan = finish(context_of(spec), {}, (), Outcome("infeasible", proof="certificate"), conflict=names)
    return lambda: (spec, plan)


def gang(topology: Topology | None, rows: Mapping[str, Place], **elastic: int) -> Callable[[], tuple[Spec, Plan]]:
    """Return a plan of one gang on two racks of two nodes."""
    nodes = [node(f"n{i}", 4, domains={"rack": f"r{i // 2}"}) for i in range(4)]
    one = workload("g", roles=[role("", 4, request(2), **elastic)], type="gang", topology=topology)
    one = replace(one, min_replicas=elastic.get("least", 4))
    held = policy_of([one])
    spec = make_spec(nodes, [one], [held] if held else [])
    return lambda: (spec, plan_for(spec, places(rows)))


IN_PART = Topology(groups=(Group("rack", 2), Group("node", 1, minimum=1)))


def on(*names: str) -> Mapping[str, Place]:
    """Return places of the gang, a node for each replica in turn."""
    return {f"g#{i}": place(n, 2 * names[:i].count(n), 2 * names[:i].count(n) + 1) for i, n in enumerate(names)}


def restarted_where_there_is_no_room() -> tuple[Spec, Plan]:
    """Return a plan of which a row of a recovery that nobody needs names a GPU in use."""
    spec = make_spec(
        [node("a", 2), node("b", 2), node("c", 1)],
        [workload("w", 2, gpus=1)],
        [policy("lose", Survive(of="node"), enforcement="audit")],
    )
    plan = plan_for(spec, places({"w#0": place("a", 0), "w#1": place("b", 0)}))
    more = {"c": places({"w#0": place("b", 0)})}
    return spec, replace(plan, recovery={"lose": {**plan.recovery["lose"], **more}})


def opinion(*, conclusive: bool = True, **changes: int | None) -> Callable[[Plan], dict[str, Any]]:
    """Return a change that adds an engine's opinion, which claims to agree; some of its values are the plan's."""

    def change(plan: Plan) -> dict[str, Any]:
        optima = {t.name: t.value for t in plan.tiers} | changes
        return {"second_opinion": SecondOpinion("other", True, optima, conclusive)}

    return change


def untold(name: str) -> Callable[[Plan], dict[str, Any]]:
    """Return a change that adds an engine's opinion, which says nothing of a tier."""

    def change(plan: Plan) -> dict[str, Any]:
        optima = {t.name: t.value for t in plan.tiers if t.name != name}
        return {"second_opinion": SecondOpinion("other", True, optima)}

    return change


def _figure(key: str) -> Mutation:
    return claim("summary", lambda plan: {"summary": {**plan.summary, key: plan.summary[key] + 1}}, label=key)


MUTATIONS: tuple[Mutation, ...] = (
    claim("digest", lambda plan: {"inputs": "sha256:" + 64 * "0"}),
    claim("outcome", lambda plan: {"outcome": Outcome("infeasible")}),
    claim("outcome", lambda plan: {"outcome": Outcome("unknown")}, label="unknown"),
    claim("outcome", lambda plan: {"conflict": ("quota",)}, label="conflict"),
    Mutation("outcome", conflict("all", "soft"), label="soft"),
    Mutation("outcome", conflict("few"), label="kept"),
    Mutation("outcome", refused_for_nothing, label="refuted"),
    Mutation("outcome", refused(None), label="unproved"),
    Mutation("outcome", refused("two-engines"), label="one-engine"),
    Mutation("outcome", refused("two-engines", agrees=True, conclusive=False), label="unfinished"),
    row("replicas-exist", "x/svc#3", place("big", 4)),
    row("replicas-exist", "x/nobody#0", place("big", 4)),
    row("replicas-exist", "x/gang.other#0", place("big", 4)),
    row("nodes-exist", "x/svc#0", place("nowhere", 0)),
    row("gpu-indices", "x/svc#0", place("big", 5)),
    row("gpu-indices", "z/cpu#0", place("host", 0), "gpu-count"),
    row("gpu-indices", "x/svc#0", place("big", 4, 4), "gpu-count"),
    move("health", {"x/svc#0": place("failed", 0)}, label="gpu"),
    move("health", {"x/svc#0": place("down", 0)}, label="node"),
    move("gpu-count", {"x/svc#2": place("failed", 2, 3)}, label="more"),
    move("gpu-count", {"x/svc#2": place("failed")}, label="none"),
    move("gpu-count", {"z/more#0": place("big", 4)}, label="cpu-only"),
    move("cpu", {"z/more#0": place("host")}),
    move("memory", {"z/mem#0": place("tiny")}),
    move("resources", {"z/rdma#0": place("failed")}),
    move("whole-gpus", {"x/svc#0": place("failed", 1)}),
    move("whole-gpus", {"y/share#2": place("big", 0)}, label="share"),
    move("share-compute", {"y/share#2": place("small", 0)}),
    move("share-memory", {"y/vram#1": place("small", 0)}),
    recut("instances", {"more": Place("n", (3,), "4g.40gb@0")}, label="profile"),
    recut("instances", {"more": Place("n", (3,))}, label="none"),
    recut("instances", {"fault": Place("n", (1,), "1g.10gb@0")}, label="small"),
    recut("instance-tenants", {"more": Place("n", (0,), "3g.40gb@4")}, label="twice"),
    layout("instance-tenants", {"n/1": (Instance("2g.20gb", 0),)}, label="layout"),
    recut("layouts", {"more": Place("n", (1,), "3g.40gb@2")}, label="start"),
    layout("layouts", {"n/9": (Instance("3g.40gb", 4),)}, label="no-gpu"),
    recut("modes", {"whole": Place("n", (1,))}, "whole-gpus"),
    layout("modes", {"n/2": ()}, "layouts-asked-for", label="layout"),
    recut("mechanism", {"fault": Place("n", (3,))}, label="needs-mig"),
    recut("fixed", {"fault": Place("n", (0,), "2g.20gb@2")}, label="recut"),
    layout("layouts-asked-for", {"n/3": (Instance("1g.10gb", 6),)}, label="idle"),
    layout("layouts-asked-for", {"n/0": (Instance("1g.10gb", 0), Instance("3g.40gb", 4), Instance("1g.10gb", 1))}),
    move("accelerators", {"z/only#0": place("failed", 3)}),
    unrated("A100-80GB"),
    unrated("A100-80GB/7g.80gb", "H100-80GB/2g.20gb"),
    move("mechanism", {"y/share#2": place("plugin", 0)}),
    parts("clients", {"safe#0": place("a", 0)}, "modes-asked-for"),
    paced("share-compute", Share(300, 1000, elsewhere=(Pace("L4", 600),)), place("slow", 0), "paced"),
    paced("share-memory", Share(300, 15_000), place("slow", 0), "of-a-small-card"),
    paced("clients", Share(300, 1000, elsewhere=(Pace("L4", 600),)), place("even", 0), "paced"),
    Mutation("instances", paced_instance, label="paced"),
    modes("clients", {f"b/{g}": Setting("time-slice", 5) for g in range(3)}, "modes-asked-for", label="memory"),
    modes("clients", {f"b/{g}": Setting("mps", 2) for g in range(3)}, "modes-asked-for", label="barred"),
    modes("clients", {f"b/{g}": None for g in range(3)}, "modes-asked-for", label="alone"),
    Mutation("clients", alone, label="barred-alone"),
    modes("shared-modes", {"a/1": Setting("mps", 3)}, "modes-asked-for", "clients", label="unlike"),
    modes("shared-modes", {"f/0": Setting("mps", 3)}, "modes-asked-for", label="fractions"),
    modes("shared-modes", {"c/0": Setting("mps", 2)}, "modes-asked-for", label="whole"),
    modes("shared-modes", {"b/2": None}, "modes-asked-for", label="untold"),
    modes("shared-modes", {"b/7": Setting("time-slice", 2)}, "modes-asked-for", label="no-gpu"),
    modes("shared-modes", {f"a/{g}": Setting("mps", 49) for g in (0, 1)}, "modes-asked-for", "clients", label="most"),
    modes("modes-asked-for", {f"b/{g}": Setting("time-slice", 3) for g in range(3)}),
    modes("modes-asked-for", {f"a/{g}": Setting("time-slice", 2) for g in (0, 1)}, "clients", label="mode"),
    move("taints", {"x/svc#0": place("tainted", 0)}),
    move("cordons", {"x/svc#0": place("cordoned", 1)}),
    move("cordons", {"y/run#0": place("cordoned", 1)}, label="shuffled"),
    Mutation("inside-nodes", across_islands),
    move("atomic", {"x/gang.work#0": None}),
    move("least-replicas", {"x/svc#1": None, "x/svc#2": None}),
    Mutation("widths", gang(None, on("n0", "n0", "n1"), least=2, step=2)),
    Mutation("groups", gang(IN_PART, on("n0", "n0"), least=2)),
    Mutation("hard-policies", gang(Topology("rack"), on("n0", "n0", "n1", "n2")), label="within"),
    Mutation(
        "hard-policies",
        gang(Topology(groups=(Group("node", 2),)), on("n0", "n1", "n1", "n0")),
        frozenset({"ranks"}),
        "group",
    ),
    move("mix", {"x/gang.work#0": place("small", 4)}),
    Mutation("ranks", gang(Topology(prefer="rack"), on("n0", "n2", "n1", "n3")), label="rack"),
    Mutation("ranks", gang(Topology("rack"), on("n0", "n1", "n0", "n1")), label="node"),
    move("protected", {"y/run#0": None}),
    move("fixed", {"y/pinned#0": place("small", 4)}),
    Mutation("retained", evicted_for_nothing),
    Mutation("precedence", out_of_turn),
    Mutation("held", held_and_used),
    Mutation("recovery", restarted_where_there_is_no_room),
    Mutation("recovery", recoveries.out_of_its_group, label="group"),
    Mutation("recovery", recoveries.on_another_accelerator, label="mix"),
    Mutation("recovery", recoveries.across_islands, label="islands"),
    Mutation("recovery", recoveries.in_a_closed_mode, label="modes"),
    Mutation("recovery", recoveries.on_a_failed_gpu, label="health"),
    move("hard-policies", {"x/svc#0": place("small", 4)}, label="forbid"),
    move("hard-policies", {"y/run#0": place("big", 4), "z/spot#0": place("small", 4)}, label="budget"),
    claim("policy-results", lambda plan: {"policies": {**plan.policies, "told": plan.policies["quota"]}}),
    claim(
        "policy-results",
        lambda plan: {"policies": {k: v for k, v in plan.policies.items() if k != "quota"}},
        label="gone",
    ),
    claim(
        "policy-results",
        lambda plan: {
            "policies": {
                **plan.policies,
                "quota": replace(plan.policies["quota"], waivers={"made-up": Lifted("me", "2030-01-01", ("x/svc",))}),
            }
        },
        label="waived",
    ),
    claim("policy-results", lambda plan: {"policies": {**plan.policies, "new": plan.policies["quota"]}}, label="new"),
    claim("tier-names", lambda plan: {"tiers": plan.tiers[:-1]}, label="dropped"),
    claim("tier-names", one_more_tier, label="new"),
    claim(
        "tier-names",
        lambda plan: {"tiers": (*plan.tiers[:-2], plan.tiers[-1], replace(plan.tiers[-2], given={}))},
        "given",
        label="order",
    ),
    claim("tier-names", tier("cost", unit="pennies"), label="unit"),
    claim("tier-values", tier("cost", value=1, bound=1)),
    claim("tier-bounds", feasible(tier("cost", bound=1))),
    claim("tier-bounds", feasible(tier("cost", sense="max", bound=-1)), "tier-names", label="sense"),
    claim("tier-proofs", tier("cost", proof="trivial")),
    claim("tier-proofs", tier("cost", proof="none"), label="none"),
    claim("tier-proofs", tier("cost", proof="two-engines"), label="one-engine"),
    claim(
        "tier-proofs",
        lambda plan: {**tier("cost", proof="two-engines")(plan), **opinion(cost=None, conclusive=False)(plan)},
        label="unfinished",
    ),
    claim("tier-proofs", feasible(tier("cost", bound=None)), label="no-bound"),
    claim("tier-proofs", tier("admitted[0]", proof="solver", relaxed=("made-up",)), label="ignored"),
    claim("tier-proofs", tier("admitted[0]", proof="solver", relaxed=("told",)), label="ignored-audit"),
    claim("tier-proofs", tier("disruption.evicted", relaxed=("quota",)), label="ignored-by-arithmetic"),
    claim("tier-proofs", feasible(tier("cost", bound=None, proof="none", relaxed=("mix",))), label="ignored-by-none"),
    claim("given", tier("cost", given={"admitted[100]": 1})),
    claim("given", tier("admitted[100]", given={"cost": 3_000_000}), label="later"),
    claim("given", tier("cost", given={}), label="none"),
    claim("optimal", tier("cost", bound=-1)),
    claim("optimal", lambda plan: {"outcome": Outcome("optimal", "time")}, label="stopped"),
    claim("optimal", lambda plan: {"outcome": Outcome("feasible", "crash", True)}, label="feasible"),
    Mutation("optimal", refused("certificate", stopped_by="work"), label="refused"),
    claim("second-opinion", opinion(cost=1)),
    claim("second-opinion", opinion(nonsense=7), label="new"),
    claim("second-opinion", untold("cost"), label="gone"),
    claim("second-opinion", opinion(cost=None), label="unfinished"),
    claim("second-opinion", opinion(conclusive=False), label="finished"),
    Mutation("second-opinion", refused("certificate", agrees=True, tiers={"admitted[0]": 7}), label="refused"),
    claim(
        "second-opinion",
        feasible(lambda p: {**tier("cost", bound=-1)(p), **opinion(cost=2_999_998)(p)}),
        label="bound",
    ),
    claim(
        "second-opinion",
        feasible(lambda p: {**tier("cost", bound=-1)(p), **opinion(cost=3_000_001)(p)}),
        label="worse",
    ),
    claim("second-opinion", lambda plan: {"second_opinion": SecondOpinion("other", False)}, label="says-so"),
    *(_figure(key) for key in base()[1].summary),
    claim("summary", lambda plan: {"summary": {k: v for k, v in plan.summary.items() if k != "moves"}}, label="gone"),
    claim("promises", lambda plan: {"promises": {"x/svc": BrokenPromise(1)}}, label="kept"),
    claim("admitted", lambda plan: {"admitted": {}}, label="gone"),
    claim(
        "admitted", lambda plan: {"admitted": {"z/huge": AdmissionResult("none", 0, 1, ("DT4106",))}}, label="reason"
    ),
    claim(
        "admitted",
        lambda plan: {"admitted": {**plan.admitted, "x/svc": AdmissionResult("partial", 2, 3)}},
        label="new",
    ),
)
