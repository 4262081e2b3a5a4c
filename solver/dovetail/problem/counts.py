"""How many counts the exact model of the whole has, told before it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dovetail.problem.problem import Problem


def least_counts(problem: Problem) -> int:
    """Return at the least how many: per node and shape, for shares per GPU; of what is bound only where it runs."""
    total = sum(len({place.shape for place in places} & problem.bound) for places in problem.present.values())
    for nodes, hosted in zip(problem.makes.members, problem.hosted_by_make, strict=True):
        shapes = [shape for shape in hosted if shape not in problem.bound]
        shares = [shape for shape in shapes if problem.shapes[shape].request.partial]
        parts = sum(len(problem.modes(shape, nodes[0])) for shape in shares)
        others = sum(len(problem.blocks(shape, nodes[0])) for shape in shapes if shape not in shares)
        total += len(nodes) * (others + parts * len(nodes[0].healthy_gpus()))
    return total
