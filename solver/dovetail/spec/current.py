"""The current state: what runs where today (S5.3, S6.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.spec.cluster import Layout, Setting
from dovetail.spec.workload import ReplicaId


@dataclass(frozen=True, slots=True)
class PresentReplica:
    """A running replica and its place; `gpus` ascending, empty without GPU; `instance` names one of MIG."""

    replica: ReplicaId
    node: str
    gpus: tuple[int, ...] = ()
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Current:
    """What runs today, as observed or as the base plan says, before any judgement of it.

    `elapsed` gives milliseconds of work done so far per workload, where known. `from_outside` tells that no document
    of the project says it (`--base`, `--current`), so that documents alone cannot tell it again (S6.5). `gpus` gives
    the layouts of GPUs in MIG mode, by `node/index`, and `settings` how GPUs are shared by equal parts; `all_gpus`
    tells that there are no others.
    """

    replicas: tuple[PresentReplica, ...] = ()
    elapsed: Mapping[str, int] = field(default_factory=dict)
    from_outside: bool = False
    gpus: Mapping[str, Layout] = field(default_factory=dict)
    all_gpus: bool = False
    settings: Mapping[str, Setting] = field(default_factory=dict)
