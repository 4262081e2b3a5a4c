"""Who asks for the same changes places: more stay, and every node still holds as much of the same."""

from __future__ import annotations

from collections import Counter
from random import Random

from dovetail.engine.contents.patterns import Pattern, counts_of
from dovetail.engine.generation.exchanging import exchanged
from dovetail.model.state import NO_GPU, Slot

ALIKE = {0: "gpu", 1: "gpu", 2: "gpu", 3: "half", 4: "half"}


def pattern(**where: int) -> Pattern:
    """Return a pattern of counts by shape and, after `_`, the GPU of a share: `s0=2, s3_1=1`."""
    slots = []
    for text, count in where.items():
        shape, _, gpu = text[1:].partition("_")
        slots.append((Slot(int(shape), int(gpu) if gpu else NO_GPU), count))
    return tuple(sorted(slots))


def staying(anew: dict[int, Pattern], running: dict[int, Counter[int]]) -> int:
    return sum((counts_of(held) & running[node]).total() for node, held in anew.items())


def everybody(anew: dict[int, Pattern]) -> Counter[int]:
    return sum((counts_of(held) for held in anew.values()), Counter[int]())


def asked(held: Pattern) -> Counter[tuple[str, int]]:
    """Return how much of what a node is to hold, by GPU."""
    return sum((Counter({(ALIKE[slot.shape], slot.gpu): n}) for slot, n in held), Counter[tuple[str, int]]())


def test_pairs_are_mixed_again_so_that_each_node_keeps_its_own() -> None:
    anew = {0: pattern(s0=2), 1: pattern(s1=2)}
    running = {0: Counter({1: 1}), 1: Counter({1: 1})}
    found = exchanged(anew, running, ALIKE.__getitem__)
    assert sorted(found.values()) == [pattern(s0=1, s1=1)] * 2


def test_who_asks_for_something_else_stays_out_of_it() -> None:
    anew = {0: pattern(s0=1), 1: pattern(s3_0=2)}
    running = {0: Counter({3: 1}), 1: Counter({0: 1})}
    assert exchanged(anew, running, ALIKE.__getitem__) == anew


def test_random_nodes_hold_as_much_and_no_fewer_stay() -> None:
    gained = 0
    for seed in range(200):
        source = Random(seed)
        anew: dict[int, Pattern] = {}
        running: dict[int, Counter[int]] = {}
        for node in range(source.randint(1, 6)):
            held = Counter(source.choice((Slot(s, NO_GPU), Slot(s, 0))) for s in source.choices(range(5), k=4))
            anew[node] = tuple(sorted(held.items()))
            running[node] = Counter(source.choices(range(5), k=source.randint(0, 4)))
        found = exchanged(anew, running, ALIKE.__getitem__)
        assert everybody(found) == everybody(anew)
        assert {node: asked(held) for node, held in found.items()} == {n: asked(held) for n, held in anew.items()}
        assert staying(found, running) >= staying(anew, running)
        gained += staying(found, running) > staying(anew, running)
    assert gained > 50
