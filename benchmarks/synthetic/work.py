"""The work of a synthetic fleet: families of shapes, and how many replicas of each a load is."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from random import Random

from benchmarks.synthetic.hardware import KINDS, MILLI, Hardware

HIGH, MIDDLE, LOW = 900, 500, 100
BANDS = (HIGH, MIDDLE, LOW)
DENSITY = {HIGH: (200, 400), MIDDLE: (100, 250), LOW: (40, 120)}  # value of a milli-GPU, in hundredths
MOST = {HIGH: 32_000, MIDDLE: 20_000, LOW: 16_000}  # most value of a replica; the least is a hundredth of it
CPU_ONLY_SHARE = 60  # thousandths of all cores, at load 1

MEDIUM, LIGHT, HEAVY = (8, 10, 12, 14, 16), (3, 4, 6, 8), (32, 40, 48)  # cores per GPU
SIZES: Mapping[int, int] = {1: 56, 2: 28, 4: 11, 8: 5}  # shapes of a size out of a hundred
POPULAR: Mapping[int, int] = {1: 3, 2: 3, 4: 8, 8: 20}  # how much of a family's GPUs a shape of that size gets
H100, A100, L40S = "H100-80GB", "A100-80GB", "L40S-48GB"
ANY: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """Shapes of one tenant that have something in common.

    `share` is the part of the capacity asked for at load 1, in thousandths. `sizes` gives the size of each shape, in
    GPUs (thousandths of one where `fractional`), instead of a mixture; `cpu` and `memory` are cores and GiB per GPU.
    `single` makes each shape one service.
    """

    name: str
    tenant: str
    share: int
    shapes: int
    cpu: Sequence[int]
    memory: Sequence[int]
    accelerators: Sequence[tuple[str, ...]]
    bands: Sequence[int]
    sizes: Sequence[int] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    fractional: bool = False
    single: bool = False


EVEN, FRONT, APART, CARD = {"spread": "even"}, {"front": "yes"}, {"apart": "node"}, {"apart": "gpu"}
ROOMY = (32, 48, 64, 96)
FAMILIES = (
    Family("train", "atlas", 150, 60, MEDIUM, (64, 96, 128), ((H100,), (H100, A100), ANY), (HIGH, MIDDLE)),
    Family("tune", "boreal", 130, 50, MEDIUM, (64, 96, 128), ((A100,), (H100, A100), ANY), (HIGH, MIDDLE, LOW)),
    Family(
        "rank", "cirrus", 95, 6, (6, 8, 10), (32, 48, 64), ((L40S,),), (HIGH,), (1, 1, 1, 1, 2, 2), EVEN, single=True
    ),
    Family(
        "chat", "cirrus", 60, 6, (8, 10, 12), (96, 128), ((H100,),), (HIGH,), (1, 1, 1, 1, 1, 1), FRONT, single=True
    ),
    Family("vision", "delta", 50, 24, HEAVY, (48, 64), ((A100, L40S), ANY), (HIGH, MIDDLE), (1, 1, 2)),
    Family("risk", "ember", 108, 30, MEDIUM, (64, 96), (ANY,), (HIGH, MIDDLE), labels={"certified": "required"}),
    Family("media", "fjord", 80, 32, (18, 20, 24), ROOMY, (ANY, (A100, L40S)), (MIDDLE,), labels=APART),
    Family("genome", "gale", 80, 32, LIGHT, (128, 160, 192), (ANY, (H100, A100)), (HIGH, MIDDLE), labels=APART),
    Family("lab", "jade", 62, 30, MEDIUM, ROOMY, (ANY,), (LOW,), labels=APART),
    Family("batch", "iris", 75, 30, LIGHT, ROOMY, (ANY,), (MIDDLE, LOW)),
    Family("serve", "harbor", 50, 40, MEDIUM, ROOMY, (ANY, (L40S,)), (HIGH, MIDDLE), labels=CARD, fractional=True),
    Family("notebook", "iris", 35, 35, MEDIUM, ROOMY, (ANY,), (MIDDLE, LOW), labels=CARD, fractional=True),
    Family(
        "embed", "cirrus", 15, 2, MEDIUM, ROOMY, ((L40S,),), (HIGH,), (250, 400), EVEN, fractional=True, single=True
    ),
    Family("sandbox", "boreal", 10, 23, MEDIUM, ROOMY, (ANY,), (LOW,), labels=CARD, fractional=True),
)
CPU_ONLY = (("atlas", "loader"), ("jade", "crawler"), ("harbor", "gateway"), ("iris", "etl"))
CPU_ONLY_SHAPES = 24
_TRIES = 10_000  # for a shape of one size, until there cannot be a new one
FRACTIONS = (50, 80, 100, 120, 150, 200, 250, 300, 330, 400, 450, 500, 600, 650, 700, 750, 800)
TENANTS = tuple(sorted({family.tenant for family in FAMILIES}))


@dataclass(frozen=True, slots=True)
class Shape:
    """What alike replicas ask for: thousandths of a GPU, milli-cores, MiB; and what each is worth."""

    family: str
    tenant: str
    milli: int
    cpu: int
    memory: int
    accelerators: tuple[str, ...]
    band: int
    value: int
    labels: Mapping[str, str]
    single: bool
    target: int  # milli-GPU in all at load 1; milli-cores for work without GPU

    @property
    def size(self) -> int:
        """What a replica counts for in its target."""
        return self.milli or self.cpu

    @property
    def key(self) -> tuple[object, ...]:
        """What tells shapes apart."""
        rest = (self.accelerators, self.band, tuple(sorted(self.labels.items())))
        return self.tenant, self.milli, self.cpu, self.memory, rest


def shapes(hardware: Hardware, seed: int) -> tuple[Shape, ...]:
    """Return 300 shapes of whole GPUs, 100 of parts of one and 24 without, the same for every load."""
    rng = Random(f"work {seed}")
    found: list[Shape] = []
    seen: set[tuple[object, ...]] = set()
    for family in FAMILIES:
        for number, (milli, goal) in enumerate(_goals(family, hardware.milli, rng)):
            shape = _new(family, number, milli, goal, rng, seen)
            seen.add(shape.key)
            found.append(shape)
    return (*found, *_cpu_only(hardware, rng))


def _new(
    family: Family, number: int, milli: int, goal: int, rng: Random, seen: Collection[tuple[object, ...]]
) -> Shape:
    """Return a shape that some node holds and none is alike; another part of a GPU where that one has no more."""
    for tries in count(1):
        shape = _shape(family, number, milli, goal, rng)
        if _fits(shape) and (family.single or shape.key not in seen):
            break
        if family.fractional and tries % _TRIES == 0:
            milli = rng.choice(FRACTIONS)
    return shape


def _goals(family: Family, capacity: int, rng: Random) -> list[tuple[int, int]]:
    """Return the size of each shape with its milli-GPU at load 1."""
    if family.fractional:
        sizes = list(family.sizes) or [rng.choice(FRACTIONS) for _ in range(family.shapes)]
        weights = [1 if family.single else size * rng.choice((1, 2, 4)) for size in sizes]
    else:
        menu = family.sizes or [size for size, many in SIZES.items() for _ in range(many)]
        sizes = [
            menu[(100 * n // family.shapes if not family.sizes else n) % len(menu)] for n in range(family.shapes)
        ]
        weights = [1 if family.single else POPULAR[size] * rng.choice((1, 2, 4)) for size in sizes]
        sizes = [MILLI * size for size in sizes]
    total = capacity * family.share // 1000
    return [(size, total * weight // sum(weights)) for size, weight in zip(sizes, weights, strict=True)]


def _shape(family: Family, number: int, milli: int, goal: int, rng: Random) -> Shape:
    band = family.bands[number % len(family.bands)]
    cpu = max(500, milli * rng.choice(family.cpu) // 500 * 500)
    memory = max(1024, milli * rng.choice(family.memory) // MILLI * 1024)
    if not family.fractional:
        cpu += rng.choice((0, 500, 1000, 1500, 2000))
    low, high = DENSITY[band]
    return Shape(
        family.name,
        family.tenant,
        milli,
        cpu,
        memory,
        rng.choice(family.accelerators),
        band,
        _value(milli * rng.randint(low, high) // 100, band),
        family.labels,
        family.single,
        max(goal, 1),
    )


def _fits(shape: Shape) -> bool:
    """Tell whether some kind of node holds a replica."""
    return any(
        kind.gpus * MILLI >= shape.milli
        and kind.cpu * MILLI >= shape.cpu
        and kind.memory * 1024 >= shape.memory
        and (shape.milli >= MILLI or kind.fraction)
        and kind.accelerator in (shape.accelerators or (kind.accelerator,))
        for kind in KINDS
    )


def _value(wanted: int, band: int) -> int:
    return min(MOST[band], max(MOST[band] // 100, wanted // 10 * 10))


def _cpu_only(hardware: Hardware, rng: Random) -> tuple[Shape, ...]:
    sizes = [1 + number * 3 // 5 + rng.randrange(3) for number in range(CPU_ONLY_SHAPES)]
    each = hardware.cores * CPU_ONLY_SHARE // sum(sizes)  # milli-cores of a shape per core of a replica
    found = []
    for number, cores in enumerate(sizes):
        tenant, name = CPU_ONLY[number % len(CPU_ONLY)]
        memory = cores * rng.choice((2, 3, 4, 6)) * 1024
        band, cpu = BANDS[number % 3], MILLI * cores
        found.append(Shape(name, tenant, 0, cpu, memory, ANY, band, cpu, {}, False, max(1, each * cores)))
    return tuple(found)


def replicas(found: Sequence[Shape], percent: int) -> list[int]:
    """Return how many replicas of each shape make a load, in per cent of the capacity.

    Each shape has at least one where its family has room for that. What rounding leaves over in a family the next one
    gets, so that the sum meets the load to the smallest replica.
    """
    counts, left = [0] * len(found), 0
    for family, members in groupby(
        range(len(found)), lambda index: found[index].family if found[index].milli else ""
    ):
        wanted = {index: found[index].target * percent // 100 for index in members}
        for index, amount in wanted.items():
            counts[index] = max(1, (amount + found[index].size // 2) // found[index].size)
        left = _even_out(found, counts, wanted, left if family else 0)
    return counts


def _even_out(found: Sequence[Shape], counts: list[int], wanted: Mapping[int, int], more: int) -> int:
    """Take replicas off where most of what is wanted is, a shape's last one last, then add where they lack.

    `more` is what the sum is to be above what is wanted; returned is what is then still missing.
    """

    def fullest(index: int) -> tuple[bool, float, int]:
        return counts[index] == 1, -counts[index] * found[index].size / max(1, wanted[index]), index

    def emptiest(index: int) -> tuple[float, int]:
        return counts[index] * found[index].size / max(1, wanted[index]), index

    left = more + sum(wanted.values()) - sum(counts[index] * found[index].size for index in wanted)
    most = [fullest(index) for index in wanted]
    heapq.heapify(most)
    while left < 0 and most:
        index = heapq.heappop(most)[-1]
        counts[index] -= 1
        left += found[index].size
        if counts[index]:
            heapq.heappush(most, fullest(index))
    least = [emptiest(index) for index in wanted if found[index].size <= left]
    heapq.heapify(least)
    while least:
        index = heapq.heappop(least)[-1]
        if found[index].size <= left:
            counts[index] += 1
            left -= found[index].size
            heapq.heappush(least, emptiest(index))
    return left
