"""What a rule tells of single nodes, and what a plan writes down for it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from dovetail.placement import Place, Places


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """What a rule that binds demands of each single node, whatever the others hold.

    Parameters
    ----------
    apart : per workload id, its side; workloads of different sides never share a node of `nodes`, or one GPU of it
        where `by_gpu` is set. Workloads without a side join any.
    most : per workload id, how many replicas of it one node of `nodes` may hold.
    one_profile : whether all that has GPUs of a node of `nodes` with the strategy `single` is on MIG instances of one
        profile, or none of it.
    all : whether that is all that the rule demands of single nodes.
    """

    apart: Mapping[str, Hashable] = field(default_factory=dict)
    by_gpu: bool = False
    most: Mapping[str, int] = field(default_factory=dict)
    one_profile: bool = False
    all: bool = True

    def __bool__(self) -> bool:
        """Tell whether anything is demanded."""
        return bool(self.apart or self.most or self.one_profile)


@dataclass(frozen=True, slots=True)
class Told:
    """What a plan writes down for a policy beside placements (S4.7).

    Parameters
    ----------
    held : places that are held free.
    untouched : domains that are held free as a whole.
    recovery : per failure case, where lost replicas restart.
    """

    held: tuple[Place, ...] = ()
    untouched: tuple[str, ...] = ()
    recovery: Mapping[str, Places] = field(default_factory=dict)
