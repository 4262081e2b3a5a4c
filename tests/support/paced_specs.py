"""Tiny random Specs whose shares take different parts of different GPUs, made of other tiny Specs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.support.mig_specs import PRODUCTS, card
from tests.support.specs import CARDS

from dovetail.spec import Accelerator, Node, Role, Share, Spec, Workload
from dovetail.spec.workload import MILLI, Pace


def paced(made: Callable[[int], Spec]) -> Callable[[int], Spec]:
    """Return a maker of Specs like those of another one, but for shares that take more of some accelerators."""

    def drawn(seed: int) -> Spec:
        draw, spec = Random(f"paced {seed}"), made(seed)
        cards = {name: card(name) for name in PRODUCTS} if set(spec.accelerators) <= set(PRODUCTS) else CARDS
        fixed = {gpu.rpartition("/")[0] for gpu in spec.current.gpus}
        nodes = tuple(n if n.name in fixed else _node(draw, n, cards) for n in spec.cluster.nodes)
        work = tuple(_work(draw, w, cards) for w in spec.workloads)
        return replace(
            spec,
            cluster=replace(spec.cluster, nodes=nodes),
            accelerators={**spec.accelerators, **cards},
            workloads=work,
        )

    return drawn


def _node(draw: Random, node: Node, cards: dict[str, Accelerator]) -> Node:
    return replace(node, accelerator=draw.choice(sorted(cards))) if node.gpus else node


def _work(draw: Random, work: Workload, cards: dict[str, Accelerator]) -> Workload:
    if work.slo is not None:  # its table names the accelerators
        return work
    return replace(work, roles=tuple(_role(draw, role, cards) for role in work.roles))


def _role(draw: Random, role: Role, cards: dict[str, Accelerator]) -> Role:
    share = role.request.share
    if share is None:
        return replace(role, accelerators=()) if role.request.gpu_count else role
    names = sorted(draw.sample(sorted(cards), draw.randint(1, len(cards))))
    found = tuple(pace for name in names if (pace := _pace(draw, share, name)).compute > share.compute)
    accepted = tuple(sorted(cards)) if draw.random() < 0.5 else ()
    return replace(role, request=replace(role.request, share=replace(share, elsewhere=found)), accelerators=accepted)


def _pace(draw: Random, share: Share, name: str) -> Pace:
    compute = min(MILLI, share.compute * draw.choice((1000, 1250, 1500, 2000, 3000)) // MILLI)
    peak = max(share.peak, min(MILLI, compute * draw.choice((1, 1, 2))))
    return Pace(name, compute, peak if peak > compute else 0)
