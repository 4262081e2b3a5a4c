"""Tiny random Specs that mix what other generators draw one by one, for brute force.

`mixed(seed)` gives the same Spec wherever it runs: GPUs that are cut beside whole and shared ones, gangs with groups
and widths beside services with promised rates, every rule hard, soft and audited, waivers, objectives with and
without fragmentation, and work that runs on nodes which have failed since, been cordoned or shrunk.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.oracle.brute import PartStock
from tests.oracle.test_new_rules import RULES
from tests.support import sharing_specs
from tests.support import tiny_specs as tiny
from tests.support.mig_specs import card, mig_request
from tests.support.specs import CARDS, make_spec, node, replica, request, role, workload

from dovetail.mig import Geometry, layouts
from dovetail.placement import Place
from dovetail.placement.instances import holds
from dovetail.rules import policy_of
from dovetail.spec import (
    Accelerator,
    Cluster,
    Current,
    EqualParts,
    Group,
    Layout,
    Node,
    Objective,
    Policy,
    PresentReplica,
    Request,
    Role,
    Share,
    Slo,
    Spec,
    Topology,
    Workload,
)
from dovetail.spec.cluster import Mechanism, Positions, SharedMode, Unit
from dovetail.spec.objective import DEFAULT_TIERS
from dovetail.spec.slo import host_of
from dovetail.spec.workload import ShareMode

LEVELS = ("zone", "rack", "node")
CUT = ("A30-24GB", "A100-80GB")
PLAIN = ("H100-80GB", "L4")
KINDS = ("gang", "gang", "part", "part", "part", "service", "job", "cpu")


def mixed(seed: int) -> Spec:
    """Return the Spec of a seed."""
    rng = Random(f"mixed {seed}")
    product = rng.choice(CUT)
    cards: dict[str, Accelerator] = {**CARDS, product: card(product)}
    unit: Unit | None = rng.choice((None, "gpu", "gpu", "node", "instance"))
    nodes = [_node(rng, f"n{index}", product) for index in range(rng.choice((1, 2, 2, 3)))]
    modes: tuple[ShareMode, ...] = ("fraction", "mig") if unit else ("fraction",)
    work = [_workload(rng, f"w{index}", product, modes, cards) for index in range(rng.choice((2, 3, 3, 4)))]
    rows, cut = _running(rng, nodes, work, cards) if rng.random() < 0.6 else ({}, {})
    if rows:
        nodes = [tiny._struck(rng, each) for each in nodes]
        work = [each if each.topology or each.elastic else tiny._grown(rng, each) for each in work]
    policies = _policies(rng, nodes, work)
    waivers, as_of = tiny._waivers(rng, [each for each in policies if each.origin != "workloads"])
    spec = make_spec(
        nodes, work, policies, waivers=waivers, objective=_objective(rng), levels=LEVELS, as_of=as_of, name="mixed"
    )
    positions: Positions = rng.choice(("enforced", "enforced", "toolChosen"))
    cluster = Cluster("mixed", LEVELS, spec.cluster.nodes, reconfiguration=unit, positions=positions)
    drawn = replace(spec, cluster=cluster, accelerators=cards, current=_current(rng, work, rows, cut))
    if rows:
        settings = {gpu: one for gpu, one in sharing_specs._told(rng, drawn).items() if gpu not in cut}
        drawn = replace(drawn, current=replace(drawn.current, settings=settings))
    return replace(drawn, policies=tuple(each for each in drawn.policies if not refused(each, drawn)))


def refused(policy: Policy, spec: Spec) -> bool:
    """Tell whether no documents say this, as they would be refused."""
    return bool(policy.rule.unsound(spec) or policy.rule.unsound_beside(policy, spec))


def _node(rng: Random, name: str, product: str) -> Node:
    gpus = rng.choice((0, 1, 1, 2, 2, 2, 3))
    mechanism: Mechanism = rng.choice(("fraction", "fraction", "devicePlugin", "dra"))
    zone, rack = rng.choice("ab"), rng.choice(("r0", "r0", "r1"))
    return node(
        name,
        gpus,
        cpu=rng.choice((3000, 6000, 64_000)),
        memory=rng.choice((4096, 65_536)),
        accelerator=(product if rng.random() < 0.7 else rng.choice(PLAIN)) if gpus else None,
        domains={"zone": zone, "rack": f"{zone}/{rack}"} if name == "n0" or rng.random() < 0.95 else {},
        labels={"disk": "ssd"} if rng.random() < 0.4 else {},
        mechanism=mechanism,
        sharing=_parts(rng) if mechanism != "fraction" and rng.random() < 0.7 else None,
        price=rng.choice((0, 2_500_000)),
        gpu_price=rng.choice((0, 0, 1_000_000)),
        cordoned=rng.random() < 0.06,
        failed_gpus=frozenset({rng.randrange(gpus)}) if gpus > 1 and rng.random() < 0.12 else frozenset(),
        resources=rng.choice(({}, {"rdma": 1})),
    )


def _parts(rng: Random) -> EqualParts:
    """Return how a node's GPUs are shared by equal parts."""
    most = rng.choice(((48, 1000), (48, 0), (0, 1000), (3, 2)))
    return EqualParts(*most, parts=rng.choice((None, None, 2)), oversubscription=rng.choice((1000, 1000, 2000)))


# ---------------------------------------------------------------------- workloads


def _workload(
    rng: Random, name: str, product: str, modes: tuple[ShareMode, ...], cards: dict[str, Accelerator]
) -> Workload:
    kind = rng.choice(KINDS)
    if kind == "gang":
        return _gang(rng, name)
    asked = _request(rng, kind, product, modes)
    what = kind if kind in ("service", "job") else rng.choice(("service", "job", "job"))
    roles = [role("", rng.choice((1, 1, 2, 2, 3)), asked, **_worth(rng))]
    if asked.gpu_count and rng.random() < 0.15:
        roles = [replace(roles[0], accelerators=tuple(sorted({product, rng.choice(PLAIN)})))]
    found = _named(rng, name, what, roles)
    if what == "service" and asked.gpu_count and rng.random() < 0.5:
        return _promising(rng, found, product, cards)
    if rng.random() < 0.2 and roles[0].replicas > 1:
        found = _elastic(found, 1, rng.choice((1, roles[0].replicas - 1)))
    return found


def _promising(rng: Random, found: Workload, product: str, cards: dict[str, Accelerator]) -> Workload:
    """Return a service with a rate, and a table of hosts that its replicas are on."""
    (role,) = found.roles
    asked, slow = role.request, rng.choice((70_000, 130_000))
    rates: dict[str, int] = {}
    if asked.gpus or (asked.share and "fraction" in asked.share.modes):
        rates = {name: rng.choice((0, slow, 2 * slow)) for name in role.accelerators or rng.sample(sorted(cards), 3)}
    if asked.may_use_mig and (not role.accelerators or product in role.accelerators):
        held = [p for p in geometry_of(product).profiles if holds(p, asked, cards[product].memory, product)]
        rates |= {host_of(product, p.name): slow * rng.choice((1, 1, 2)) for p in held}
    if not rates:
        return found
    slo = Slo(rng.choice((150_000, 300_000)), dict(sorted(rates.items())), open=rng.random() < 0.3)
    if asked.share is not None:
        able = {"mig" if "/" in host else "fraction" for host in rates}
        modes = tuple(mode for mode in asked.share.modes if mode in able)
        asked = replace(asked, share=replace(asked.share, modes=modes, rated=tuple(slo.rates.items())))
    own = replace(role, request=asked, accelerators=tuple(sorted({host.partition("/")[0] for host in rates})))
    least = min((rate for rate in rates.values() if rate), default=0)
    if slo.open and least:
        own = replace(own, replicas=max(-(-slo.rate // least), found.min_replicas))
    return replace(found, slo=slo, roles=(own,))


def geometry_of(product: str) -> Geometry:
    """Return what a GPU can be cut into."""
    found = card(product).mig
    assert found is not None
    return found


def _worth(rng: Random) -> dict[str, Any]:
    return {"value": rng.choice((0, 1, 700, 5000))} if rng.random() < 0.15 else {}


def _request(rng: Random, kind: str, product: str, modes: tuple[ShareMode, ...]) -> Request:
    cpu = rng.choice((0, 500, 1000, 2000))
    if kind == "cpu":
        return request(cpu=rng.choice((1000, 1500)), memory=1024)
    draw = rng.random()
    if draw < (0.55 if kind == "part" else 0.2):
        return mig_request(product, rng.choice(geometry_of(product).profiles).name, cpu)
    if draw < 0.8:
        memory = rng.choice((None, None, 3000, 9000, 30_000))
        peak = rng.choice((0, 0, 500))
        own: tuple[ShareMode, ...] = ("mig",) if rng.random() < 0.15 else modes
        barred: tuple[SharedMode, ...] = ("time-slice",) if rng.random() < 0.25 else ()
        return Request(cpu, 512, share=Share(rng.choice((100, 250, 400)), memory, peak, own, barred=barred))
    return request(rng.choice((1, 1, 2)), cpu=cpu)


def _gang(rng: Random, name: str) -> Workload:
    """Return a gang of whole GPUs, or of fractions, with groups, levels and widths."""
    count = rng.choice((2, 2, 3, 4))
    asked = request(1, cpu=500) if rng.random() < 0.75 else request(share=400, cpu=500)
    roles = [role("", count, asked)]
    if rng.random() < 0.15:
        roles = [role("lead", 1, request(cpu=1000)), role("work", 2, request(1))]
    within = rng.choice((None, None, "zone", "rack"))
    inside = LEVELS[LEVELS.index(within) + 1 :] if within else LEVELS
    groups = _groups(rng, roles, inside) if rng.random() < 0.4 else ()
    topology = Topology(within, rng.choice((None, None, rng.choice(inside))), groups)
    found = replace(
        _named(rng, name, "gang", roles, mix=rng.choice(("none", "perRole", "any"))),
        communicates=True,
        topology=None if topology == Topology() else topology,
    )
    step = 2 if groups else 1
    if len(roles) == 1 and rng.random() < 0.3 and count % step == 0:
        return _elastic(found, step, step)
    return found


def _groups(rng: Random, roles: list[Role], inside: tuple[str, ...]) -> tuple[Group, ...]:
    level = rng.choice(inside)
    if len(roles) > 1:
        return (Group(level, roles={"lead": 1, "work": 2}),)
    if roles[0].replicas % 2:
        return ()
    if roles[0].replicas == 4 and level != "node" and rng.random() < 0.4:
        return (Group(level, of=4), Group("node", of=2))
    return (Group(level, of=2),)


def _elastic(found: Workload, step: int, least: int) -> Workload:
    """Return a workload of one role that may have fewer replicas (S2.6)."""
    groups = found.topology.groups if found.topology else ()
    if groups and groups[0].of == 4:
        return found
    (only,) = found.roles
    own = replace(only, least=least, step=step if not (only.replicas - least) % step else 1)
    floor = 1 if found.atomic or found.type == "service" else 0
    return replace(found, roles=(own,), min_replicas=max(least, floor))


def _named(rng: Random, name: str, kind: str, roles: list[Role], **more: Any) -> Workload:
    tenant = rng.choice(tiny.TENANTS)
    if kind == "service" and rng.random() < 0.3:
        more["min_replicas"] = min(2, sum(each.replicas for each in roles))
    if rng.random() < 0.4:
        more["movable"] = rng.random() < 0.6
    return workload(
        f"{tenant}/{name}",
        type=kind,
        roles=roles,
        tenant=rng.choice((tenant, tenant, rng.choice(tiny.TENANTS))),
        priority=rng.choice((0, 0, 100)),
        preemptible=rng.random() < 0.25,
        checkpoint_every=rng.choice((None, 600_001)),
        restart=rng.choice((0, 60_000)),
        labels={"team": rng.choice("ab")} if rng.random() < 0.7 else {},
        **more,
    )


# ---------------------------------------------------------------------- current state


def _running(
    rng: Random, nodes: list[Node], work: list[Workload], cards: dict[str, Accelerator]
) -> tuple[dict[str, Place], dict[str, Layout]]:
    """Return what runs where today and how GPUs are cut; capacities hold, and policies they may break."""
    stocks: dict[str, PartStock] = {}
    cut: dict[str, Layout] = {}
    for host in nodes:
        held = cards[host.accelerator] if host.accelerator else None
        stocks[host.name] = PartStock(host, held.memory if held else 0, geometry=held.mig if held else None)
        options = [*layouts(held.mig)] if held and held.mig else []
        chosen = [index for index in range(host.gpus) if options and rng.random() < 0.45]
        cut.update({f"{host.name}/{index}": rng.choice(options) for index in chosen})
    rows: dict[str, Place] = {}
    for one in work:
        if rng.random() < 0.3:
            continue
        for each in one.replica_ids():
            own = one.by_role[each.role]
            places = [p for s in stocks.values() for p in _options(one, own, s, cut) if _fits(s, own, p, cut)]
            if places and rng.random() < 0.9:
                where = places[0] if rng.random() < 0.5 else rng.choice(places)
                stocks[where.node].change(own, where.gpus, 1, where.instance)
                rows[str(each)] = where
    return rows, cut if rng.random() < 0.8 or any(p.instance for p in rows.values()) else {}


def _options(one: Workload, own: Role, stock: PartStock, cut: dict[str, Layout]) -> list[Place]:
    name, count = stock.node.name, own.request.gpu_count
    sound = sorted(stock.compute)
    if own.accelerators and stock.node.accelerator not in own.accelerators:
        return []
    if not count:
        return [Place(name)]
    found = [Place(name, tuple(sound[first : first + count])) for first in range(len(sound) - count + 1)]
    if own.request.may_use_mig and not one.communicates:
        found += [Place(name, (g,), str(each)) for g in sound for each in cut.get(f"{name}/{g}", ())]
    return found


def _fits(stock: PartStock, own: Role, place: Place, cut: dict[str, Layout]) -> bool:
    """Tell whether a place is free; an instance as it is cut, anything else on a GPU that is not cut."""
    if not place.instance:
        return not any(f"{place.node}/{gpu}" in cut for gpu in place.gpus) and stock.fits(own, place.gpus)
    assert stock.geometry is not None
    profile = stock.geometry.by_name[place.instance.partition("@")[0]]
    asked = own.request
    if asked.share is None:
        alike = asked.mig == profile.name
    else:
        memory = asked.share.compute * stock.card if asked.share.memory is None else 1000 * asked.share.memory
        alike = max(asked.share.peak, asked.share.compute) <= profile.milli and memory <= 1000 * profile.memory
    return alike and place.instance not in stock.parts[place.gpus[0]] and stock.fits(own, place.gpus, place.instance)


def _current(rng: Random, work: list[Workload], rows: dict[str, Place], cut: dict[str, Layout]) -> Current:
    found = [PresentReplica(replica(text), p.node, p.gpus, p.instance) for text, p in sorted(rows.items())]
    elapsed = {w.id: rng.choice((0, tiny.HOUR, 90_500)) for w in work if rng.random() < 0.6}
    return Current(tuple(sorted(found, key=lambda each: each.replica)), elapsed, gpus=dict(sorted(cut.items())))


# ---------------------------------------------------------------------- policies


def _policies(rng: Random, nodes: list[Node], work: list[Workload]) -> list[Policy]:
    found = [held] if (held := policy_of(work)) else []
    nodes = [each for each in nodes if each.domains]
    for index in range(rng.choice((0, 1, 1, 2, 2))):
        found.append(tiny._policy(rng, f"p{index}", rng.choice(tiny.RULE_THEMES), LEVELS, nodes, work))
    for kind in rng.sample(sorted(RULES), rng.choice((0, 1, 1, 2))):
        found += [replace(each, name=f"{kind}-{each.name}") for each in RULES[kind](rng)]
    return found


def _objective(rng: Random) -> Objective:
    found = tiny._objective(rng)
    if rng.random() < 0.3 and "fragmentation" not in found.tiers:
        found = replace(found, tiers=(*found.tiers, "fragmentation"))
    return found if rng.random() < 0.9 else Objective(tiers=(*DEFAULT_TIERS[:5], "fragmentation", "cost"))
