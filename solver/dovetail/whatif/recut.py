"""The patch `repartition`: GPUs that are cut in another way today (S3.3, S5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor, Log
from dovetail.build.partitions import read_layout
from dovetail.build.selectors import Known, read_node_selector
from dovetail.faults import Refused
from dovetail.spec import Layout, Node, Spec
from dovetail.whatif.base import Patch
from dovetail.whatif.spot import Spot, Unfit


@dataclass(frozen=True, slots=True)
class Repartition(Patch):
    """Cuts all healthy GPUs of the selected nodes into the same instances, before anything else is planned.

    What runs on an instance that the new layout has too goes on; anything else on these GPUs has lost its place.
    """

    value: Mapping[str, Any]
    spot: Spot

    def __str__(self) -> str:
        chosen = ", ".join(_said(key, each) for key, each in self.value["nodes"].items())
        return f"GPUs of {chosen or 'all nodes'} cut into {' + '.join(self.value['instances']) or 'nothing'}"

    def applied(self, spec: Spec) -> Spec:
        """Return the Spec with the new layouts; raise `Unfit` where there is no GPU to cut."""
        layouts, current = self._layouts(spec), spec.current
        if not layouts:
            raise Unfit("DT1817", "no node that is selected has a GPU", "nodes")
        return replace(spec, current=replace(current, gpus={**current.gpus, **layouts}))

    def _layouts(self, spec: Spec) -> Mapping[str, Layout]:
        """Return the new layout of every GPU that is cut, by `node/index`; raise `Refused` with all faults."""
        document = self.spot.document
        assert document is not None, "no option of a command line cuts GPUs"
        log = Log()
        here = Cursor(document, log, self.value, self.spot.path)
        names = {alias: card.name for card in spec.accelerators.values() for alias in (card.name, *card.aliases)}
        models = Models(spec.accelerators, names, frozenset())
        selector = read_node_selector(here["nodes"], Known(spec.cluster, models, spec.by_id))
        chosen = [node for node in spec.cluster.nodes if selector.selects(node) and node.healthy_gpus()]
        cards = sorted({node.accelerator for node in chosen if node.accelerator})
        found = {name: read_layout(here.items("instances"), spec.accelerators[name], {}) for name in cards}
        if log.errors:
            raise Refused(log.errors)
        return {gpu: found[node.accelerator or ""] or () for node in chosen for gpu in _gpus(node)}


def _gpus(node: Node) -> list[str]:
    return [f"{node.name}/{index}" for index in node.healthy_gpus()]


def _said(key: str, value: Any) -> str:
    """Return a part of a selector in words."""
    named = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return f"{key} {', '.join(value)}" if named else key
