"""What a hard rule certainly demands, in words that can be compared before any search.

A claim is arithmetic on the documents: it holds of every plan that keeps the rule, whatever else is true. Rules may
claim less than they demand; what they claim, they demand.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from dovetail.spec import Workload


@dataclass(frozen=True, slots=True)
class Cap:
    """Together, the admitted replicas of some workloads request at most `limit` of a resource.

    Parameters
    ----------
    subject : the subject of the rule that tells the violation, of which today may excuse some (S4.5).
    """

    subject: str
    workloads: tuple[Workload, ...]
    resource: str
    limit: int


@dataclass(frozen=True, slots=True)
class Crowd:
    """One domain of a level holds at most so many replicas of any one matched workload, on the matched nodes."""

    level: str
    most: int


@dataclass(frozen=True, slots=True)
class Apart:
    """Replicas of workloads of different sides never share a domain of a level, on the matched nodes.

    Workloads without a side may share with any.
    """

    level: str
    sides: Mapping[str, Hashable]


@dataclass(frozen=True, slots=True)
class Together:
    """All replicas of the workloads of one group are in one domain of a level."""

    level: str
    groups: tuple[tuple[Workload, ...], ...]


@dataclass(frozen=True, slots=True)
class Short:
    """More is to be held free than there would be if nothing ran: `wanted` and `there`, in a `unit` in the plural."""

    wanted: int
    there: int
    unit: str


@dataclass(frozen=True, slots=True)
class Claims:
    """All that a rule claims; nodes that it closes it tells by `closed_nodes`.

    Parameters
    ----------
    admitted : workloads of which every replica must be admitted.
    stays : workloads of which no running replica may move.
    moves : how many of the matched running replicas may move in all, None where nothing is said of that.
    places, domains : whole GPUs that are held free, in places of their own, and in whole domains at least.
    short : what is to be held free and never can be, None where it can.
    barred : workloads of which no replica may ever be admitted, wherever it would be.
    """

    admitted: tuple[Workload, ...] = ()
    caps: tuple[Cap, ...] = field(default=())
    crowd: Crowd | None = None
    apart: Apart | None = None
    together: tuple[Together, ...] = ()
    stays: tuple[Workload, ...] = ()
    moves: int | None = None
    places: int = 0
    domains: int = 0
    short: Short | None = None
    barred: tuple[Workload, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anything is claimed."""
        return self != Claims()
