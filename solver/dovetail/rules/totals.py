"""The account of amounts that have a limit wherever they go, as quotas do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from dovetail.rules.guards import Plain
from dovetail.spec import Node, Role, Workload


@dataclass(slots=True)
class TotalGuard(Plain):
    """Blocks what would take an amount above its limit, wherever it goes.

    `amounts` gives the subjects that one replica counts towards and by how much.
    """

    amounts: Callable[[Workload, Role], Mapping[Hashable, int]]
    limit: Callable[[Hashable], int]
    used: Counter[Hashable] = field(default_factory=Counter)
    _known: dict[tuple[str, str], tuple[tuple[Hashable, int, int], ...]] = field(default_factory=dict)

    def _counted(self, workload: Workload, role: Role) -> tuple[tuple[Hashable, int, int], ...]:
        """Return the subjects that a replica counts towards, each with the amount and the limit."""
        found = self._known.get((workload.id, role.name))
        if found is None:
            amounts = self.amounts(workload, role)
            found = tuple((key, amount, self.limit(key)) for key, amount in amounts.items() if amount)
            self._known[workload.id, role.name] = found
        return found

    def counts(self, workload: Workload, role: Role) -> bool:
        """Tell whether a replica counts towards anything at all."""
        return bool(self._counted(workload, role))

    def above(self) -> int:
        """Return by how much all that is counted is above its limits."""
        return sum(max(0, used - self.limit(key)) for key, used in self.used.items())

    def bars(self, workload: Workload, role: Role) -> bool:
        """Bar what would take any subject above its limit."""
        return any(self.used[key] + amount > limit for key, amount, limit in self._counted(workload, role))

    def room(self, workload: Workload, role: Role) -> int | None:
        """Return how many more replicas all limits leave room for, None for any number."""
        left = [(limit - self.used[key]) // amount for key, amount, limit in self._counted(workload, role)]
        return max(0, min(left)) if left else None

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block every place alike."""
        return self.bars(workload, role)

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count amounts in."""
        for key, amount, _ in self._counted(workload, role):
            self.used[key] += count * amount
