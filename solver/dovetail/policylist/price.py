"""What each hard policy costs: the project planned with it and without it (S4.5, S5.2).

The price of a policy in a tier is how much better the best plan without it would be. Each side is known as a value
that a plan has and a bound that none beats, so the price is an interval: for admitted value
`[v_without - bound_with, bound_without - v_with]`, for money the other way round. It is a point where both sides are
proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from dovetail.objectives import sign_of
from dovetail.placement import Places
from dovetail.plan import Plan, TierResult
from dovetail.plan.finish import WITHOUT_PLACES
from dovetail.rules import without_policy
from dovetail.spec import Spec
from dovetail.spec.workload import MILLI

GPUS = "gpus"
"""The name of the price in GPUs, which is no tier."""

Solve = Callable[[Spec, Places | None], Plan]
"""Plans a Spec, starting from some places: the engine with its limits, or a stand-in."""


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, either None where nothing is known."""

    low: int | None
    high: int | None

    @property
    def is_point(self) -> bool:
        """Tell whether both ends meet."""
        return self.low is not None and self.low == self.high

    @property
    def is_nothing(self) -> bool:
        """Tell whether it is proved to be nothing."""
        return self.low == 0 == self.high

    def plus(self, other: Interval) -> Interval:
        """Return the sum."""
        low = None if self.low is None or other.low is None else self.low + other.low
        high = None if self.high is None or other.high is None else self.high + other.high
        return Interval(low, high)


@dataclass(frozen=True, slots=True)
class Price:
    """What a policy costs in one tier, or in GPUs.

    Parameters
    ----------
    found : the difference of the two plans that were found.
    range : in which the price lies, provided that the tiers of `given` are worth what the two plans have.
    given : earlier tiers that are not proved on both sides; empty where the range holds whatever anybody finds.
    """

    name: str
    unit: str
    found: int
    range: Interval
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Priced:
    """One policy with its price; `prices` is empty where a side has no plan."""

    policy: str
    without: Plan
    prices: tuple[Price, ...] = ()


@dataclass(frozen=True, slots=True)
class Pricing:
    """The plan with all policies, and the price of each that was asked for, by name."""

    plan: Plan
    priced: tuple[Priced, ...]

    @property
    def by_name(self) -> Mapping[str, Priced]:
        """Prices by policy."""
        return {each.policy: each for each in self.priced}


def priceable(spec: Spec) -> tuple[str, ...]:
    """Return the hard policies that bind any workload; what binds none costs nothing."""
    return tuple(p.name for p in spec.policies if p.enforcement.kind == "hard" and spec.matched(p))


def priced(spec: Spec, names: Iterable[str], solve: Solve, stopped: Callable[[], bool] = lambda: False) -> Pricing:
    """Plan a Spec, then once without each of some policies, and tell what each costs.

    Parameters
    ----------
    stopped : asked before each further policy; those after a stop have no price.
    """
    plan = solve(spec, None)
    hint = plan.placements or None
    going = takewhile(lambda _: not stopped(), names)
    return Pricing(plan, tuple(_priced(spec, plan, name, solve(without_policy(spec, name), hint)) for name in going))


def _priced(spec: Spec, plan: Plan, name: str, without: Plan) -> Priced:
    if plan.outcome.status in WITHOUT_PLACES or without.outcome.status in WITHOUT_PLACES:
        return Priced(name, without)
    return Priced(name, without, tuple(_prices(spec, name, plan, without)))


def _prices(spec: Spec, name: str, plan: Plan, without: Plan) -> Iterator[Price]:
    """Yield the price in each admitted tier, in GPUs, and in money where anything has a price."""
    tiers = {tier.name: tier for tier in without.tiers}
    rule = next(policy.rule for policy in spec.policies if policy.name == name)
    walk = _Walk(nested=not rule.lets_more)
    admitted: list[Price] = []
    money: list[Price] = []
    for tier in plan.tiers:
        other = tiers.get(tier.name)
        if other is not None and tier.name.startswith(("admitted[", "admitted-cpu[")):
            admitted.append(walk.price(tier, other))
        elif other is not None and tier.name == "cost":
            money.append(walk.price(tier, other))
        walk.pass_by(tier, other)
    yield from (*admitted, _gpus(spec, plan, without, admitted), *money)


@dataclass(slots=True)
class _Walk:
    """What is known of the tiers so far: those left open, and whether both sides are proved to be alike in all.

    `nested` tells whether every plan with the policy is one without it.
    """

    nested: bool
    open: tuple[str, ...] = ()
    alike: bool = True

    def price(self, tier: TierResult, other: TierResult) -> Price:
        """Return the price in one tier, in the direction in which a policy costs."""
        sign, least, most = sign_of(tier.sense), _bound(tier), _bound(other)
        low = None if least is None else sign * (other.value - least)
        high = None if most is None else sign * (most - tier.value)
        found = sign * (other.value - tier.value)
        if self.nested and self.alike:  # the plan with the policy is one without it: a price is never negative
            low, found = max(low or 0, 0), max(found, 0)
        return Price(tier.name, tier.unit, found, Interval(low, high), self.open)

    def pass_by(self, tier: TierResult, other: TierResult | None) -> None:
        """Go on to the next tier."""
        proved = other is not None and tier.proved and other.proved
        self.alike &= other is not None and proved and tier.value == other.value
        if not proved and (other is not None or not tier.proved):
            self.open = (*self.open, tier.name)


def _bound(tier: TierResult) -> int | None:
    """Return a tier's bound; None where it says no more than that nothing costs less than nothing."""
    empty = tier.sense == "min" and tier.bound == 0 < tier.value
    return None if empty else tier.bound


def _gpus(spec: Spec, plan: Plan, without: Plan, admitted: Iterable[Price]) -> Price:
    """Return the price in requested GPUs, which is known within bounds where every value is the request.

    It is nothing where nobody waits on either side: all that asks is there, whatever it is worth.
    """
    known = Interval(0, 0)
    given: dict[str, None] = {}
    for price in admitted:
        if price.name.startswith("admitted["):
            known = known.plus(price.range)
            given.update(dict.fromkeys(price.given))
    found = int(MILLI * (without.summary["gpusAllocated"] - plan.summary["gpusAllocated"]))
    roles = [role for workload in spec.workloads for role in workload.roles if role.request.gpu_count]
    counted = not any(w.asks_rate or any(role.worths for role in w.roles) for w in spec.workloads)
    if counted and not any(role.request.varies for role in roles) and _in_full(plan) and _in_full(without):
        return Price(GPUS, "milli-GPU", found, Interval(0, 0), ())
    exact = counted and all(role.value == role.request.gpu_milli for role in roles)
    return Price(GPUS, "milli-GPU", found, known if exact else Interval(None, None), tuple(given))


def _in_full(plan: Plan) -> bool:
    """Tell whether all workloads are admitted in full."""
    return not (plan.summary["admittedPartial"] or plan.summary["admittedNone"])
