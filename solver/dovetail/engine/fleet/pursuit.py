"""Which bound of a large fleet to look for next, while plans still get better.

Multipliers prove a bound whatever earlier tiers reach in the end, and about as close a one as at the values they were
found for. So they may be looked for before the last plan is there, with values that it is expected to have.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from dovetail.engine.fleet.cases import COUNTS, Cases, has_numbers
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.objectives import Tier, limit_given
from dovetail.objectives.admitted import Admitted
from dovetail.plan import relative_gap
from dovetail.problem.steps import EXACT_VARIABLES
from dovetail.proof.fleet import FEW_NODES
from dovetail.proof.since_today import counts_since_today

WIDE: Final = 1e-3
"""A gap, relative, that is worth a larger LP."""

_NARROW = 1e-4  # a gap, relative, that is worth processors which nobody else needs
_NEAR = 3e-3  # a gap, relative, of a plan that is about as good as the last one will be
_LOST = 1e-4  # of a bound, that the last plan is expected to lose
_SHARE = 0.5  # of the time left, for one tier
_FIRST_SHARE = 0.9  # the same as long as it has no bound
_CUT = 0.95  # of the seconds given, after which an LP was cut by them


@dataclass(frozen=True, slots=True)
class Best:
    """What the best plan so far has in every tier.

    Parameters
    ----------
    number : of such messages before it.
    until : when the time for bounds is over, on the monotonic clock.
    last : whether no plan will be better.
    """

    number: int
    values: tuple[int, ...]
    until: float
    last: bool = False


class Found(NamedTuple):
    """A tier and what proves a bound on it, with nodes of different prices told apart or not."""

    tier: str
    cases: Cases
    priced: bool = True


@dataclass(slots=True)
class Pursuit:
    """The closest bounds of a Problem, nodes of different prices told apart, tier by tier.

    Of many nodes they are not told apart at first: an LP that does may take a third of a minute, and bands often need
    no closer bound than one that does not.

    Parameters
    ----------
    stand_back : is called before what is only worth processors that nobody else needs.
    """

    fleet: FleetBounds
    stand_back: Callable[[], None] = lambda: None
    _asked: dict[str, Mapping[str, int]] = field(default_factory=dict)
    _counted: dict[str, Mapping[str, int]] = field(default_factory=dict)
    _opened: dict[str, Mapping[str, int]] = field(default_factory=dict)
    _times: Counter[str] = field(default_factory=Counter)
    _needed: dict[str, float] = field(default_factory=dict)  # more seconds than so many, by tiers that time cut
    _roughly: set[str] = field(default_factory=set)  # tiers looked at like that since earlier ones were with prices

    def before_any_plan(self, nothing: Best) -> Found | None:
        """Return a bound that needs no plan's values, as long as there are such for a large fleet; None after that.

        What earlier tiers will have is guessed from their bounds. Work without GPU has its place in most plans, which
        the first one shows: it is not asked for here.

        Parameters
        ----------
        nothing : a plan that admits nothing.
        """
        problem = self.fleet.problem
        worth_while = problem.counts > EXACT_VARIABLES and self.fleet.large
        bands = (tier for tier in problem.tiers if tier.sense == "max")
        early = {tier.name for tier in bands if not isinstance(tier, Admitted) or tier.gpu}
        asked = all(self._times[name] for name in early)
        in_time = time.monotonic() < nothing.until
        return self.next(nothing, early) if worth_while and not asked and in_time else None

    def next(self, now: Best, among: Collection[str] | None = None) -> Found | None:
        """Return a tier and what proves a bound on it, None where no bound is worth while.

        It is the tier that was asked for least often; those that count nodes, and what follows them, have their first
        turn once the others have had two. Once there is no such tier, replicas of small fleets are counted in whole
        numbers, the earliest band first; then, of very small ones, what single nodes may hold is told apart.

        What earlier tiers will have in the end is guessed: of what is admitted, a little less than the bound unless
        the plan is near that; of what is lost, what the plan has, as there may not be room for all else at so little
        as the bound; nothing of cost, which changes with every plan.

        Parameters
        ----------
        among : names of tiers to choose from, by default all.
        """
        given: dict[str, int] = {}
        found: list[tuple[int, bool, int, Mapping[str, int]]] = []
        uncounted: list[tuple[int, Mapping[str, int]]] = []
        unopened: list[tuple[int, Mapping[str, int]]] = []
        tiers, late = self.fleet.problem.tiers, False
        for position, (tier, value) in enumerate(zip(tiers, now.values, strict=True)):
            gap, bound = self._gap(position, value, given)
            late = late or tier.counts_nodes
            known = self.fleet.knows(tier) and (among is None or tier.name in among)
            in_time = self._seconds(tier, now) > self._needed.get(tier.name, 0.0)
            wide = _NARROW if tier.name in self._roughly - self._asked.keys() else WIDE
            if known and in_time and gap > wide and self._asked.get(tier.name) != given:
                found.append((self._times[tier.name] + late, late, position, dict(given)))
            elif known and gap > _NARROW and self._counted.get(tier.name) != given and self._numbered(tier):
                uncounted.append((position, dict(given)))
            elif known and gap > _NARROW and self._opened.get(tier.name) != given and self.fleet.knows_nodes(tier):
                unopened.append((position, dict(given)))
            better = gap > _NEAR and not now.last and not counts_since_today(tier)
            if not (better and tier.counts_nodes):
                given[tier.name] = round((1 - _LOST) * bound) if better and tier.sense == "max" else value
        if found:
            *_, position, assumed = min(found, key=lambda each: each[:3])
            return self._proved(position, assumed, now)
        if uncounted:
            return self._in_whole_numbers(*uncounted[0], now)
        return self._in_whole_numbers(*unopened[0], now, contents=inf) if unopened else None

    def _numbered(self, tier: Tier) -> bool:
        """Tell whether to count in whole numbers: on few nodes, or what is evicted or mended: one is much of that."""
        few = len(self.fleet.problem.nodes) <= FEW_NODES
        return (few and has_numbers(tier)) or counts_since_today(tier)

    def _gap(self, position: int, value: int, given: Mapping[str, int]) -> tuple[float, int]:
        """Return how far a value is from the best bound so far, and that bound."""
        tier = self.fleet.problem.tiers[position]
        limit, best = limit_given(tier, self.fleet.problem.context, given), self.fleet.best(tier, given)
        bounds = [limit] if best is None else [limit, best[0]]
        bound = min(bounds) if tier.sense == "max" else max(bounds)
        return relative_gap(value, bound), bound

    def _proved(self, position: int, given: Mapping[str, int], now: Best) -> Found:
        """Prove a bound on a tier: of all cases in one at first, and told apart once every tier has one."""
        tier = self.fleet.problem.tiers[position]
        if tier.name not in self._roughly and self._may_be_rough(tier):
            return self._proved_roughly(position, given, now)
        looked = 1 if tier.name in self._roughly else 0
        first = tier.sense == "max" and self._times[tier.name] <= looked and not now.last
        aim = None if first or tier.sense == "min" else round((1 + WIDE) * now.values[position])
        seconds, began = self._seconds(tier, now), time.monotonic()
        self._times[tier.name] += 1
        cases = self.fleet.cases(tier, given, reached=aim, priced=True, seconds=seconds)
        if time.monotonic() - began >= _CUT * seconds and not cases.branches:
            self._needed[tier.name] = seconds
        self.fleet.learn(tier, cases, priced=True)
        self._roughly -= {later.name for later in self.fleet.problem.tiers[position + 1 :]}  # of which more is known
        if not (first and any(case.torn for case in cases.leaves.values())):
            self._asked[tier.name] = given
        return Found(tier.name, cases)

    def _may_be_rough(self, tier: Tier) -> bool:
        """Tell whether a bound without prices may do for a tier, and is found much sooner."""
        asks = tier.counts_nodes or tier.asks_idle or tier.asks_domains
        return not asks and len(self.fleet.problem.nodes) > FEW_NODES

    def _proved_roughly(self, position: int, given: Mapping[str, int], now: Best) -> Found:
        """Prove a bound on a tier with nodes of different prices not told apart, but who is there."""
        tier = self.fleet.problem.tiers[position]
        self._roughly.add(tier.name)
        self._times[tier.name] = max(1, self._times[tier.name])
        aim = round((1 + WIDE) * now.values[position]) if tier.sense == "max" else None
        cases = self.fleet.cases(tier, given, reached=aim, priced=False, seconds=self._seconds(tier, now))
        self.fleet.learn(tier, cases, priced=False)
        return Found(tier.name, cases, priced=False)

    def _seconds(self, tier: Tier, now: Best) -> float:
        """Return how long a tier may take."""
        share = 1.0 if now.last else _SHARE if self._times[tier.name] else _FIRST_SHARE
        return share * max(0.0, now.until - time.monotonic())

    def _in_whole_numbers(
        self, position: int, given: Mapping[str, int], now: Best, *, contents: float = 0.0
    ) -> Found:
        """Prove a bound on a tier with nodes in use, or admitted replicas, in whole numbers.

        Parameters
        ----------
        contents : as for `FleetBounds.prove`.
        """
        self.stand_back()
        tier = self.fleet.problem.tiers[position]
        (self._opened if contents else self._counted)[tier.name] = given
        seconds, reached = _SHARE * max(0.0, now.until - time.monotonic()), now.values[position]
        cases = self.fleet.cases(
            tier, given, reached=reached, priced=True, seconds=seconds, counts=COUNTS, contents=contents
        )
        self.fleet.learn(tier, cases, priced=True)
        return Found(tier.name, cases)
