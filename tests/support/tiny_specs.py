"""Tiny random Specs from a seed, small enough for brute force and tight enough that much of them binds.

`tiny(seed)` gives the same Spec wherever it runs. The seed also picks what the Spec is mostly about, so that every
rule, request kind and kind of current state has its share in any run of consecutive seeds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.support.specs import CARD, make_spec, node, policy, request, role, workload

from dovetail.placement import Place, Room, obstacle
from dovetail.rules import Rule
from dovetail.rules.admission import Admission
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import (
    Accelerator,
    Node,
    NodeSelector,
    Objective,
    Policy,
    ReplicaId,
    Request,
    Requirement,
    Role,
    Spec,
    Taint,
    Toleration,
    Waiver,
    Workload,
    WorkloadSelector,
)
from dovetail.spec.objective import DEFAULT_TIERS

TENANTS = ("red", "blue")
TODAY = dt.date(2025, 6, 1)
HOUR = 3_600_000
RULE_THEMES = ("separate", "spread", "exclusive", "require", "forbid", "quota", "move", "admission")
THEMES = (*RULE_THEMES, "requests", "exclusive", "require", "requests")
CROWDED = ("separate", "exclusive")
"""Themes whose rules bind where many workloads share few nodes."""
ROOMY = (*CROWDED, "spread", "forbid", "require", "move", "quota")
"""Themes whose rules bind where capacity alone would let nearly everything in."""

_COUNTS = {**dict.fromkeys(ROOMY, (2, 2, 3)), "requests": (1, 1, 2, 3)}

LARGEST = 2e4
"""Roughly how many ways a Spec's replicas may be placed, capacity aside."""


def tiny(seed: int) -> Spec:
    """Return the tiny Spec of a seed."""
    rng = Random(f"tiny {seed}")
    theme = THEMES[seed % len(THEMES)]
    while True:
        spec = _draw(rng, theme)
        if _ways(spec) <= LARGEST:
            return spec


def _draw(rng: Random, theme: str) -> Spec:
    levels = rng.choice((("rack", "node"), ("rack", "node"), ("zone", "rack", "node")))
    roomy = theme in ROOMY and rng.random() < 0.8
    counts = (1, 1, 1, 2) if theme in CROWDED and roomy else _COUNTS.get(theme, (1, 2, 2, 3, 3, 4))
    nodes = [_node(rng, f"n{index}", theme, roomy) for index in range(rng.choice(counts))]
    workloads = [_workload(rng, f"w{index}", theme, roomy) for index in range(rng.choice((2, 2, 3, 3, 4)))]
    if theme == "move" and rng.random() < 0.9:
        return _scattered(rng, levels)
    workloads += _twins(rng, workloads)
    running = {}
    if theme == "move" or rng.random() < 0.45:
        running = _running(rng, nodes, workloads, theme)
        nodes = [_struck(rng, n) if theme != "move" or rng.random() < 0.3 else n for n in nodes]
        workloads = [_grown(rng, w) for w in workloads]
    policies = [_policy(rng, "p0", theme, levels, nodes, workloads)] if theme != "requests" else []
    for index in range(rng.choice((0, 0, 0, 1, 1, 2))):
        policies.append(_policy(rng, f"p{index + 1}", rng.choice(RULE_THEMES), levels, nodes, workloads))
    waivers, as_of = _waivers(rng, policies)
    return make_spec(
        nodes,
        workloads,
        policies,
        waivers=waivers,
        objective=_objective(rng),
        running=running,
        elapsed={w.id: rng.choice((0, HOUR, 90_500)) for w in workloads if rng.random() < 0.6},
        levels=levels,
        as_of=as_of,
    )


def _scattered(rng: Random, levels: tuple[str, ...]) -> Spec:
    """Return a Spec where what waits fits only if what runs is moved together."""
    width = rng.choice((2, 2, 3))
    nodes = [
        node(f"n{i}", width, cpu=8000, domains={"zone": "a", "rack": f"a/r{i % 2}"}, price=rng.choice((0, 10)))
        for i in range(rng.choice((2, 2, 3)))
    ]
    share = rng.choice((None, None, 400, 600))
    asked = request(1 if share is None else 0, share, cpu=500, memory=0)
    runner: dict[str, Any] = {"checkpoint_every": rng.choice((None, 600_001)), "preemptible": rng.random() < 0.2}
    work = [workload("red/run", type="job", roles=[role("", len(nodes), asked)], tenant="red", **runner)]
    wide = request(width, cpu=rng.choice((500, 1000)), memory=0)
    kind = rng.choice(("job", "gang", "service"))
    work.append(workload("blue/wide", type=kind, roles=[role("", 1, wide)], tenant="blue"))
    if rng.random() < 0.4:
        work.append(_workload(rng, "w2", "move", True))
    running = {f"red/run#{i}": Place(n.name, (rng.randrange(width),)) for i, n in enumerate(nodes)}
    policies = [_policy(rng, "p0", "move", levels, nodes, work)]
    if rng.random() < 0.3:
        policies.append(_policy(rng, "p1", rng.choice(RULE_THEMES), levels, nodes, work))
    return make_spec(nodes, work, policies, running=running, levels=levels, elapsed={"red/run": HOUR})


def _ways(spec: Spec) -> float:
    """Return roughly how many ways there are to place a Spec's replicas, room aside."""
    total = 1.0
    for w in spec.workloads:
        for r in w.roles:
            options = 1
            for n in spec.cluster.nodes:
                if obstacle(w, r, n, spec.accelerators) is None:
                    options += 1 if not r.request.share else min(len(n.healthy_gpus()), 2)
            ways = 1.0
            for index in range(r.replicas):
                ways *= (options + index) / (index + 1)
            total *= ways
    return total


# ---------------------------------------------------------------------- cluster


def _node(rng: Random, name: str, theme: str, roomy: bool) -> Node:
    if roomy and rng.random() < 0.9:
        zone = rng.choice("ab")
        return node(
            name,
            rng.choice((2, 3, 4)),
            cpu=rng.choice((8000, 16_000)),
            memory=65_536,
            domains={"zone": zone, "rack": f"{zone}/{rng.choice(('r0', 'r1'))}"},
            labels={"disk": "ssd"} if rng.random() < 0.4 else {},
            price=rng.choice((0, 2_500_000)),
            resources=rng.choice(({}, {"rdma": 2})),
        )
    gpus = rng.choice((0, 1, 2, 2, 3, 4) if theme != "requests" else (0, 1, 1, 2, 4))
    zone, rack = rng.choice("ab"), rng.choice(("r0", "r0", "r1"))
    return node(
        name,
        gpus,
        group=rng.choice(("pool", "pool", "spare")),
        cpu=rng.choice((2000, 4000, 4000, 16_000)),
        memory=rng.choice((4096, 8192, 65_536)),
        accelerator=rng.choice((CARD, CARD, "A100-40GB", "L4")) if gpus else None,
        resources=rng.choice(({}, {}, {"rdma": 1})),
        domains={"zone": zone, "rack": f"{zone}/{rack}"},
        labels={"disk": "ssd"} if rng.random() < 0.4 else {},
        taints=(Taint("keep", "", rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))),)
        if rng.random() < 0.12
        else (),
        mechanism="devicePlugin" if rng.random() < 0.12 else "fraction",
        price=rng.choice((0, 2_500_000, 4_000_000)),
        gpu_price=rng.choice((0, 0, 1_000_000)),
        cordoned=rng.random() < 0.06,
        down=rng.random() < 0.04,
        failed_gpus=frozenset({rng.randrange(gpus)}) if gpus > 1 and rng.random() < 0.12 else frozenset(),
    )


def _struck(rng: Random, n: Node) -> Node:
    """Return a node as faults may have left it while work runs there."""
    fate = rng.random()
    if fate < 0.08:
        return replace(n, down=True)
    if fate < 0.16:
        return replace(n, cordoned=True)
    if fate < 0.24 and n.gpus:
        return replace(n, failed_gpus=n.failed_gpus | {rng.randrange(n.gpus)})
    if fate < 0.30:
        return replace(n, cpu=n.cpu // 2)
    if fate < 0.36:
        return replace(n, taints=(Taint("keep", "", rng.choice(("NoSchedule", "NoExecute"))),))
    return n


# ---------------------------------------------------------------------- workloads


def _request(rng: Random, theme: str, roomy: bool) -> Request:
    if roomy and rng.random() < 0.75:
        share = rng.choice((None, 250, 400, (200, 15_000), 500))
        return request(1 if share is None else 0, share, cpu=rng.choice((0, 500, 1000)), memory=1024)
    host: dict[str, Any] = {
        "cpu": rng.choice((0, 500, 1000, 1000, 2000)),
        "memory": rng.choice((0, 1024, 2048)),
    }
    if rng.random() < 0.1:
        host["rdma"] = 1
    kinds = ("whole", "whole", "whole", "share", "share", "share", "memory", "memory", "cpu")
    kind = rng.choice(kinds if theme != "requests" else ("whole", "share", "memory", "memory", "cpu", "cpu"))
    if kind == "whole":
        return request(rng.choice((1, 1, 2, 2, 3)), **host)
    if kind == "share":
        return request(share=rng.choice((250, 300, 400, 500, 600, 700)), **host)
    if kind == "memory":
        part = rng.choice(((200, 15_000), (300, 30_000), (250, 41_000), (100, 45_000), (250, 12_000)))
        return request(share=part, **host)
    return request(cpu=rng.choice((1000, 1500, 2000)), memory=rng.choice((1024, 3000)))


def _role(rng: Random, name: str, most: int, theme: str, roomy: bool) -> Role:
    asked = _request(rng, theme, roomy)
    more: dict[str, Any] = {}
    if asked.gpu_count and rng.random() < 0.2:
        more["accelerators"] = rng.choice(((CARD,), ("A100-40GB", "L4"), (CARD, "L4")))
    if rng.random() < 0.15:
        more["value"] = rng.choice((0, 1, 700, 5000))
    replicas = 0 if rng.random() < 0.02 else rng.randint(1, most)
    return role(name, replicas, asked, **more)


def _workload(rng: Random, name: str, theme: str, roomy: bool) -> Workload:
    kind = rng.choice(("gang", "service", "job", "job", "service"))
    if rng.random() < 0.8:
        roles = [_role(rng, "", 2 if roomy and theme in CROWDED else 3, theme, roomy)]
    else:
        roles = [_role(rng, "lead", 2, theme, roomy), _role(rng, "work", 2, theme, roomy)]
    tenant = rng.choice(TENANTS)
    more: dict[str, Any] = {}
    if kind == "service" and rng.random() < 0.4:
        more["min_replicas"] = min(2, sum(r.replicas for r in roles))
    if kind == "gang":
        more["mix"] = rng.choice(("none", "none", "perRole", "any"))
    if theme == "move" and rng.random() < 0.9:
        more["movable"] = True
    elif rng.random() < 0.2:
        more["movable"] = rng.random() < 0.3
    return workload(
        f"{tenant}/{name}",
        type=kind,
        roles=roles,
        tenant=rng.choice((tenant, tenant, rng.choice(TENANTS))),
        priority=rng.choice((0, 0, 0, 100, 900)),
        preemptible=rng.random() < 0.25,
        tolerations=(Toleration("keep", "Exists"),) if rng.random() < 0.3 else (),
        checkpoint_every=rng.choice((None, None, 1_800_000, 600_001)),
        restart=rng.choice((0, 0, 60_000, 90_500)),
        labels={"team": rng.choice("ab")} if rng.random() < 0.7 else {},
        **more,
    )


def _twins(rng: Random, workloads: list[Workload]) -> list[Workload]:
    """Return a copy of a workload under another name, now and then: shapes that an engine may merge."""
    if rng.random() < 0.75:
        return []
    one = rng.choice(workloads)
    return [replace(one, id=f"{one.id}-twin", name=f"{one.name}-twin")]


def _grown(rng: Random, w: Workload) -> Workload:
    """Return a workload as an edit may have left it while it runs: scaled up or down by one."""
    step = rng.choice((0, 0, 0, 0, 1, -1))
    if not step or w.atomic or w.min_replicas > 1:
        return w
    first = w.roles[0]
    return replace(w, roles=(replace(first, replicas=max(0, first.replicas + step)), *w.roles[1:]))


# ---------------------------------------------------------------------- current state


def _running(rng: Random, nodes: list[Node], workloads: list[Workload], theme: str) -> dict[str, Place]:
    """Return a current state that keeps capacities; policies it may break, and faults come later."""
    rooms = {n.name: Room(n, _cards()) for n in nodes}
    rows: dict[str, Place] = {}
    for w in workloads:
        if rng.random() < (0.25 if theme != "move" else 0.1):
            continue
        share = rng.choice((1.0, 1.0, 0.6))
        for replica in w.replica_ids():
            if rng.random() > share and not w.atomic:
                continue
            found = _free_place(rng, nodes, w, replica, rooms)
            if found is not None:
                rooms[found.node].take(w.by_role[replica.role].request, found.gpus)
                rows[str(replica)] = found
    if rng.random() < 0.1 and rows:
        rows[f"{workloads[0].id}#7"] = Place(nodes[0].name)
    if rng.random() < 0.05 and rows:
        text = rng.choice(sorted(rows))
        rows[text] = Place("gone", rows[text].gpus)
    return rows


def _free_place(
    rng: Random, nodes: list[Node], w: Workload, replica: ReplicaId, rooms: dict[str, Room]
) -> Place | None:
    own = w.by_role[replica.role]
    for n in rng.sample(nodes, len(nodes)):
        if obstacle(w, own, n, _cards()) is not None:
            continue
        healthy = list(n.healthy_gpus())
        for _ in range(4):
            gpus = tuple(sorted(rng.sample(healthy, own.request.gpu_count)))
            if rooms[n.name].lacks(own.request, gpus) is None:
                return Place(n.name, gpus)
    return None


def _cards() -> dict[str, Accelerator]:
    return dict(make_spec([], []).accelerators)


# ---------------------------------------------------------------------- policies


def _policy(
    rng: Random, name: str, kind: str, levels: tuple[str, ...], nodes: list[Node], workloads: list[Workload]
) -> Policy:
    rule = _RULES[kind](rng, levels)
    some = rng.random() < (1.0 if kind == "exclusive" else 0.1 if kind in ("separate", "move", "require") else 0.35)
    selector = _workload_selector(rng, workloads) if some else WorkloadSelector()
    if kind == "exclusive" and rng.random() < 0.6:
        selector = WorkloadSelector(names=(rng.choice(workloads).id,))
    needs = kind in ("require", "forbid")
    choice = _node_selector(rng, nodes) if needs or (kind != "admission" and rng.random() < 0.1) else None
    hard = 0.35 if kind == "admission" else 0.6
    draw = rng.random()
    enforcement: str | int = "hard" if draw < hard else "audit" if draw > 0.96 else rng.choice((1, 2, 7))
    return policy(name, rule, enforcement=enforcement, workloads=selector, nodes=choice)


def _workload_selector(rng: Random, workloads: list[Workload]) -> WorkloadSelector:
    return rng.choice(
        (
            WorkloadSelector(tenants=(rng.choice(TENANTS),)),
            WorkloadSelector(namespaces=(rng.choice(TENANTS),)),
            WorkloadSelector(names=(rng.choice(workloads).id,)),
            WorkloadSelector(types=(rng.choice(("job", "gang", "service")),)),
            WorkloadSelector(match_labels={"team": "a"}),
            WorkloadSelector(match_expressions=(Requirement("team", rng.choice(("NotIn", "In")), ("a",)),)),
            WorkloadSelector(match_expressions=(Requirement("team", rng.choice(("Exists", "DoesNotExist"))),)),
            WorkloadSelector(priority_min=100),
            WorkloadSelector(priority_max=0),
        )
    )


def _node_selector(rng: Random, nodes: list[Node]) -> NodeSelector:
    one = rng.choice(nodes)
    return rng.choice(
        (
            *(NodeSelector(names=(one.name,)),) * 5,
            NodeSelector(groups=("pool",)),
            NodeSelector(match_labels={"disk": "ssd"}),
            NodeSelector(match_expressions=(Requirement("disk", "DoesNotExist"),)),
            NodeSelector(accelerators=(one.accelerator or "L4",)),
            NodeSelector(domains=(one.domains["rack"],)),
        )
    )


def _separate(rng: Random, levels: tuple[str, ...]) -> Rule:
    by = rng.choice(("tenant", "namespace", "workload", "workload", "workload", "label"))
    return Separate(by=by, at=rng.choice(("gpu", "node", "node", *levels)), label="team" if by == "label" else None)


def _spread(rng: Random, levels: tuple[str, ...]) -> Rule:
    over = rng.choice(("node", *levels))
    if rng.random() < 0.6:
        return Spread(over=over, max_per_domain=rng.choice((1, 1, 2)))
    return Spread(over=over, max_skew=rng.choice((0, 1, 1)))


def _exclusive(rng: Random, levels: tuple[str, ...]) -> Rule:
    return Exclusive(at=rng.choice(("gpu", *("node",) * 6, *levels)))


def _quota(rng: Random, levels: tuple[str, ...]) -> Rule:
    per = rng.choice(("all", "all", "tenant", "namespace", "workload", "label"))
    limits = rng.choice(
        (
            (("gpus", 1000),),
            (("gpus", 1500),),
            (("gpus", 700), ("cpu", 3000)),
            (("cpu", 2000),),
            (("memory", 1500),),
            (("rdma", 0), ("gpus", 900)),
        )
    )
    return Quota(limits=limits, per=per, label="team" if per == "label" else None)


def _move(rng: Random, levels: tuple[str, ...]) -> Rule:
    return Move(never=True) if rng.random() < 0.35 else Move(max_moves=rng.choice((0, 0, 1)))


def _admission(rng: Random) -> Admission:
    if rng.random() < 0.4:
        return Admission()
    per = rng.choice(("workload", "tenant", "all"))
    return Admission(at_least=rng.choice(("all", "minimum", 2, 3)), per=per, or_none=rng.random() < 0.7)


_RULES: dict[str, Callable[[Random, tuple[str, ...]], Rule]] = {
    "separate": _separate,
    "spread": _spread,
    "exclusive": _exclusive,
    "quota": _quota,
    "move": _move,
    "require": lambda rng, levels: Require(),
    "forbid": lambda rng, levels: Forbid(),
    "admission": lambda rng, levels: _admission(rng),
}


def _waivers(rng: Random, policies: list[Policy]) -> tuple[list[Waiver], dt.date | None]:
    if not policies or rng.random() < 0.88:
        return [], None
    until = TODAY + dt.timedelta(days=rng.choice((-1, 0, 30)))
    lifted = WorkloadSelector(tenants=(rng.choice(TENANTS),))
    return [Waiver("w", rng.choice(policies).name, lifted, "a reason", "an owner", until)], TODAY


def _objective(rng: Random) -> Objective:
    draw = rng.random()
    if draw < 0.7:
        return Objective()
    if draw < 0.8:
        return Objective(bands=rng.choice(((0,), (100, 0), (500,))))
    if draw < 0.9:
        return Objective(disruption=rng.choice((("moves", "evicted", "gpuTimeLost"), ("gpuTimeLost", "moves"))))
    if draw < 0.96:
        return Objective(tiers=("mend", "admitted", "cost", "disruption", "policies"))
    return Objective(tiers=rng.choice((("admitted", "cost"), ("policies", "admitted"), DEFAULT_TIERS[1:])))
