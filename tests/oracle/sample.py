"""The fixed slice of tiny random Specs that tests share: each solved by brute force, and by the engine when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from tests.oracle.brute import Optimum, TooLarge, ascending, brute
from tests.support.fleet_cuts import cuts
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.plan import Plan
from dovetail.spec import Spec
from dovetail.verify import lines, verify

SLICE = 340


@dataclass(frozen=True)
class Case:
    """A Spec with its seed, what brute force says of it, and what the engine says."""

    seed: int
    spec: Spec
    optimum: Optimum | None

    @cached_property
    def plan(self) -> Plan:
        """What the engine says."""
        return solve(self.spec)

    def difference(self) -> str | None:
        """Tell how the engine and brute force disagree, None where they agree in every tier."""
        status = self.plan.outcome.status
        if self.optimum is None:
            return None if status == "infeasible" else f"seed {self.seed}: {status}, and there is no plan"
        if status != "optimal":
            return f"seed {self.seed}: {status}, and there is an optimum"
        told = {tier.name: tier.value for tier in self.plan.tiers}
        if list(told.items()) == list(self.optimum.by_name.items()):
            return None
        return f"seed {self.seed}: engine {told}, brute force {self.optimum.by_name}"


def cases(first: int, count: int, made: Callable[[int], Spec] = tiny) -> Iterator[Case]:
    """Yield cases of consecutive seeds; Specs too large for brute force are left out."""
    for seed in range(first, first + count):
        spec = made(seed)
        try:
            optimum = brute(spec)
        except TooLarge:
            continue
        yield Case(seed, spec, optimum)


def problems(found: Iterable[Case]) -> list[str]:
    """Return where the engine and brute force differ, a plan does not verify, or the bound on fleets cuts it off."""
    told = []
    for case in found:
        if (text := case.difference()) is not None:
            told.append(text)
        if case.optimum is not None:
            best = ascending(case.optimum.tiers, case.optimum.values)
            told += [f"seed {case.seed}: {cut}" for cut in cuts(case.spec, best)]
        verification = verify(case.spec, case.plan)
        if not verification.ok:
            told.append(f"seed {case.seed}: {list(lines(verification))}")
    return told


@cache
def shared() -> tuple[Case, ...]:
    """Return the slice."""
    return tuple(cases(0, SLICE))
