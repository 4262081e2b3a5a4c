"""Tiny random Specs of gangs on ragged trees: levels, groups, elastic roles, and what runs today."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.support.specs import make_spec, node, policy, request, role, workload

from dovetail.placement import Place
from dovetail.rules import policy_of
from dovetail.rules.colocate import Colocate
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.spread import Spread
from dovetail.spec import Group, Node, Role, Spec, Topology, Workload, WorkloadSelector

LEVELS = ("block", "rack", "node")


def tiny_gangs(seed: int) -> Spec:
    """Return the Spec of a seed."""
    rng = Random(f"gangs {seed}")
    nodes = _nodes(rng)
    workloads = [_workload(rng, f"w{index}") for index in range(rng.choice((1, 2, 2, 3)))]
    running: dict[str, Place] = {}
    if rng.random() < 0.5:
        running = _running(rng, nodes, workloads)
        nodes = [replace(n, down=True) if rng.random() < 0.15 else n for n in nodes]
    policies = [held] if (held := policy_of(workloads)) else []
    if rng.random() < 0.2:
        together = Colocate(by=rng.choice(("tenant", "workload")), at=rng.choice(LEVELS))
        policies.append(policy("set", together, enforcement=rng.choice(("hard", "hard", 2))))
    if rng.random() < 0.25:
        only = WorkloadSelector(names=(workloads[0].id,))
        rule = rng.choice((Spread("rack", max_per_domain=2), Exclusive("rack"), Exclusive("node")))
        policies.append(policy("extra", rule, workloads=only, enforcement=rng.choice(("hard", 3))))
    return make_spec(nodes, workloads, policies, running=running, levels=LEVELS)


def _nodes(rng: Random) -> list[Node]:
    places = [(f"b{b}", f"b{b}/r{r}") for b in range(2) for r in range(rng.choice((1, 1, 2)))]
    found: list[Node] = []
    for block, rack in places:
        for _ in range(rng.choice((1, 1, 2))):
            domains = {"block": block, "rack": rack} if rng.random() < 0.95 else {}
            found.append(node(f"n{len(found)}", rng.choice((1, 2, 2)), domains=domains))
    return rng.sample(found, len(found)) if rng.random() < 0.3 else found


def _workload(rng: Random, name: str) -> Workload:
    kind = rng.choice(("gang", "gang", "gang", "job", "service"))
    roles = _roles(rng)
    more: dict[str, Any] = {"communicates": kind == "gang" or rng.random() < 0.2}
    if kind == "gang" and rng.random() < 0.7:
        more["movable"] = True
    one = workload(
        name,
        type=kind,
        roles=roles,
        priority=rng.choice((0, 0, 9)),
        preemptible=rng.random() < 0.2,
        topology=_topology(rng, roles),
        mix="any",
        checkpoint_every=rng.choice((None, 600_000)),
        **more,
    )
    if any(each.elastic for each in roles):
        least = sum(each.least or 0 for each in one.roles)
        one = replace(one, min_replicas=max(least, 1 if kind != "job" else 0))
    return one


def _roles(rng: Random) -> list[Role]:
    if rng.random() < 0.15:
        return [role("lead", 1, request(rng.choice((0, 1)))), role("work", 2, request(1))]
    count = rng.choice((2, 2, 3, 4, 4))
    more = {"least": 2, "step": 2} if count == 4 and rng.random() < 0.4 else {}
    return [role("", count, request(rng.choice((1, 1, 2))), **more)]


def _topology(rng: Random, roles: list[Role]) -> Topology | None:
    within = rng.choice((None, None, "block", "rack"))
    inside = LEVELS[LEVELS.index(within) + 1 :] if within else LEVELS
    prefer = rng.choice((None, None, rng.choice(inside)))
    groups: tuple[Group, ...] = ()
    if rng.random() < 0.5:
        groups = _groups(rng, roles, inside)
    found = Topology(within, prefer, groups)
    return None if found == Topology() else found


def _groups(rng: Random, roles: list[Role], inside: tuple[str, ...]) -> tuple[Group, ...]:
    level = rng.choice(inside)
    if len(roles) > 1:
        return (Group(level, roles={"lead": 1, "work": 2}),)
    if roles[0].replicas % 2:
        return ()
    if roles[0].replicas == 4 and not roles[0].elastic and level != "node" and rng.random() < 0.4:
        return (Group(level, of=4), Group("node", of=2))
    return (Group(level, of=2),)


def _running(rng: Random, nodes: list[Node], workloads: list[Workload]) -> dict[str, Place]:
    """Return a current state that keeps capacities, and mostly nothing else."""
    free = {n.name: list(range(n.gpus)) for n in nodes}
    rows: dict[str, Place] = {}
    for one in workloads:
        if rng.random() < 0.4:
            continue
        order = list(nodes) if rng.random() < 0.6 else rng.sample(nodes, len(nodes))
        for replica in one.replica_ids():
            wanted = one.by_role[replica.role].request.gpus
            name = next((n.name for n in order if len(free[n.name]) >= wanted), None)
            if name is not None and rng.random() < 0.9:
                rows[str(replica)] = Place(name, tuple(free[name][:wanted]))
                del free[name][:wanted]
    return rows


def in_cores(seed: int) -> Spec:
    """Return the Spec of a seed with cores in place of GPUs: any number of replicas then share a place."""
    spec = tiny_gangs(seed)
    nodes = tuple(replace(n, gpus=0, accelerator=None, cpu=1000 * n.gpus) for n in spec.cluster.nodes)
    workloads = tuple(replace(w, roles=tuple(map(_in_cores, w.roles))) for w in spec.workloads)
    rows = tuple(replace(row, gpus=()) for row in spec.current.replicas)
    current = replace(spec.current, replicas=rows)
    return replace(spec, cluster=replace(spec.cluster, nodes=nodes), workloads=workloads, current=current)


def _in_cores(one: Role) -> Role:
    asked = request(0, cpu=1000 * one.request.gpus)
    return replace(one, request=asked, value=asked.cpu)
