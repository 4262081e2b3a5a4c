"""The checks of who is where, which any placement has to pass, be it that of the plan or another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from dovetail.verify import admission, capacity, fitness, partitions, ranks, rows, sharing, today
from dovetail.verify.case import Case
from dovetail.verify.model import Found


class Check(NamedTuple):
    """A check's name, its code, and the function that yields what breaks it, or what it cannot judge.

    `basic` checks look at single rows and counts; the others sum up what these are worth and take, and run only where
    all basic ones before them hold. Checks `of_today` run only where the state that the plan started from is known.
    """

    name: str
    code: str
    run: Callable[[Case], Iterator[Found]]
    basic: bool = False
    of_today: bool = False

    @property
    def of_places(self) -> bool:
        """Whether it asks if places can be at all: rows (DT31xx), capacity (DT32xx), what nodes take in (DT33xx)."""
        return self.code.startswith(("DT31", "DT32", "DT33"))


PLACED: tuple[Check, ...] = (
    Check("replicas-exist", "DT3101", rows.replicas_exist, basic=True),
    Check("nodes-exist", "DT3102", rows.nodes_exist, basic=True),
    Check("gpu-indices", "DT3103", rows.gpu_indices, basic=True),
    Check("health", "DT3104", rows.health, basic=True),
    Check("gpu-count", "DT3105", rows.gpu_count, basic=True),
    Check("cpu", "DT3201", capacity.cpu),
    Check("memory", "DT3202", capacity.memory),
    Check("resources", "DT3203", capacity.resources),
    Check("whole-gpus", "DT3204", capacity.whole_gpus),
    Check("share-compute", "DT3205", capacity.share_compute),
    Check("share-memory", "DT3206", capacity.share_memory),
    Check("instances", "DT3207", partitions.instances, basic=True),
    Check("instance-tenants", "DT3208", partitions.tenants, basic=True),
    Check("layouts", "DT3209", partitions.layouts, basic=True),
    Check("modes", "DT3210", partitions.modes),
    Check("clients", "DT3211", sharing.clients),
    Check("shared-modes", "DT3212", sharing.settings),
    Check("accelerators", "DT3301", fitness.accelerators),
    Check("mechanism", "DT3302", fitness.mechanism),
    Check("rates", "DT3305", fitness.rates),
    Check("taints", "DT3303", fitness.taints),
    Check("cordons", "DT3304", fitness.cordons),
    Check("inside-nodes", "DT3306", fitness.together),
    Check("atomic", "DT3401", admission.atomic),
    Check("least-replicas", "DT3402", admission.least),
    Check("widths", "DT3404", admission.widths, basic=True),
    Check("groups", "DT3405", admission.groups),
    Check("mix", "DT3403", admission.mix),
    Check("ranks", "DT3406", ranks.ranks),
    Check("protected", "DT3501", today.protected, of_today=True),
    Check("fixed", "DT3502", today.fixed, of_today=True),
    Check("retained", "DT3503", today.retained, of_today=True),
    Check("precedence", "DT3504", today.precedence, of_today=True),
)
"""In the order they are run and told; hard policies come after them."""
