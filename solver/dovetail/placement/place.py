"""A replica's place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dovetail.spec import ReplicaId


class Place(NamedTuple):
    """A node and, for a replica with GPUs, the indices of its GPUs on that node, ascending.

    `instance` is the MIG instance that it runs on, `1g.10gb@6` for the profile and its start, empty for none.
    """

    node: str
    gpus: tuple[int, ...] = ()
    instance: str = ""

    @property
    def gpu_names(self) -> tuple[str, ...]:
        """The GPUs as documents name them, `node/index`."""
        return tuple(f"{self.node}/{index}" for index in self.gpus)


Places = Mapping[ReplicaId, Place]
Held = Mapping[str, tuple[Place, ...]]
"""Places that are held free, by policy."""
Recovery = Mapping[str, Mapping[str, Places]]
"""Where lost replicas restart, by policy and failure case."""


def by_workload(places: Places) -> dict[str, dict[ReplicaId, Place]]:
    """Return places by workload id, in their order."""
    found: dict[str, dict[ReplicaId, Place]] = {}
    for replica, place in places.items():
        found.setdefault(replica.workload, {})[replica] = place
    return found
