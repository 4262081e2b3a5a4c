"""What may be on a node of a kind together: who, and how its GPUs are shared or cut then (S3.5).

Rules that keep workloads apart cut what a kind may hold into sides, and so does what a node is as a whole: the number
of clients that all its GPUs are set to, the one profile that they are cut into. Every legal content of a node lies
within one side.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from dovetail.placement.clients import MODES, equal_parts
from dovetail.problem import Problem, Shape
from dovetail.proof.cutting import profiles_of
from dovetail.spec import Node
from dovetail.spec.workload import MILLI

Apart = Mapping[str, Hashable]
"""By workload id, the side of a rule that it is on; workloads without one join any."""

Known = TypeVar("Known")


@dataclass(frozen=True, slots=True)
class Card:
    """What one GPU may be: who may meet on it, and what each takes of it while it is not cut.

    Parameters
    ----------
    shapes : those that may be on it together, as shares or on instances.
    parts : how many it has; `loads` are those that each takes, of the shapes that may be on it while it is not cut.
    """

    shapes: frozenset[int]
    parts: int
    loads: Mapping[int, int]

    def lies_in(self, other: Card) -> bool:
        """Tell whether whatever may be on this one may be on another."""
        return self.shapes <= other.shapes and all(
            s in other.loads and load * other.parts >= other.loads[s] * self.parts for s, load in self.loads.items()
        )


@dataclass(frozen=True, slots=True)
class Side:
    """Who may share a node, and how its GPUs may be shared or cut then.

    Parameters
    ----------
    shapes : those that may be there, ascending.
    cards : what each of its GPUs may be, none of them within another.
    profiles : of the MIG instances that shapes may be on.
    """

    shapes: tuple[int, ...]
    cards: tuple[Card, ...] = ()
    profiles: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> Hashable:
        """All that it says."""
        cards = tuple((card.shapes, card.parts, tuple(sorted(card.loads.items()))) for card in self.cards)
        return self.shapes, cards, tuple(sorted(self.profiles.items()))

    def only(self, shapes: Collection[int]) -> Side:
        """Return the side with none but some shapes."""
        return self.named({s: [s] for s in self.shapes if s in shapes})

    def named(self, names: Mapping[int, Sequence[int]]) -> Side:
        """Return the side with other shapes in the place of each, and without those in whose place there are none."""
        cards = (Card(frozenset(_all(c.shapes, names)), c.parts, _own(c.loads, names)) for c in self.cards)
        return Side(tuple(sorted(_all(self.shapes, names))), tuple(cards), _own(self.profiles, names))


def _all(shapes: Iterable[int], names: Mapping[int, Sequence[int]]) -> Iterator[int]:
    return (own for s in shapes for own in names.get(s, ()))


def _own(known: Mapping[int, Known], names: Mapping[int, Sequence[int]]) -> dict[int, Known]:
    return {own: value for s, value in known.items() for own in names.get(s, ())}


def joined(problem: Problem, node: Node, shapes: Sequence[Shape]) -> tuple[Side, ...]:
    """Return all shapes as one side: what rules keep apart may meet, and GPUs are shared as each likes best."""
    shares = [shape for shape in shapes if shape.request.partial]
    own = [shape.index for shape in shares]
    card = replace(_loosely(problem, node, shares), shapes=frozenset(own))
    cards = (card,) if shares else ()
    return (Side(tuple(sorted(s.index for s in shapes)), cards, profiles_of(problem, node, own)),)


def sides_of(
    problem: Problem,
    node: Node,
    shapes: Sequence[Shape],
    by_node: Sequence[Apart],
    by_gpu: Sequence[Apart],
    *,
    one_profile: bool,
) -> tuple[Side, ...]:
    """Return the sides of a kind of nodes, of which `node` is one.

    Parameters
    ----------
    by_node, by_gpu : who is kept apart on nodes, and on GPUs.
    one_profile : whether what has GPUs is to be on instances of one profile, or none of it.
    """
    shares = [shape for shape in shapes if shape.request.partial]
    meeting, able = groups_of(shares, by_gpu), profiles_of(problem, node, [s.index for s in shares])
    found: dict[Hashable, Side] = {}
    for group in groups_of(shapes, by_node):
        own = [shape for shape in shapes if shape.index in group]
        for side in _as_a_whole(problem, node, own, meeting, able, one_profile=one_profile):
            found.setdefault(side.key, side)
    return tuple(found.values())


def _as_a_whole(
    problem: Problem,
    node: Node,
    shapes: Sequence[Shape],
    meeting: Sequence[frozenset[int]],
    able: Mapping[int, tuple[str, ...]],
    *,
    one_profile: bool,
) -> Iterator[Side]:
    """Yield what a node may be as a whole, where no rule keeps any of some shapes apart."""
    ways = sharings_of(problem, node, [shape for shape in shapes if shape.request.partial])
    pooled = equal_parts(node) and node.mechanism == "devicePlugin"
    own = {s.index: able[s.index] for s in shapes if s.index in able}
    for here in [[way] for way in ways] if pooled else [ways]:
        whole = not pooled or here[0].parts == 1
        yield _side(shapes, here, {} if one_profile else own, meeting, whole=whole)
    for name in sorted({name for names in own.values() for name in names}) if one_profile else ():
        only = {s: (name,) for s, names in own.items() if name in names}
        yield _side(shapes, [], only, meeting, whole=False)


def _side(
    shapes: Sequence[Shape],
    ways: Sequence[Card],
    profiles: Mapping[int, tuple[str, ...]],
    meeting: Sequence[frozenset[int]],
    *,
    whole: bool,
) -> Side:
    """Return those shapes as a side that there is a way for, `whole` GPUs perhaps among them."""
    shared = {s for way in ways for s in way.loads} | profiles.keys()
    there = {s.index for s in shapes if (s.index in shared if s.request.partial else whole or not s.request.gpus)}
    cards: list[Card] = []
    for way in ways or [Card(frozenset(), MILLI, {})]:
        mine = way.loads.keys() | profiles.keys()
        for group in meeting:
            card = Card(group & mine & there, way.parts, {s: n for s, n in way.loads.items() if s in group})
            if card.shapes and not any(card.lies_in(other) for other in cards):
                cards = [other for other in cards if not other.lies_in(card)] + [card]
    return Side(tuple(sorted(there)), tuple(cards), profiles)


def sharings_of(problem: Problem, node: Node, shares: Sequence[Shape]) -> list[Card]:
    """Return how GPUs of a node that are not cut may be shared by some shapes, none of these ways within another.

    Those of a node that shares by equal parts are set to a mode and a number of clients. Of that number only those
    matter that some share can just be among, and the first way is that nobody shares.
    """
    if not equal_parts(node):
        return [_loosely(problem, node, shares)]
    among = {s.index: _among(problem, s, node) for s in shares}
    ways = [_alike(1, (s for s, most in among.items() if max(most)))]
    for position in range(1, len(MODES)):
        for clients in sorted({most[position] for most in among.values()} - {0, 1}):
            ways.append(_alike(clients, (s for s, most in among.items() if most[position] >= clients)))
    first, *others = ways
    kept = [
        way
        for number, way in enumerate(others)
        if not any(way.lies_in(o) and (n < number or not o.lies_in(way)) for n, o in enumerate(others) if n != number)
    ]
    return [first, *kept]


def _alike(clients: int, shapes: Iterable[int]) -> Card:
    """Return a GPU of which each of so many clients has one part."""
    loads = dict.fromkeys(shapes, 1)
    return Card(frozenset(loads), clients, loads)


def _among(problem: Problem, shape: Shape, node: Node) -> Sequence[int]:
    """Return among how many clients of a GPU a shape may be, in each of `MODES`.

    It is 0 for modes that hard policies keep all of it out of, whatever runs today.
    """
    terms, closed = problem.terms(shape.index, node), problem.closed_modes(shape, node)
    if terms is None:
        return [0] * len(MODES)
    return [0 if mode in closed else most for mode, most in zip(MODES, terms[:3], strict=True)]


def _loosely(problem: Problem, node: Node, shares: Iterable[Shape]) -> Card:
    """Return how shapes share a GPU if each takes the least of it that it may, by thousandths."""
    loads = {s.index: problem.load(s.index, node) for s in shares if "" in problem.modes(s.index, node)}
    return Card(frozenset(loads), MILLI, loads)


def groups_of(shapes: Sequence[Shape], rules: Sequence[Apart]) -> list[frozenset[int]]:
    """Return the largest sets of shapes that rules let be together, in the order of their first shapes.

    A rule that keeps sides apart cuts every set into one per side, each with all that the rule leaves alone.
    """
    found = [frozenset(shape.index for shape in shapes)]
    side_of = {shape.index: [apart.get(shape.workload.id) for apart in rules] for shape in shapes}
    for position in range(len(rules)):
        cut: dict[frozenset[int], None] = {}
        for group in found:
            values = {side_of[s][position] for s in group} - {None}
            loose = frozenset(s for s in group if side_of[s][position] is None)
            for value in values or {None}:
                cut[loose | {s for s in group if side_of[s][position] == value}] = None
        found = list(cut)
    return sorted(found, key=sorted)
