"""The nodes of a synthetic fleet: three types in four zones, with residual kinds, counted so that N GPUs come out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random

ZONES = ("za", "zb", "zc", "zd")
MILLI = 1000


@dataclass(frozen=True, slots=True)
class Kind:
    """Alike nodes: `weight` is their part of all GPUs, in ten-thousandths; CPU in cores, memory in GiB."""

    name: str
    accelerator: str
    weight: int
    gpus: int
    cpu: int
    memory: int
    price: int  # millionths of the currency per node and hour
    fraction: bool = False
    may_fail: bool = False  # whether single GPUs of these nodes are down


# H100 hosts train and serve large models, A100 hosts are the older generation, a part of them shared; L40S hosts
# serve. Residual kinds: hosts with less CPU and memory, half boards, boards that lost a GPU or two to the spare pool.
KINDS = (
    Kind("h100", "H100-80GB", 2600, 8, 192, 2048, 24_500_000, may_fail=True),
    Kind("h100-lean", "H100-80GB", 240, 8, 96, 1024, 22_900_000),
    Kind("h100-half", "H100-80GB", 160, 4, 192, 1024, 13_400_000),
    Kind("a100", "A100-80GB", 2400, 8, 128, 1024, 12_800_000, may_fail=True),
    Kind("a100-shared", "A100-80GB", 1000, 8, 128, 1024, 13_200_000, fraction=True),
    Kind("a100-lean", "A100-80GB", 400, 8, 64, 512, 11_600_000),
    Kind("a100-six", "A100-80GB", 200, 6, 128, 1024, 10_300_000),
    Kind("l40s", "L40S-48GB", 1800, 4, 96, 512, 4_400_000, fraction=True, may_fail=True),
    Kind("l40s-eight", "L40S-48GB", 750, 8, 128, 1024, 8_100_000, fraction=True),
    Kind("l40s-lean", "L40S-48GB", 450, 4, 48, 256, 3_900_000),
)
WHOLE = sum(kind.weight for kind in KINDS)

# Zones are unequal, and the newest has no H100 yet: what must be spread evenly is held back by the smallest.
ZONE_WEIGHTS = {
    "H100-80GB": (44, 36, 20, 0),
    "A100-80GB": (32, 28, 24, 16),
    "L40S-48GB": (40, 30, 22, 8),
}
ZONE_PRICE = (100, 103, 97, 94)  # per cent
CERTIFIED = ("h100", "zb")  # kind and zone of the nodes that carry the label `certified`
FAILED_SHARE = 40  # one node of so many has a failed GPU


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of one kind in one zone; the first `failed` of them miss their last GPU."""

    kind: Kind
    zone: str
    count: int
    failed: int
    rack: int
    gpus: int

    @property
    def name(self) -> str:
        rest = "" if self.gpus == self.kind.gpus else "-rest"
        return f"{self.kind.name}-{self.zone}{rest}"

    @property
    def healthy(self) -> int:
        """Healthy GPUs of the group."""
        return self.count * self.gpus - self.failed

    @property
    def price(self) -> int:
        """Price of a node in millionths per hour."""
        return self.kind.price * ZONE_PRICE[ZONES.index(self.zone)] // 100 * self.gpus // self.kind.gpus

    @property
    def certified(self) -> bool:
        return (self.kind.name, self.zone) == CERTIFIED


@dataclass(frozen=True, slots=True)
class Hardware:
    """All groups of a fleet."""

    groups: tuple[Group, ...]

    @property
    def installed(self) -> int:
        """GPUs installed, failed ones included."""
        return sum(group.count * group.gpus for group in self.groups)

    @property
    def milli(self) -> int:
        """Healthy milli-GPU: the capacity that a load is a part of."""
        return MILLI * sum(group.healthy for group in self.groups)

    @property
    def cores(self) -> int:
        return sum(group.count * group.kind.cpu for group in self.groups)

    @property
    def nodes(self) -> int:
        return sum(group.count for group in self.groups)


def hardware(gpus: int, seed: int) -> Hardware:
    """Return nodes with exactly `gpus` GPUs; equal arguments give equal nodes."""
    rng = Random(f"hardware {seed}")
    racks = {accelerator: rng.choice((8, 12, 16, 24, 32)) for accelerator in ZONE_WEIGHTS}
    weights = {name: _perturbed(rng, zones) for name, zones in ZONE_WEIGHTS.items()}
    groups, carry = [], Fraction(0)  # GPUs that rounding left over so far
    for kind in KINDS:
        zones = weights[kind.accelerator]
        for zone in rng.sample(range(len(ZONES)), len(ZONES)):
            carry += Fraction(gpus * kind.weight * zones[zone], WHOLE * sum(zones))
            count = int(carry // kind.gpus)
            carry -= count * kind.gpus
            if count:
                groups.append(_group(kind, ZONES[zone], count, racks[kind.accelerator], rng))
    if carry:
        last = next(kind for kind in KINDS if kind.name == "l40s-eight")
        groups.append(Group(last, ZONES[0], 1, 0, racks[last.accelerator], int(carry)))
    return Hardware(tuple(sorted(groups, key=lambda group: group.name)))


def _perturbed(rng: Random, zones: tuple[int, ...]) -> tuple[int, ...]:
    """Return weights of zones that differ a little from seed to seed, in thousandths."""
    return tuple(zone * rng.randint(985, 1015) for zone in zones)


def _group(kind: Kind, zone: str, count: int, rack: int, rng: Random) -> Group:
    failed = (count + rng.randrange(FAILED_SHARE)) // FAILED_SHARE if kind.may_fail else 0
    return Group(kind, zone, count, failed, rack, kind.gpus)
