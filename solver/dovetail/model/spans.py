"""How many groups some places make up, where groups may be there in part (S2.5).

The places of a domain tell between how many groups they may be divided, as each has at least the minimum of those
inside it and at most all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dovetail.spec import Nest, Workload

Span = tuple[int, int]  # fewest and most groups
Spot = TypeVar("Spot")  # where a replica is


@dataclass(frozen=True, slots=True)
class Spans(Generic[Spot]):
    """Divides the places of a workload, one per replica with the name of its role, into groups.

    Parameters
    ----------
    domain : the domain of a level that holds a place.
    """

    workload: Workload
    spots: Sequence[tuple[str, Spot]]
    domain: Callable[[str, Spot], str | None]

    def of(self, nest: Nest) -> dict[str, Span]:
        """Return between how many groups the places of each domain may be divided, in the order of the places."""
        counts: dict[str, Counter[str]] = {}
        for role, spot in self.spots:
            path = self.domain(nest.group.within, spot) if role in nest.group.sizes else None
            if path is not None:
                counts.setdefault(path, Counter())[role] += 1
        counted = {role for each in nest.counted_inner for role in each.group.sizes}
        plain = {role: size for role, size in nest.group.sizes.items() if role not in counted}
        most = min(self.workload.by_role[role].replicas // size for role, size in nest.group.sizes.items())
        found = dict.fromkeys(counts, (0, most))
        for path, own in counts.items() if plain else ():
            exact = min(own[role] // size for role, size in plain.items())
            found[path] = exact, exact
        for each in nest.counted_inner:
            for path, (fewest, greatest) in self.inside(nest, each).items():
                low, high = found[path]
                high = min(high, greatest // each.least) if each.least else high
                found[path] = max(low, -(-fewest // each.number)), high
        return found

    def inside(self, nest: Nest, inner: Nest) -> dict[str, Span]:
        """Return the spans of groups inside, added up by domain of those around."""
        around = {self.domain(inner.group.within, at): self.domain(nest.group.within, at) for _, at in self.spots}
        found: dict[str, Span] = {}
        for path, (low, high) in self.of(inner).items():
            outer = around[path]
            if outer is not None:
                before = found.get(outer, (0, 0))
                found[outer] = before[0] + low, before[1] + high
        return found

    def most(self, nest: Nest) -> int:
        """Return how many groups all places make up at the most."""
        return sum(high for _, high in self.of(nest).values())
