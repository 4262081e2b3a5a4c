"""On which hosts the replicas of a service are, in the relaxation of whole fleets (S2.8).

A model that tells modes counts replicas by the profile that they are on, where they serve more on some than on
others, and each takes what its own instance does. Elsewhere a replica takes what the smallest instance takes that may
hold it, and serves as on the one that suits the tiers best. A profile that another one could always stand in for, at
no smaller rate, is counted as that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.linear import Linear, Model
from dovetail.problem import Problem
from dovetail.proof.kinds import Kind
from dovetail.spec import Node, Workload
from dovetail.spec.slo import host_of

ByMode = Mapping[int, Mapping[str, int]]
"""By shape, the variables that count its replicas by how they are on a GPU: `""` outside MIG, else a profile."""


def served_apart(problem: Problem, shape: int, node: Node) -> tuple[str, ...]:
    """Return how a shape may be on a GPU of a node, where what a replica serves depends on it; else nothing."""
    form = problem.shapes[shape]
    slo = form.workload.slo
    if slo is None or not slo.rates or not form.request.partial:
        return ()
    modes = problem.modes(shape, node)
    rates = {slo.rates.get(host_of(node.accelerator, mode), 0) for mode in modes}
    return modes if len(rates) > 1 else ()


def hosts_of(
    problem: Problem,
    model: Model,
    counts: Iterable[tuple[Kind, Mapping[int, int], ByMode]],
    workload: Workload,
) -> Mapping[str, Linear]:
    """Return how many replicas of a workload are on each host; variables cut up what may be in several modes.

    Parameters
    ----------
    counts : the kinds of nodes, each with the variable of each shape's count and those by mode.
    """
    found: dict[tuple[str | None, tuple[str, ...]], Linear] = {}
    for kind, own, by_mode in counts:
        for shape in problem.shapes_of_workload.get(workload.id, ()):
            known = by_mode.get(shape, {})
            for mode, variable in known.items():
                found.setdefault((kind.node.accelerator, (mode,)), Linear()).add_term(variable)
            if shape in own and not known:
                modes = problem.modes(shape, kind.node) if problem.shapes[shape].request.partial else ("",)
                found.setdefault((kind.node.accelerator, modes), Linear()).add_term(own[shape])
    hosts: dict[str, Linear] = {}
    for (accelerator, modes), total in found.items():
        apart = {} if len(modes) == 1 else cut_up(model, total, modes)
        there = {each: Linear.of(variable) for each, variable in apart.items()} or dict.fromkeys(modes, total)
        for mode, count in there.items():
            hosts.setdefault(host_of(accelerator, mode), Linear()).add(count)
    return hosts


def cut_up(model: Model, total: Linear, modes: Iterable[str]) -> dict[str, int]:
    """Return variables for how much of a count is in each of several modes, which add up to it."""
    most = model.range_of(total)[1]
    found = {mode: model.integer(0, most) for mode in modes}
    model.require(total.minus(Linear(dict.fromkeys(found.values(), 1))), lower=0, upper=0)
    return found
