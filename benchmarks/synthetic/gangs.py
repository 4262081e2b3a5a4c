"""Gangs of a synthetic fleet: training jobs of whole nodes that belong together, on ragged racks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.synthetic.hardware import MILLI, Hardware
from benchmarks.synthetic.work import A100, BANDS, DENSITY, H100

SHARE = 150  # thousandths of the capacity that gangs ask for at load 1
BOARD = 8  # GPUs of a replica: a whole node
SIZES = (2, 3, 4, 6, 8, 9, 12, 16, 24, 32, 35, 44, 64, 96, 128)  # nodes; large jobs are seldom powers of two
LARGEST = 16  # a gang takes at most this part of the fleet's nodes
RACK = 6  # nodes up to which a gang may demand one rack
WISHES = ("within: zone, prefer: rack", "prefer: rack", "within: zone")
TENANTS = ("atlas", "boreal")


@dataclass(frozen=True, slots=True)
class Gang:
    """All-or-nothing work of `nodes` replicas that take a node each."""

    name: str
    tenant: str
    nodes: int
    band: int
    value: int
    accelerator: str
    cpu: int
    topology: str

    @property
    def milli(self) -> int:
        """What the gang asks for in all."""
        return MILLI * BOARD * self.nodes


def gangs(hardware: Hardware, seed: int, load: int) -> tuple[Gang, ...]:
    """Return gangs that ask for `SHARE` of the capacity at a load of 100, the same first ones for every load."""
    rng = Random(f"gangs {seed}")
    sizes = [size for size in SIZES if size * LARGEST <= hardware.nodes]
    left = hardware.milli * SHARE * load // 100_000
    found: list[Gang] = []
    while sizes:
        gang = _gang(len(found), rng.choice(sizes), rng)
        if gang.milli > left:
            sizes = [size for size in sizes if size < gang.nodes]
            continue
        found.append(gang)
        left -= gang.milli
    return tuple(found)


def _gang(number: int, nodes: int, rng: Random) -> Gang:
    band = BANDS[number % len(BANDS)]
    low, high = DENSITY[band]
    demand = rng.random() < 0.5
    return Gang(
        name=f"pretrain-{number:03d}",
        tenant=TENANTS[number % len(TENANTS)],
        nodes=nodes,
        band=band,
        value=MILLI * BOARD * rng.randint(low, high) // 1000 * 10,
        accelerator=(H100, A100)[number % 3 == 2],
        cpu=rng.choice((8, 10, 12)) * BOARD,
        topology="within: rack" if demand and nodes <= RACK else rng.choice(WISHES),
    )


def documents(found: Sequence[Gang], elastic: bool) -> Iterator[tuple[str, str, str]]:
    """Yield tenant, name and the lines of `spec` of each gang; elastic ones run from half to five quarters wide."""
    for gang in found:
        width = f"{{min: {gang.nodes // 2}, max: {gang.nodes + -(-gang.nodes // 4)}}}" if elastic else f"{gang.nodes}"
        yield (
            gang.tenant,
            gang.name,
            f"  type: gang\n  priority: {gang.band}\n  replicas: {width}\n"
            f"  request: {{gpus: {BOARD}, cpu: {gang.cpu}, memory: {gang.cpu * 6}Gi}}\n"
            f"  accelerators: [{gang.accelerator}]\n  value: {gang.value}\n"
            f"  topology: {{{gang.topology}}}\n  checkpointEvery: 30m\n",
        )


def ragged(count: int, size: int, rng: Random) -> list[int]:
    """Return racks of a group of nodes, each of half of `size` to `size` nodes."""
    racks: list[int] = []
    while count:
        racks.append(min(count, rng.randint(max(2, size // 2), size)))
        count -= racks[-1]
    return racks
