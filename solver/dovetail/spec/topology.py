"""How near the replicas of a workload must, or should, be (S2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive replicas that share one domain of the level `within`.

    Parameters
    ----------
    of : replicas per group, of a workload with one role; None where `roles` says how many of each.
    roles : replicas of each role per group; empty where `of` is given.
    minimum : fewest groups worth admitting, None for all that the workload's least replicas ask for.
    """

    within: str
    of: int | None = None
    roles: Mapping[str, int] = field(default_factory=dict)
    minimum: int | None = None

    @property
    def sizes(self) -> Mapping[str, int]:
        """Replicas per group by role name."""
        return self.roles if self.of is None else {"": self.of}


@dataclass(frozen=True, slots=True)
class Topology:
    """Where the replicas of a workload belong together.

    Parameters
    ----------
    within : level of which one domain holds all admitted replicas, None for any place.
    prefer : level of which one domain should hold them, as the tier `preferred[LEVEL]` counts.
    groups : groups of replicas, outermost first.
    across : whether the GPUs of a replica need not share an island.
    """

    within: str | None = None
    prefer: str | None = None
    groups: tuple[Group, ...] = ()
    across: bool = False

    @property
    def binds(self) -> bool:
        """Tell whether anything is demanded, and not only preferred."""
        return self.within is not None or bool(self.groups)

    @property
    def levels(self) -> frozenset[str]:
        """Levels at which anything is demanded."""
        return frozenset([*([] if self.within is None else [self.within]), *(group.within for group in self.groups)])
