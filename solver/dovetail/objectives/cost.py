"""The cost tier: the price of what hosts anything (S5.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, TierPart
from dovetail.placement import View
from dovetail.rules import Context
from dovetail.spec import Spec


@dataclass(frozen=True, slots=True)
class Cost:
    """Millionths of money per hour: a node's price where it hosts anything, a GPU's where it is in use."""

    kind: ClassVar[str] = "cost"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = True
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "cost"
    sense: Sense = "min"
    unit: str = "millionths/h"

    def encode(self, part: TierPart) -> Linear:
        """Return the price of the part's nodes and GPUs in use."""
        total = Linear()
        for node in part.free_nodes():
            if node.price:
                total.add(part.used(node.name), node.price)
            if node.gpu_price:
                total.add(part.gpus_used(node.name), node.gpu_price)
        return total

    def measure(self, view: View, context: Context) -> int:
        """Add up the prices of nodes and GPUs in use."""
        nodes = {place.node for place in view.places.values()}
        gpus = {(place.node, index) for place in view.places.values() for index in place.gpus}
        by_name = view.spec.cluster.by_name
        return sum(by_name[name].price for name in nodes) + sum(by_name[name].gpu_price for name, _ in gpus)

    def limit(self, context: Context) -> int:
        """Nothing costs less than nothing."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False
