"""More to mix into tiny random Specs: what `mixed` does not draw, added to what it does.

Islands and sockets inside nodes, classes and deadlines, widths with a worth of their own, limits of a command line,
moves that are allowed on some days only; and Specs that go on from a plan of their own after something has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from tests.oracle.test_new_rules import THURSDAY
from tests.support.mixed_specs import mixed, refused
from tests.support.specs import policy

from dovetail.engine import solve
from dovetail.plan import current_of
from dovetail.plan.options import limited
from dovetail.rules.modes import MODES, Modes
from dovetail.rules.survive import Survive
from dovetail.spec import Node, Options, Policy, Role, ServiceClass, Slo, Spec, Workload, WorkloadSelector
from dovetail.spec.inside import Parts
from dovetail.whatif.base import Patch
from dovetail.whatif.patches import Cordon, Drop, Fail, Scale
from dovetail.whatif.spot import Unfit

PARTS: Mapping[int, tuple[tuple[Parts, Parts], ...]] = {
    2: ((((0,), (1,)), ()), ((), ((0,), (1,)))),
    3: ((((0, 1), (2,)), ()), (((0, 2), (1,)), ()), (((0,), (1,), (2,)), ((0, 1), (2,)))),
}
"""Islands and sockets that nodes of two and of three GPUs may have."""


def further(seed: int) -> Spec:
    """Return the mixed Spec of a seed with more in it."""
    rng = Random(f"further {seed}")
    spec = mixed(seed)
    nodes = tuple(_inside(rng, node) for node in spec.cluster.nodes)
    work = tuple(_promised(rng, spec, _worth(rng, each)) for each in spec.workloads)
    more = (_survival, _modes, _none)[rng.randrange(3)](rng, spec)
    policies = tuple(sorted((*spec.policies, *more), key=lambda each: each.name))
    as_of = THURSDAY if spec.as_of is None and rng.random() < 0.6 else spec.as_of
    spec = replace(spec, cluster=replace(spec.cluster, nodes=nodes), workloads=work, policies=policies, as_of=as_of)
    spec = replace(spec, policies=tuple(p for p in spec.policies if not refused(p, spec)))
    return _bounded(rng, spec)


def carried_on(seed: int) -> Spec | None:
    """Return a Spec whose current state is a plan of its own, made before something changed; None without a plan."""
    rng = Random(f"carried on {seed}")
    before = replace(further(seed), options=Options())
    before = replace(before, policies=tuple(p for p in before.policies if not p.origin.startswith("--")))
    plan = solve(before)
    if plan.outcome.status not in ("optimal", "feasible") or not plan.placements:
        return None
    after = _changed(rng, replace(before, current=current_of(plan)))
    after = replace(after, policies=tuple(p for p in after.policies if not refused(p, after)))
    return _bounded(rng, after)


def _survival(rng: Random, spec: Spec) -> Iterable[Policy]:
    """Yield a policy that what belongs together survives the loss of a node or a rack."""
    gathering = tuple(w.id for w in spec.workloads if w.type == "gang")
    chosen = WorkloadSelector(names=gathering) if gathering and rng.random() < 0.5 else WorkloadSelector()
    rule = Survive(of=rng.choice(("node", "node", "rack")), may_evict=rng.choice((None, WorkloadSelector())))
    yield policy("survival", rule, enforcement=rng.choice(("hard", 1, 3000, 3000)), workloads=chosen)


def _modes(rng: Random, spec: Spec) -> Iterable[Policy]:
    """Yield policies of what GPUs may be set to."""
    for index in range(rng.choice((1, 1, 2))):
        allowed = rng.sample(MODES, rng.choice((1, 2, 2, 3)))
        rule = Modes(tuple(mode for mode in MODES if mode in allowed))
        chosen = WorkloadSelector(tenants=rng.choice(((), ("red",), ("blue",))))
        yield policy(f"modes{index}", rule, enforcement=rng.choice(("hard", "hard", 1, "audit")), workloads=chosen)


def _none(rng: Random, spec: Spec) -> Iterable[Policy]:
    return ()


def _changed(rng: Random, spec: Spec) -> Spec:
    """Return a Spec in which something has changed: by a patch of scenarios, or by who edits a workload."""
    work = rng.choice(spec.workloads)
    domain = rng.choice(sorted(spec.cluster.members(level := rng.choice(("rack", "node")))))
    count = max(1, work.roles[0].replicas + rng.choice((-1, 1, 2)))
    patches: Sequence[Patch] = (
        Fail(level, domain),
        Cordon(level, domain),
        Scale(work.id, count, work.roles[0].name),
        Drop(workload=work.id),
    )
    how = rng.randrange(len(patches) + 2)
    if how >= len(patches):
        return _edited(work, spec, how % 2 == 0)
    try:
        return patches[how].applied(spec)
    except Unfit:
        return _edited(work, spec, True)


def _edited(work: Workload, spec: Spec, dearer: bool) -> Spec:
    """Return a Spec of which a workload is more important, or asks for more CPU."""
    roles = tuple(replace(role, request=replace(role.request, cpu=role.request.cpu + 700)) for role in work.roles)
    new = replace(work, priority=work.priority + 100) if dearer else replace(work, roles=roles)
    return replace(spec, workloads=tuple(new if each is work else each for each in spec.workloads))


def _inside(rng: Random, node: Node) -> Node:
    if node.gpus not in PARTS or rng.random() < 0.5:
        return node
    islands, sockets = rng.choice(PARTS[node.gpus])
    return replace(node, islands=islands, sockets=sockets)


def _worth(rng: Random, work: Workload) -> Workload:
    """Return an elastic workload whose widths have a worth, now and then."""
    if len(work.roles) != 1 or not work.elastic or work.slo is not None or rng.random() < 0.4:
        return work
    (role,) = work.roles
    widths = range(role.least or 0, role.replicas + 1, role.step)
    worths = tuple(sorted(rng.choice((100, 500, 900, 1000, 2500)) for _ in widths))
    return replace(work, roles=(replace(role, worths=worths),))


def _promised(rng: Random, spec: Spec, work: Workload) -> Workload:
    """Return a workload of a class, or a batch with a deadline, now and then."""
    if work.slo is not None or rng.random() < 0.6:
        return work
    floors = ServiceClass(rng.choice((1, 2)), rng.choice((0, 600, 1000)), rng.choice((0, 2)), 1000, 800)
    if work.type == "service" or rng.random() < 0.5 or len(work.roles) != 1:
        return replace(work, slo=Slo(listed=False, floors=floors, service_class="c"))
    rates = _speeds(rng, spec, work.roles[0])
    if not rates:
        return work
    slo = Slo(rng.choice((100, 700, 1500)), rates, listed=False, floors=floors, late=rng.random() < 0.1)
    return replace(work, slo=slo)


def _speeds(rng: Random, spec: Spec, role: Role) -> dict[str, int]:
    """Return what a replica of a batch does on every host that it may be on, in thousandths of the reference."""
    asked, found = role.request, dict[str, int]()
    part = asked.share.compute if asked.share else asked.gpu_milli
    for name, card in sorted(spec.accelerators.items()):
        speed = rng.choice((300, 1000))
        found[name] = part * speed // 1000
        for profile in card.mig.profiles if card.mig and asked.may_use_mig else ():
            found[f"{name}/{profile.name}"] = (part if asked.share else profile.milli) * speed // 1000
    return found if part else {}


def _bounded(rng: Random, spec: Spec) -> Spec:
    """Return a Spec with limits as a command line gives them, now and then."""
    running = sorted({present.replica.workload for present in spec.current.replicas} & spec.by_id.keys())
    if not running or rng.random() < 0.5:
        return spec
    most = rng.choice((None, 0, 1, 2))
    pins = (rng.choice(running),) if most is None or rng.random() < 0.3 else ()
    return limited(spec, Options(most, pins))
