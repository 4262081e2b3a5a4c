"""Which groups go where, where groups may be there in part (S2.5): as many to a domain as its places make up.

The places of a domain tell between how many groups they may be divided (`Spans`). Groups that stay, or must go on,
come first, each where there is room for what it has to keep; others fill up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dovetail.model.spans import Span, Spans
from dovetail.placement import Place, Places, Today
from dovetail.spec import Nest, ReplicaId, Workload

Block = Mapping[str, range]  # consecutive indices per role
Open = Mapping[str, Sequence[Place]]
Key = tuple[int, int]  # of a group: its block, and which of that


class Order(Protocol):
    """What sorts groups; `scarce` tells that there is no room for all of which anybody ran."""

    def __call__(self, part: Block, *, scarce: bool = False) -> list[int]:
        """Return a key: who comes first has the lower one."""


_STEPS = 20_000  # of the search for where groups go that must go on


def cut(block: Block, nest: Nest) -> list[Block]:
    """Return the groups of a block."""
    sizes = nest.group.sizes.items()
    number = min(len(block[role]) // count for role, count in sizes)
    return [{role: block[role][i * count : (i + 1) * count] for role, count in sizes} for i in range(number)]


@dataclass(slots=True)
class Squads:
    """Gives the groups of one kind their domains.

    Parameters
    ----------
    kept : the workload's replicas that stay where they run.
    order : what sorts groups of which something goes on, or was lost, before the others.
    domain : the domain of a level that holds a place.
    """

    workload: Workload
    nest: Nest
    kept: Places
    today: Today
    order: Order
    domain: Callable[[str, Place], str | None]
    present: Places = field(init=False)
    _steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Look once who runs, or ran until its place went."""
        self.present = self.today.present()

    def homes(self, blocks: Sequence[Block], places: Open) -> dict[str, list[Block]]:
        """Return which groups of some blocks go to which domain, to those with open places in their order."""
        spots = [(role, place) for role, own in places.items() for place in own]
        own = (replica for block in blocks for replica in self._members(block) if replica in self.kept)
        spots += [(replica.role, self.kept[replica]) for replica in own]
        divided = Spans(self.workload, spots, self.domain)
        spans = divided.of(self.nest)
        parts = {(b, i): part for b, block in enumerate(blocks) for i, part in enumerate(cut(block, self.nest))}
        found: dict[str, list[Key]] = {path: [] for path in spans}
        for key, part in parts.items():
            home = self._home(part)
            if home in found:
                found[home].append(key)
        inner = [divided.inside(self.nest, each) for each in self.nest.counted_inner]
        rooms = _Rooms(self, spans, inner, parts)
        placed = {key for keys in found.values() for key in keys}
        owed = [key for key, part in parts.items() if key not in placed and self._owed(part)]
        owed.sort(key=lambda key: (-rooms.weight(key), key))
        for enough in (True, False):
            self._steps = _STEPS
            if self._place(owed, found, rooms, enough=enough):
                break
        self._fill(blocks, parts, found, rooms)
        return {path: [parts[key] for key in sorted(keys)] for path, keys in found.items() if keys}

    def _home(self, part: Block) -> str | None:
        """Return the domain where most of a group stays, None where nobody does."""
        own = (self.kept[replica] for replica in self._members(part) if replica in self.kept)
        paths = Counter(self.domain(self.nest.group.within, place) for place in own)
        return max(paths, key=lambda path: (paths[path], path or ""), default=None)

    def _members(self, part: Block) -> Iterator[ReplicaId]:
        return (ReplicaId(self.workload.id, role, i) for role, own in part.items() for i in own)

    def _owed(self, part: Block) -> bool:
        return any(replica in self.today.protected for replica in self._members(part))

    def keeps(self, part: Block) -> bool:
        """Tell whether anybody of a group stays, or must stay admitted."""
        return self._owed(part) or any(replica in self.kept for replica in self._members(part))

    def _place(self, owed: Sequence[Key], found: dict[str, list[Key]], rooms: _Rooms, *, enough: bool) -> bool:
        """Find a domain for each group that must go on, by a search that gives up in the end.

        Parameters
        ----------
        enough : whether as many groups are to be left as the other places ask for.
        """
        if not owed:
            return not enough or rooms.asked(found) <= len(rooms.parts) - sum(map(len, found.values()))
        for path, keys in found.items():
            self._steps -= 1
            if self._steps < 0:
                return False
            if rooms.fits(path, [*keys, owed[0]]):
                keys.append(owed[0])
                if self._place(owed[1:], found, rooms, enough=enough):
                    return True
                keys.pop()
        return False

    def _fill(
        self,
        blocks: Sequence[Block],
        parts: Mapping[Key, Block],
        found: dict[str, list[Key]],
        rooms: _Rooms,
    ) -> None:
        """Add groups where places ask for more, and until each block has its least number of them.

        Where some of them ran, they come first, and to where there is most room, so that most of each comes back.
        """
        taken = Counter(block for keys in found.values() for block, _ in keys)
        used = {key for keys in found.values() for key in keys}
        left = [key for key in parts if key not in used]
        ran = sum(any(replica in self.present for replica in self._members(parts[key])) for key in left)
        scarce = sum(max(0, rooms.spans[path][1] - len(keys)) for path, keys in found.items()) < ran
        left.sort(key=lambda key: (self.order(parts[key], scarce=scarce), key))
        floor = self.nest.least if self.nest.number else self.workload.groups_owed(self.nest)
        paths = sorted(found, key=rooms.inside, reverse=True) if ran else list(found)
        for forced in (True, False):
            for path, keys in ((path, found[path]) for path in paths):
                while left and rooms.fits(path, [*keys, left[0]]):
                    short = [key for key in left if taken[key[0]] < floor]
                    if not (rooms.lacks(path, keys) if forced else short):
                        break
                    key = (short or left)[0]
                    left.remove(key)
                    keys.append(key)
                    taken[key[0]] += 1


@dataclass(slots=True)
class _Rooms:
    """How many groups domains may have, and how many of those inside.

    Parameters
    ----------
    spans : of the groups, by domain.
    inner : of each kind of counted group inside, by the same domains.
    """

    squads: Squads
    spans: Mapping[str, Span]
    inner: Sequence[Mapping[str, Span]]
    parts: Mapping[Key, Block]

    def needs(self, key: Key, inner: Nest) -> int:
        """Return how many groups inside one have to be there."""
        kept = sum(self.squads.keeps(part) for part in cut(self.parts[key], inner))
        return max(inner.least, kept)

    def weight(self, key: Key) -> int:
        """Return how much of a group has to be there."""
        return sum(self.needs(key, inner) for inner in self.squads.nest.counted_inner)

    def fits(self, path: str, keys: Sequence[Key]) -> bool:
        """Tell whether a domain has places for some groups."""
        if len(keys) > self.spans[path][1]:
            return False
        return all(
            sum(self.needs(key, inner) for key in keys) <= spans.get(path, (0, 0))[1]
            for inner, spans in zip(self.squads.nest.counted_inner, self.inner, strict=True)
        )

    def inside(self, path: str) -> int:
        """Return how many groups inside others the places of a domain make up at the most."""
        return sum(spans.get(path, (0, 0))[1] for spans in self.inner)

    def asked(self, found: Mapping[str, Sequence[Key]]) -> int:
        """Return how many more groups the places of domains ask for at the least."""
        return sum(max(0, self.spans[path][0] - len(keys)) for path, keys in found.items())

    def lacks(self, path: str, keys: Sequence[Key]) -> bool:
        """Tell whether the places of a domain are more than some groups take."""
        return len(keys) < self.spans[path][0]
