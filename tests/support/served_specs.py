"""Services that ask for rates, on MIG instances of A100s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

from tests.support.mig_specs import card
from tests.support.specs import make_spec, node, workload

from dovetail.engine.start import start
from dovetail.model.score import view_of
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Current, PresentReplica, Request, Role, Share, Spec, Workload
from dovetail.spec.slo import Slo, host_of

CARD = "A100-80GB"
GIB = 1024


def service(
    name: str, rate: int, table: Mapping[str, int], *, priority: int = 500, cpu: int = 1, value: int = 100
) -> Workload:
    """Return a service that asks for a rate alone, with what a replica sustains by profile, per second."""
    rates = {host_of(CARD, profile): 1000 * each for profile, each in table.items()}
    share = Share(50, 4 * GIB, modes=("mig",), rated=tuple(sorted(rates.items())))
    replicas = -(-rate // min(table.values()))
    asked = Request(cpu=1000 * cpu, memory=GIB, share=share)
    role = Role("", replicas, asked, value, accelerators=(CARD,))
    slo = Slo(1000 * rate, dict(sorted(rates.items())), open=True)
    return Workload(name, "", name, "service", (role,), min_replicas=1, priority=priority, slo=slo)


def served(nodes: int, gpus: int, work: list[Workload], *, cpu: int = 128) -> Spec:
    """Return a Spec of nodes whose GPUs are cut as a plan likes."""
    hosts = [node(f"n{i:02}", gpus, cpu=1000 * cpu, memory=1000 * GIB, accelerator=CARD) for i in range(nodes)]
    spec = make_spec(hosts, work)
    return replace(spec, accelerators={CARD: card(CARD)}, cluster=replace(spec.cluster, reconfiguration="gpu"))


def many(seed: int, nodes: int, load: float) -> Spec:
    """Return a fleet of nodes of eight GPUs whose services and jobs ask for a part of them, or more."""
    draw, work, left = Random(f"served {seed}"), list[Workload](), 8 * nodes * load
    while left > 0:
        amount, base = draw.uniform(0.3, 4), draw.randint(20, 200)
        table = {"1g.10gb": base, "2g.20gb": int(2.2 * base), "3g.40gb": int(3.2 * base)}
        given = dict(list(table.items())[draw.choice((0, 0, 1)) :])
        priority = draw.choice((900, 500))
        cpu = draw.choice((1, 2, 3))
        work.append(service(f"s{len(work):03}", int(7 * amount * base), given, priority=priority, cpu=cpu))
        left -= amount
        if draw.random() < 0.3:
            size, count = draw.choice((1, 2, 4)), draw.randint(1, 3)
            work.append(workload(f"j{len(work):03}", count, gpus=size, cpu=8000 * size, priority=500))
            left -= size * count
    return served(nodes, 8, work)


def rated(seed: int) -> Spec:
    """Return services and jobs that ask for more than two nodes have, at times a day after they were planned."""
    spec = many(seed, 2, 1.3)
    return spec if seed % 2 else a_day_later(spec, seed)


def a_day_later(spec: Spec, seed: int) -> Spec:
    """Return a Spec whose services run as planned in seconds, and ask for other rates."""
    draw, problem = Random(f"later {seed}"), compile_problem(context_of(spec))
    there = view_of(problem, start(problem, None, Stop())[0]).places
    runs = tuple(PresentReplica(each, at.node, at.gpus, at.instance) for each, at in sorted(there.items()))
    return replace(spec, workloads=tuple(_changed(spec, draw)), current=Current(runs, {}))


def _changed(spec: Spec, draw: Random) -> Iterator[Workload]:
    for work in spec.workloads:
        slo = work.slo
        yield work if slo is None else replace(work, slo=replace(slo, rate=int(slo.rate * draw.uniform(0.7, 1.3))))
