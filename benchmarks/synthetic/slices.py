"""MIG services of a synthetic fleet: replicas that ask for a part of a GPU by its profile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from benchmarks.synthetic.hardware import MILLI, Hardware
from benchmarks.synthetic.work import A100, DENSITY, H100, HIGH, MIDDLE

SHARE = 60  # thousandths of the capacity that they ask for at load 1
SEVENTHS = 7
PROFILES = {"1g.10gb": 1, "1g.20gb": 1, "2g.20gb": 2, "3g.40gb": 3, "4g.40gb": 4, "7g.80gb": 7}
WEIGHTS = (8, 2, 5, 5, 3, 1)
CHOICES = ((A100,), (H100,), (H100, A100))
SHAPES = 18
TENANTS = ("harbor", "cirrus")


@dataclass(frozen=True, slots=True)
class Slice:
    """A service of alike replicas on instances of one profile."""

    name: str
    tenant: str
    profile: str
    replicas: int
    band: int
    value: int
    accelerators: tuple[str, ...]
    cpu: int

    @property
    def milli(self) -> int:
        """What the service asks for in all, a compute slice as a seventh of a GPU."""
        return self.replicas * PROFILES[self.profile] * MILLI // SEVENTHS


def slices(hardware: Hardware, seed: int, load: int) -> tuple[Slice, ...]:
    """Return services that ask for `SHARE` of the capacity at a load of 100."""
    rng = Random(f"slices {seed}")
    profiles = rng.choices(tuple(PROFILES), WEIGHTS, k=SHAPES)
    each = hardware.milli * SHARE * load // 100_000 // SHAPES
    return tuple(_slice(number, profile, each, rng) for number, profile in enumerate(profiles))


def _slice(number: int, profile: str, milli: int, rng: Random) -> Slice:
    band = (HIGH, MIDDLE)[number % 2]
    low, high = DENSITY[band]
    compute = PROFILES[profile]
    return Slice(
        name=f"slice-{number:02d}",
        tenant=TENANTS[number % len(TENANTS)],
        profile=profile,
        replicas=max(1, milli * SEVENTHS // (MILLI * compute)),
        band=band,
        value=compute * MILLI // SEVENTHS * rng.randint(low, high) // 1000 * 10,
        accelerators=rng.choice(CHOICES),
        cpu=compute * rng.choice((500, 1000, 1500)),
    )


def documents(found: tuple[Slice, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield tenant, name and the lines of `spec` of each service."""
    for one in found:
        yield (
            one.tenant,
            one.name,
            f"  type: service\n  priority: {one.band}\n  replicas: {one.replicas}\n"
            f"  request: {{mig: {one.profile}, cpu: {one.cpu}m, memory: {one.cpu * 4}Mi}}\n"
            f"  accelerators: [{', '.join(one.accelerators)}]\n  value: {one.value}\n",
        )
