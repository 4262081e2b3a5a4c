"""What the LP over kinds of nodes has per side of a kind: rows and columns, and what a solution would place there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

NOTHING = 1e-7
"""Of nodes or replicas in an LP solution: what is rounding."""


@dataclass(slots=True)
class Side:
    """The rows and columns of one side of a kind.

    Parameters
    ----------
    counts : column of each shape's count on this side.
    patterns : column per multiset of GPU sizes, as (size, count) pairs.
    loads : per way that a GPU may be shared, the row of each size of its shares; `parts` are those of the GPU, and
        `cuts` the columns per pattern.
    prices : the row of each dimension of the nodes.
    use : the row of what idle GPU on its nodes is good for, None where nobody asks.
    gpus : the row of GPUs taken one at a time, shared ones among them; None where there are none.
    """

    kind: int
    position: int
    counts: dict[int, int] = field(default_factory=dict)
    patterns: dict[tuple[tuple[int, int], ...], int] = field(default_factory=dict)
    loads: list[dict[int, int]] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    cuts: list[dict[tuple[int, ...], int]] = field(default_factory=list)
    prices: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    gpus: int | None = None
    use: int | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What an LP solution would have on one side of a kind, on one plot of its nodes.

    Parameters
    ----------
    members : the nodes of the plot, which other sides may use too.
    bound : the shapes that rules ask for by cell, which may not go to other plots instead.
    nodes, counts : how many nodes, and replicas per shape on them in all.
    prices : what a replica of each shape pays for its part of a node.
    """

    kind: int
    side: int
    members: tuple[int, ...]
    bound: frozenset[int]
    nodes: float
    counts: Mapping[int, float]
    prices: Mapping[int, float]
