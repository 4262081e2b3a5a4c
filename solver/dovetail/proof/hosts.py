"""On which hosts the replicas of a service are, in the relaxation of whole fleets (S2.8).

Instances need no room of their own here: a replica takes what the smallest instance takes that may hold it, and
serves as on the one that suits the tiers best. A profile that another one could always stand in for, at no smaller
rate, is counted as that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.linear import Linear, Model
from dovetail.problem import Problem
from dovetail.proof.kinds import Kind
from dovetail.spec import Workload
from dovetail.spec.slo import host_of


def hosts_of(
    problem: Problem, model: Model, kinds: Sequence[Kind], counts_of: Sequence[Mapping[int, int]], workload: Workload
) -> Mapping[str, Linear]:
    """Return how many replicas of a workload are on each host; variables cut up what may be in several modes.

    Parameters
    ----------
    counts_of : per kind of node, the variable of each shape's count.
    """
    found: dict[tuple[str | None, tuple[str, ...]], Linear] = {}
    for kind, counts in zip(kinds, counts_of, strict=True):
        for shape in problem.shapes_of_workload.get(workload.id, ()):
            if shape in counts:
                modes = problem.modes(shape, kind.node) if problem.shapes[shape].request.partial else ("",)
                found.setdefault((kind.node.accelerator, modes), Linear()).add_term(counts[shape])
    hosts: dict[str, Linear] = {}
    for (accelerator, modes), total in found.items():
        for mode, count in _cut_up(model, total, modes).items():
            hosts.setdefault(host_of(accelerator, mode), Linear()).add(count)
    return hosts


def _cut_up(model: Model, total: Linear, modes: tuple[str, ...]) -> Mapping[str, Linear]:
    """Return how much of a count is in each of several modes."""
    if len(modes) == 1:
        return {modes[0]: total}
    most = model.range_of(total)[1]
    found = {mode: Linear.of(model.integer(0, most)) for mode in modes}
    model.require(total.minus(Linear.total(found.values())), lower=0, upper=0)
    return found
