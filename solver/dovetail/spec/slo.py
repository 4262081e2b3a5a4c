"""What was promised of a service (S2.8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


def host_of(accelerator: str | None, profile: str = "") -> str:
    """Return what tables call a GPU, or a MIG instance of it: `H100-80GB`, `H100-80GB/1g.10gb`."""
    return f"{accelerator or ''}/{profile}" if profile else accelerator or ""


@dataclass(frozen=True, slots=True)
class ServiceClass:
    """What workloads of a class are promised at the least; shares are thousandths.

    Parameters
    ----------
    weight : what each thousandth that is missing counts for.
    admitted, replicas : the fewest replicas, as a share of all and as a number.
    rate, deadline : the part of a service's rate, and of what the deadline of a batch needs.
    """

    weight: int = 1
    admitted: int = 0
    replicas: int = 0
    rate: int = 1000
    deadline: int = 1000


@dataclass(frozen=True, slots=True)
class Slo:
    """What was promised of a workload: a rate, replicas, or both, and what one replica sustains.

    Parameters
    ----------
    rate : thousandths of what is asked for, 0 where no rate is: of a service requests per second, of a batch GPUs of
        the reference at once, as its work needs them to meet its deadline.
    rates : what one replica sustains of that, by host (`host_of`): whole GPUs and shares of one that is not cut by
        accelerator, instances by accelerator and profile. Instances that contain a listed one are among them.
    p99 : milliseconds that 99 of 100 requests keep, None where nobody says; `rates` hold for it.
    open : whether it is the rate alone that is asked for, and the number of replicas is left to the planner.
    listed : whether replicas run on the hosts of `rates` and nowhere else.
    late : whether the deadline is over, so that nothing meets it.
    service_class : name of its class, empty for none; `floors` are those of the class.
    """

    rate: int = 0
    rates: Mapping[str, int] = field(default_factory=dict)
    p99: int | None = None
    open: bool = False
    listed: bool = True
    late: bool = False
    service_class: str = ""
    floors: ServiceClass = ServiceClass()

    @property
    def owed(self) -> int:
        """What of the rate is promised, rounded up; what is missing is counted in thousandths of that."""
        part = self.floors.rate if self.listed else self.floors.deadline
        return -(-self.rate * (max(part, self.floors.admitted) if self.open else part) // 1000)

    def least(self, replicas: int) -> int:
        """Return how many of some replicas are promised."""
        share = 0 if self.open else -(-replicas * self.floors.admitted // 1000)
        return min(replicas, max(share, self.floors.replicas))

    def shortfall(self, served: int, asked: int | None = None) -> int:
        """Return the thousandths that are missing of the rate that is owed, or another one, rounded up."""
        asked = self.owed if asked is None else asked
        if self.late:
            return 1000
        return max(0, -(-1000 * (asked - served) // asked)) if asked else 0

    def missing(self, served: int, admitted: int, replicas: int) -> int:
        """Return all thousandths that are missing, of the rate and of replicas, weighted."""
        least = self.least(replicas)
        absent = max(0, -(-1000 * (least - admitted) // least)) if least else 0
        return self.floors.weight * (self.shortfall(served) + absent)

    def worth(self, value: int, served: int) -> int:
        """Return what part of a value is earned by what is served, rounded down."""
        return value * min(self.rate, served) // self.rate if self.rate else value

    @property
    def by_profile(self) -> bool:
        """Tell whether it matters on which instances of a GPU its replicas are."""
        return self.listed and any("/" in host for host in self.rates)
