"""How near the replicas of a workload must, or should, be (S2.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive replicas that share one domain of the level `within`.

    Parameters
    ----------
    of : replicas per group, of a workload with one role; None where `roles` says how many of each.
    roles : replicas of each role per group; empty where `of` is given.
    minimum : fewest groups worth admitting, None for all that the workload's least replicas ask for; of groups inside
        others, the fewest that each group around them has, None for all that go into it.
    """

    within: str
    of: int | None = None
    roles: Mapping[str, int] = field(default_factory=dict)
    minimum: int | None = None

    @property
    def sizes(self) -> Mapping[str, int]:
        """Replicas per group by role name."""
        return self.roles if self.of is None else {"": self.of}

    def numbers(self, replicas: Mapping[str, int]) -> list[int]:
        """Return how many groups the replicas of each role make, by role name, each number once, ascending."""
        sizes = self.sizes
        return sorted({count // sizes[role] for role, count in replicas.items() if role in sizes})


@dataclass(frozen=True, slots=True)
class Nest:
    """A group with those that lie directly inside it.

    Parameters
    ----------
    number : how many of it the group around has when whole, 0 for an outermost group.
    """

    group: Group
    inner: tuple[Nest, ...] = ()
    number: int = 0

    @property
    def least(self) -> int:
        """How many of it the group around has at the least."""
        return self.number if self.group.minimum is None else self.group.minimum

    @property
    def loose(self) -> bool:
        """Whether a group may be there without all of its replicas, as what lies inside has a minimum."""
        return any(each.counted for each in self.inner)

    @property
    def counted(self) -> bool:
        """Whether its groups, inside another one, need not all be there, or not all of each."""
        return self.group.minimum is not None or self.loose

    @property
    def counted_inner(self) -> tuple[Nest, ...]:
        """Those directly inside whose groups are counted, one by one."""
        return tuple(each for each in self.inner if each.counted)

    def fewest(self, role: str) -> int:
        """Return how many replicas of a role a group has at the least."""
        inner = next((each for each in self.counted_inner if role in each.group.sizes), None)
        return self.group.sizes.get(role, 0) if inner is None else inner.least * inner.fewest(role)

    def worthwhile(self, number: int, atomic: bool) -> int | None:
        """Return the fewest of so many outermost groups that are worth admitting, if they say so."""
        return number if self.group.minimum is None and atomic and self.loose else self.group.minimum

    def floor(self, role: str, replicas: int, atomic: bool) -> int | None:
        """Return the fewest of so many replicas of a role that outermost groups say are worth admitting, if any."""
        number = self.worthwhile(replicas // self.group.sizes[role], atomic)
        return None if number is None else number * self.fewest(role)

    def unit(self, role: str) -> int:
        """Return what the replicas of a role in a group come in multiples of."""
        inner = next((each for each in self.counted_inner if role in each.group.sizes), None)
        return self.group.sizes.get(role, 0) if inner is None else inner.unit(role)


def nests_of(groups: Sequence[Group], around: Group | None = None) -> tuple[Nest, ...]:
    """Return groups with what lies inside them; those that share no role stand side by side."""
    if not groups:
        return ()
    first, rest = groups[0], groups[1:]
    inside = [each for each in rest if each.sizes.keys() & first.sizes.keys()]
    beside = [each for each in rest if each not in inside]
    number = 0
    if around is not None:
        number = min(around.sizes[role] // size for role, size in first.sizes.items())
    return (Nest(first, nests_of(inside, first), number), *nests_of(beside, around))


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
    def nests(self) -> tuple[Nest, ...]:
        """The outermost groups, each with those inside it."""
        return nests_of(self.groups)

    @property
    def loose(self) -> bool:
        """Whether any group may be there without all of its replicas."""
        return any(nest.loose for nest in self.nests)

    @property
    def binds(self) -> bool:
        """Tell whether anything is demanded, and not only preferred."""
        return self.within is not None or bool(self.groups)

    @property
    def levels(self) -> frozenset[str]:
        """Levels at which anything is demanded."""
        return frozenset([*([] if self.within is None else [self.within]), *(group.within for group in self.groups)])
