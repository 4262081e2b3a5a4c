"""Tiny random Specs of nodes with islands and sockets, of replicas that keep within, wish to, or need not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.support.specs import make_spec, node, policy, request, role, workload

from dovetail.placement import Place
from dovetail.rules import policy_of
from dovetail.rules.colocate import Colocate
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import Group, Node, Request, Role, Spec, Topology, Workload, WorkloadSelector
from dovetail.spec.inside import INNER_LEVELS, Parts

SHAPES: tuple[tuple[int, Parts, Parts], ...] = (
    (4, ((0, 1), (2, 3)), ()),
    (4, ((0, 2), (1, 3)), ()),
    (4, (), ((0, 1), (2, 3))),
    (4, ((0, 1), (2, 3)), ((0, 1), (2, 3))),
    (4, ((0,), (1, 2), (3,)), ((0,), (1, 2, 3))),
    (4, ((0, 1, 2), (3,)), ((0, 1), (2,), (3,))),
    (3, ((0, 1), (2,)), ()),
    (2, (), ()),
    (2, ((0,), (1,)), ()),
)


def tiny_insides(seed: int) -> Spec:
    """Return the Spec of a seed."""
    rng = Random(f"insides {seed}")
    nodes = [_node(rng, f"n{index}") for index in range(rng.choice((1, 1, 2)))]
    workloads = [_workload(rng, f"w{index}") for index in range(rng.choice((2, 2, 3)))]
    running = _running(rng, nodes, workloads) if rng.random() < 0.5 else {}
    policies = [held] if (held := policy_of(workloads)) else []
    return make_spec(nodes, workloads, policies, running=running)


def _node(rng: Random, name: str) -> Node:
    gpus, islands, sockets = rng.choice(SHAPES)
    failed = frozenset([rng.randrange(gpus)]) if rng.random() < 0.2 else frozenset[int]()
    return node(name, gpus, islands=islands, sockets=sockets, failed_gpus=failed, domains={"rack": "r0"})


def _workload(rng: Random, name: str) -> Workload:
    kind = rng.choice(("gang", "job", "job"))
    topology = rng.choice((None, None, _topology(rng)))
    count = rng.choice((1, 1, 2, 2))
    if topology is not None and topology.groups:
        count = 2
    gpus = rng.choice((1, 2, 2, 3))
    asked = request(share=rng.choice((300, 500))) if rng.random() < 0.2 else request(gpus)
    return workload(
        name,
        type=kind,
        roles=[asking(role("", count, asked), topology)],
        priority=rng.choice((0, 0, 9)),
        communicates=kind == "gang",
        topology=topology,
        checkpoint_every=rng.choice((None, 600_000)),
    )


def _topology(rng: Random) -> Topology:
    kind = rng.choice(("within", "prefer", "groups", "across", "both"))
    level = rng.choice(INNER_LEVELS)
    if kind == "groups":
        return Topology(groups=(Group(level, of=rng.choice((1, 2))),))
    if kind == "across":
        return Topology(prefer=rng.choice((None, "socket")), across=True)
    other = next(each for each in INNER_LEVELS if each != level)
    return Topology(
        within=level if kind in ("within", "both") else None,
        prefer={"prefer": level, "both": other}.get(kind),
    )


def asking(one: Role, topology: Topology | None) -> Role:
    """Return a role whose request says what its workload's topology makes of it, as documents' do."""
    if topology is None:
        return one
    named = {topology.within, *(group.within for group in topology.groups)}
    demanded = tuple(level for level in INNER_LEVELS if level in named)
    asked: Request = one.request
    return replace(one, request=replace(asked, across=topology.across and asked.gpus > 1, within=demanded))


def _running(rng: Random, nodes: list[Node], workloads: list[Workload]) -> dict[str, Place]:
    """Return a current state that keeps capacities, and islands as chance has it."""
    free = {n.name: list(n.healthy_gpus()) for n in nodes}
    rows: dict[str, Place] = {}
    for one in workloads:
        for replica in one.replica_ids():
            wanted = one.by_role[replica.role].request.gpu_count
            name = rng.choice(nodes).name
            if rng.random() < 0.6 and len(free[name]) >= wanted:
                gpus = sorted(rng.sample(free[name], wanted))
                rows[str(replica)] = Place(name, tuple(gpus))
                free[name] = [gpu for gpu in free[name] if gpu not in gpus]
    return rows


def tiny_inside_rules(seed: int) -> Spec:
    """Return the Spec of a seed with rules that tell where replicas are inside nodes."""
    rng = Random(f"inside rules {seed}")
    spec = tiny_insides(seed)
    level = rng.choice(INNER_LEVELS)
    rules = Colocate("tenant", level), Spread(level, max_per_domain=1), Separate("workload", level), Exclusive(level)
    only = WorkloadSelector(names=(spec.workloads[0].id,)) if rng.random() < 0.5 else WorkloadSelector()
    more = policy("inside", rng.choice(rules), workloads=only, enforcement=rng.choice(("hard", "hard", 2)))
    return replace(spec, policies=(*spec.policies, more))
