"""What was promised of a service (S2.8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


def host_of(accelerator: str | None, profile: str = "") -> str:
    """Return what tables call a GPU, or a MIG instance of it: `H100-80GB`, `H100-80GB/1g.10gb`."""
    return f"{accelerator or ''}/{profile}" if profile else accelerator or ""


@dataclass(frozen=True, slots=True)
class Slo:
    """The rate a service is to serve, and what one replica sustains.

    Parameters
    ----------
    rate : thousandths of a request per second that are asked for.
    rates : thousandths of a request per second that one replica sustains within `p99`, by host (`host_of`): whole
        GPUs and shares of one that is not cut by accelerator, instances by accelerator and profile. Instances that
        contain a listed one are among them.
    p99 : milliseconds that 99 of 100 requests keep, None where nobody says; `rates` hold for it.
    open : whether it is the rate alone that is asked for, and the number of replicas is left to the planner.
    """

    rate: int
    rates: Mapping[str, int] = field(default_factory=dict)
    p99: int | None = None
    open: bool = False

    def shortfall(self, served: int) -> int:
        """Return the thousandths of the rate that are missing, rounded up."""
        return max(0, -(-1000 * (self.rate - served) // self.rate)) if self.rate else 0

    def worth(self, value: int, served: int) -> int:
        """Return what part of a value is earned by what is served, rounded down."""
        return value * min(self.rate, served) // self.rate if self.rate else value

    @property
    def by_profile(self) -> bool:
        """Tell whether it matters on which instances of a GPU its replicas are."""
        return any("/" in host for host in self.rates)
