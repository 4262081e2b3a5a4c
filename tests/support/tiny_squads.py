"""Tiny random Specs of gangs whose groups may be there in part, as groups inside them have a minimum (S2.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.support.specs import make_spec, node, request, role, workload

from dovetail.placement import Place
from dovetail.rules import policy_of
from dovetail.spec import Group, Node, Role, Spec, Topology, Workload

LEVELS = ("block", "rack", "node")


def tiny_squads(seed: int) -> Spec:
    """Return the Spec of a seed."""
    rng = Random(f"squads {seed}")
    return _spec(rng, lambda: _squads(rng, "w0"))


def thin_squads(seed: int) -> Spec:
    """Return the Spec of a seed in which fewer groups in full would have as many replicas as there must be groups."""
    rng = Random(f"thin {seed}")
    return _spec(rng, lambda: _thin(rng, "w0"))


def _spec(rng: Random, make: Callable[[], Workload]) -> Spec:
    nodes = _nodes(rng)
    workloads = [make()]
    if rng.random() < 0.5:
        workloads.append(workload("w1", 1, gpus=1, type="job", priority=rng.choice((0, 9))))
    running = _running(rng, nodes, workloads) if rng.random() < 0.5 else {}
    if running:
        nodes = [replace(n, down=True) if rng.random() < 0.2 else n for n in nodes]
    held = policy_of(workloads)
    return make_spec(nodes, workloads, [held] if held else [], running=running, levels=LEVELS)


def _nodes(rng: Random) -> list[Node]:
    places = [("b0", f"b0/r{r}") for r in range(2)] + [("b1", "b1/r2")]
    return [
        node(f"n{index}", rng.choice((1, 2, 2)), domains={"block": block, "rack": rack})
        for index, (block, rack) in enumerate(place for place in places for _ in range(rng.choice((1, 1, 2))))
    ]


def _squads(rng: Random, name: str) -> Workload:
    groups: tuple[Group, ...]
    if rng.random() < 0.25:
        roles = [role("lead", 2, request(0)), role("work", 4, request(1))]
        groups = (
            Group(rng.choice(("rack", "block")), roles={"lead": 1, "work": 2}, minimum=rng.choice((None, 1))),
            Group("node", roles={"work": 1}, minimum=1),
        )
    elif rng.random() < 0.2:
        roles = [role("", 8, request(rng.choice((0, 1))))]
        groups = (
            Group("block", of=8),
            Group("rack", of=4, minimum=rng.choice((None, 1))),
            Group("node", of=rng.choice((1, 2)), minimum=rng.choice((1, 2))),
        )
    else:
        outer, inner = rng.choice(((2, 1), (3, 1), (4, 2), (4, 1)))
        count = outer * rng.choice((1, 2, 2)) if outer < 4 else outer
        roles = [role("", count, request(1))]
        groups = (
            Group(rng.choice(("rack", "block")), of=outer, minimum=rng.choice((None, None, 1))),
            Group("node", of=inner, minimum=rng.randint(1, outer // inner)),
        )
    return _workload(rng, name, roles, groups)


def _thin(rng: Random, name: str) -> Workload:
    outer, number = rng.choice(((2, 3), (2, 3), (3, 2), (3, 3)))
    minimum = rng.choice((None, 2, number))
    groups = Group(rng.choice(("rack", "block")), of=outer, minimum=minimum), Group("node", of=1, minimum=1)
    return _workload(rng, name, [role("", outer * number, request(rng.choice((1, 1, 1, 0))))], groups)


def _workload(rng: Random, name: str, roles: list[Role], groups: tuple[Group, ...]) -> Workload:
    kind = rng.choice(("gang", "gang", "job"))
    topology = Topology(rng.choice((None, None, "block")), groups=groups)
    if topology.within == groups[0].within:
        topology = replace(topology, within=None)
    found = workload(
        name,
        type=kind,
        roles=_with_floors(roles, topology, kind == "gang"),
        topology=topology,
        communicates=kind == "gang",
        preemptible=rng.random() < 0.2,
        movable=rng.random() < 0.8,
        checkpoint_every=600_000,
    )
    if found.elastic:
        found = replace(found, min_replicas=sum(each.least or 0 for each in found.roles))
    return found


def _with_floors(roles: list[Role], topology: Topology, atomic: bool) -> list[Role]:
    found = []
    for each in roles:
        nest = topology.nests[0]
        least = nest.floor(each.name, each.replicas, atomic)
        found.append(each if least is None else replace(each, least=least, step=nest.unit(each.name)))
    if atomic and any(each.elastic for each in found):
        found = [each if each.elastic else replace(each, least=each.replicas) for each in found]
    return found


def _running(rng: Random, nodes: list[Node], workloads: list[Workload]) -> dict[str, Place]:
    """Return a current state that keeps capacities, mostly with whole groups."""
    free = {n.name: list(range(n.gpus)) for n in nodes}
    rows: dict[str, Place] = {}
    for one in workloads:
        order = list(nodes) if rng.random() < 0.7 else rng.sample(nodes, len(nodes))
        for replica in one.replica_ids():
            wanted = one.by_role[replica.role].request.gpus
            name = next((n.name for n in order if len(free[n.name]) >= wanted), None)
            if name is not None and rng.random() < 0.85:
                rows[str(replica)] = Place(name, tuple(free[name][:wanted]))
                del free[name][:wanted]
    return rows
