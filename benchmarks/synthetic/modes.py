"""How GPUs of a synthetic fleet may be cut and shared, beyond what every fleet has."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from benchmarks.synthetic.hardware import Kind

SINGLE = frozenset(
    {"a100-lean", "a100-six", "h100-half"}
)  # with `single`: GPUs of a node are cut alike or not at all
PLUGIN = frozenset({"l40s-eight", "l40s-lean"})  # with `modes`: shared by equal parts, by MPS or time-slicing
CLIENTS = 4  # notebooks on a card at the most, with `modes`

Rule = tuple[str, str, str, str, str]  # kind, name, matched workloads, matched nodes, parameters


def offered(kind: Kind, also: Collection[str]) -> Iterator[str]:
    """Yield the lines of a node group that say how its GPUs are cut and shared."""
    if "modes" in also and kind.name in PLUGIN:
        yield "    sharing: {mechanism: devicePlugin}"
    elif kind.fraction:
        yield "    sharing: {mechanism: fraction}"
    if "single" in also and kind.name in SINGLE:
        yield "    migStrategy: single"


def rules(also: Collection[str]) -> Iterator[Rule]:
    """Yield the policies that say who may be on GPUs in which mode: GPUs shared by fractions are in `time-slice`."""
    if "modes" in also:
        yield "sharing", "serving-takes-no-turns", "tenants: [harbor]", "", "modes: [whole, mig, mps]"
        few = f"maxClients: {CLIENTS}"
        yield "sharing", "few-notebooks-on-a-card", "matchLabels: {family: notebook}", "", few
