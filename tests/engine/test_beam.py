"""Items of whole GPUs, added one by one: what a wide beam finds is the best there is, and legal with any width."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from dovetail.engine.contents.beam import Beam
from dovetail.engine.contents.gpu_contents import Contents, Ints

GPUS, ROOM = 4, np.array([40, 60])


def starts(rng: Random, items: int) -> list[Contents]:
    """Return contents of none and of one GPU, each of the latter with one of the last item."""
    none, one = np.zeros((1, items), dtype=np.int64), np.zeros((1, items), dtype=np.int64)
    one[0, -1] = 1
    host = np.array([[rng.randint(1, 9), rng.randint(1, 9)]])
    empty = Contents(np.zeros(1), np.zeros((1, 2), dtype=np.int64), none, np.zeros((1, 0), dtype=np.int64))
    return [empty, Contents(np.array([rng.uniform(1, 5)]), host, one, np.ones((1, 1), dtype=np.int64))]


def drawn(rng: Random) -> list[tuple[int, int, float, Ints]]:
    """Return items: GPUs, copies, what one earns, and what it takes of the host."""
    return [
        (
            rng.choice((1, 1, 2, 3)),
            rng.randint(1, 3),
            rng.uniform(1, 9),
            np.array([rng.randint(1, 25), rng.randint(1, 25)]),
        )
        for _ in range(5)
    ]


def hosts(items: list[tuple[int, int, float, Ints]], begin: list[Contents]) -> Ints:
    return np.stack([*(host for *_, host in items), begin[1].host[0]])


@pytest.mark.parametrize("seed", range(20))
def test_a_wide_beam_finds_the_best(seed: int) -> None:
    rng = Random(seed)
    items = drawn(rng)
    begin = starts(rng, len(items) + 1)
    beam = Beam(begin, ROOM, GPUS, 400)
    for number, (gpus, most, gain, host) in enumerate(items):
        beam.add(number, gpus, most, gain, host)
    best = -np.inf
    for shared, *counts in product(range(2), *(range(most + 1) for _, most, _, _ in items)):
        gpus = shared + sum(n * size for n, (size, *_) in zip(counts, items, strict=True))
        taken = shared * begin[1].host[0] + sum(n * host for n, (*_, host) in zip(counts, items, strict=True))
        if gpus <= GPUS and (taken <= ROOM).all():
            worth = sum(n * gain for n, (_, _, gain, _) in zip(counts, items, strict=True))
            best = max(best, worth + shared * float(begin[1].value[0]))
    assert beam.contents(10, hosts(items, begin)).value[0] == pytest.approx(best)


@pytest.mark.parametrize("width", [2, 16, 64])
def test_contents_are_told_as_they_are(width: int) -> None:
    for seed in range(10):
        rng = Random(seed)
        items = drawn(rng)
        begin = starts(rng, len(items) + 1)
        beam = Beam(begin, ROOM, GPUS, width)
        for number, (gpus, most, gain, host) in enumerate(items):
            beam.add(number, gpus, most, gain, host)
        each = hosts(items, begin)
        found = beam.contents(50, each)
        limits = np.array([*(most for _, most, _, _ in items), 1])
        sizes = np.array([*(gpus for gpus, *_ in items), 0])
        gains = np.array([*(gain for _, _, gain, _ in items), begin[1].value[0]])
        assert (found.counts <= limits).all()
        assert (found.host == found.counts @ each).all()
        assert (found.host <= ROOM).all()
        assert found.value == pytest.approx(found.counts @ gains)
        assert ((found.gpus == -1).sum(axis=1) == found.counts @ sizes).all()
        assert ((found.gpus == 1).sum(axis=1) == found.counts[:, -1]).all()
