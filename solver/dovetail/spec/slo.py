"""What was promised of a service (S2.8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Slo:
    """The rate a service is to serve, and what one replica sustains.

    Parameters
    ----------
    rate : thousandths of a request per second that are asked for.
    rates : per accelerator, thousandths of a request per second that one replica sustains within `p99`.
    p99 : milliseconds that 99 of 100 requests keep, None where nobody says; `rates` hold for it.
    """

    rate: int
    rates: Mapping[str, int] = field(default_factory=dict)
    p99: int | None = None

    def shortfall(self, served: int) -> int:
        """Return the thousandths of the rate that are missing, rounded up."""
        return max(0, -(-1000 * (self.rate - served) // self.rate)) if self.rate else 0
