"""The current state: what runs where today (S5.3, S6.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.spec.workload import ReplicaId


@dataclass(frozen=True, slots=True)
class PresentReplica:
    """A running replica and its place; `gpus` ascending, empty for a replica without GPU."""

    replica: ReplicaId
    node: str
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Current:
    """What runs today, as observed or as the base plan says, before any judgement of it.

    `elapsed` gives milliseconds of work done so far per workload, where known. `from_outside` tells that no document
    of the project says it (`--base`, `--current`), so that documents alone cannot tell it again (S6.5).
    """

    replicas: tuple[PresentReplica, ...] = ()
    elapsed: Mapping[str, int] = field(default_factory=dict)
    from_outside: bool = False
