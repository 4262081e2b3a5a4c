"""A replica's place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dovetail.spec import ReplicaId


class Place(NamedTuple):
    """A node and, for a replica with GPUs, the indices of its GPUs on that node, ascending."""

    node: str
    gpus: tuple[int, ...] = ()


Places = Mapping[ReplicaId, Place]
