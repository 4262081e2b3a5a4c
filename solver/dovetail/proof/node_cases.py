"""How much one node can earn, cases of what it holds told apart: an upper bound in exact integers.

A case says how many replicas of some shapes a node holds at the least, and at the most. Those at the least have their
place: only what fits beside them counts, by what they leave of the host and of GPUs. Whatever else is priced and
packed as in `node`, each case at prices of its own. Shares and instances on GPUs count by what one GPU may earn, by
what they take of all GPUs of a card together, and by how many of these the held ones need at the least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, cmp_to_key
from typing import TYPE_CHECKING, NamedTuple

from dovetail.proof.certificate import Fork, Forks, Multipliers
from dovetail.proof.kinds import CLASSES, capacities, class_of
from dovetail.proof.packed import packed
from dovetail.proof.sides import Card, Side
from dovetail.proof.tree import Unproved
from dovetail.spec.workload import MILLI

if TYPE_CHECKING:
    from dovetail.proof.node import Packing

_NEVER = -(10**99)


class _Item(NamedTuple):
    """Replicas of a shape that share GPUs: what each earns and takes of one, and how many there may be."""

    value: int
    load: int
    room: int


def told_apart(packing: Packing, side: Side, forks: Forks, worth: Mapping[int, int], per_gpu: int) -> int:
    """Return a value that no content of one side earns more than; see `Packing.earnings`.

    Raises
    ------
    Unproved
        If the cases are no whole tree.
    """
    best = 0
    due: list[tuple[Mapping[int, int], Mapping[int, int]]] = [({}, {})]
    for each in forks:
        if not due:
            raise Unproved("cases of what a node holds go on beyond their end")
        held, most = due.pop()
        if isinstance(each, Fork):
            due.append(({**held, each.shape: max(held.get(each.shape, 0), each.most + 1)}, most))
            due.append((held, {**most, each.shape: min(most.get(each.shape, each.most), each.most)}))
        elif (earned := _Case(packing, side, held, most).earns(worth, per_gpu, each)) is not None:
            best = max(best, earned)
    if due:
        raise Unproved("cases of what a node holds end early")
    return best


@dataclass(frozen=True)
class _Case:
    """A node of one side with some replicas that it holds, and no more of some shapes than so many."""

    packing: Packing
    side: Side
    held: Mapping[int, int]
    most: Mapping[int, int]

    def earns(self, worth: Mapping[int, int], per_gpu: int, prices: Multipliers) -> int | None:
        """Return what it earns at the most, None where no node can hold so much."""
        room = self.room
        if room is None:
            return None
        packing, requests = self.packing, self.packing.shapes
        known = packing.known(prices)
        total = packing.paid(known)
        if per_gpu > 0:  # whatever a GPU in use earns, all of them might
            total, per_gpu = total + per_gpu * packing.gpus, 0
        hosts: dict[int, list[int]] = {}
        shares: dict[int, int] = {}
        for s, left in room.items():
            request = requests[s].request
            value = worth[s] - packing.price(s, known) + (0 if request.partial else per_gpu * request.gpus)
            total += value * self.held.get(s, 0)
            if value <= 0 or not left:
                continue
            if request.partial:
                shares[s] = value
            elif request.gpus:
                hosts.setdefault(request.gpus, []).extend([value] * left)
            else:
                total += value * left
        shared = self._shared(shares, per_gpu)
        whole = packed(hosts, self._gpus)
        earned = [more + own for more, own in zip(shared, reversed(whole), strict=True) if more > _NEVER]
        return total + max(earned) if earned else None

    @cached_property
    def room(self) -> Mapping[int, int] | None:
        """How many more replicas of each shape there may be beside what is held; None if that cannot be."""
        asks, rooms = self.packing.asks, self.packing.room
        if not self.held.keys() <= set(self.side.shapes) or self._gpus < 0:
            return None
        left = list(capacities(self.packing.kind).values())
        for s, count in self.held.items():
            left = [most - count * asked for most, asked in zip(left, asks[s], strict=True)]
        if min(left, default=0) < 0:
            return None
        found = {}
        for s in self.side.shapes:
            most = min(rooms[s], self.most.get(s, rooms[s])) - self.held.get(s, 0)
            if most < 0:
                return None
            for have, asked in zip(left, asks[s], strict=True) if most else ():
                if most * asked > have:
                    most = have // asked
            found[s] = most
        return found

    @cached_property
    def _gpus(self) -> int:
        """The GPUs that what is held leaves: those that replicas have for themselves are taken."""
        requests = ((self.packing.shapes[s].request, n) for s, n in self.held.items())
        return self.packing.gpus - sum(n * request.gpus for request, n in requests if not request.partial)

    def _shared(self, values: Mapping[int, int], per_gpu: int) -> Sequence[int]:
        """Return what so many GPUs earn that are shared or cut, what is held on them among it, for each number."""
        found = [0] + [_NEVER] * self._gpus
        for card in self.side.cards:
            earned = list(self._on_cards(card, values, per_gpu))
            found = [
                max(found[gpus - own] + earned[own] for own in range(gpus + 1)) for gpus in range(self._gpus + 1)
            ]
        return found if self.side.cards else [0] * (self._gpus + 1)

    def _on_cards(self, card: Card, values: Mapping[int, int], per_gpu: int) -> Iterator[int]:
        """Yield what so many GPUs that are such a card earn, beside what is held there, for each number of them."""
        here = {s: value for s, value in values.items() if s in card.shapes}
        one = self.packing.best_card(self.side, card, here) if here else 0
        held = [(self._load(card, s), n) for s, n in self.held.items() if n and self._belongs(s, card)]
        taken, least = sum(load * n for load, n in held), _least_cards(held, card.parts)
        rooms = self.room or {}
        items = [_Item(value, self._load(card, s), rooms[s]) for s, value in here.items()]
        items.sort(key=cmp_to_key(_dearer))
        for gpus in range(self._gpus + 1):
            if gpus < least:
                yield _NEVER
            else:
                yield min(one * gpus, _filled(items, gpus * card.parts - taken)) + per_gpu * gpus

    def _belongs(self, shape: int, card: Card) -> bool:
        """Tell whether replicas of a shape can be on no other card of the side."""
        return [other for other in self.side.cards if shape in other.shapes] == [card]

    def _load(self, card: Card, shape: int) -> int:
        """Return the parts of a card that a replica takes at the least, on an instance or not."""
        if card.parts == MILLI:
            return self.packing.least_loads[shape]
        return 0 if shape in self.side.profiles else card.loads.get(shape, 0)


def _dearer(one: _Item, other: _Item) -> int:
    """Compare by what is earned for the space it takes, the most first."""
    return other.value * one.load - one.value * other.load


def _least_cards(held: Sequence[tuple[int, int]], parts: int) -> int:
    """Return how many cards some loads need at the least, in all and by how many of each class one has room for."""
    needs = [-(-sum(load * n for load, n in held) // parts)]
    for k in range(1, CLASSES + 1):
        counted = sum(class_of(k, load, parts) * n for load, n in held)
        needs.append(-(-counted // (k * (k + 1))))
    return max(needs)


def _filled(items: Sequence[_Item], space: int) -> int:
    """Return the most that items earn within some space if parts of them counted, rounded down.

    Parameters
    ----------
    items : those first that earn most for the space they take.
    """
    total = 0
    for value, load, room in items:
        if load * room > space:
            return total + value * space // load
        total, space = total + value * room, space - load * room
    return total
