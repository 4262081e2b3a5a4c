"""The tiers of the objective (S5.1), each family one file; `FAMILIES` is the one place that lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

from dovetail.objectives.admitted import Admitted, Retained
from dovetail.objectives.balance import tiers as _balance
from dovetail.objectives.base import Idle, IdleGpu, Sense, Tier, TierPart, sign_of
from dovetail.objectives.cost import Cost
from dovetail.objectives.disruption import Evicted, GpuTimeLost, Moves
from dovetail.objectives.fragmentation import tiers as _fragmentation
from dovetail.objectives.limits import is_limit, limit_given
from dovetail.objectives.occupied import tiers as _occupied
from dovetail.objectives.slo import tiers as _slo
from dovetail.objectives.slowest import tiers as _slowest
from dovetail.objectives.topology import tiers as _topology
from dovetail.objectives.violations import Mend, Policies
from dovetail.rules import Context
from dovetail.spec import Spec
from dovetail.spec.objective import LAST_TIER
from dovetail.spec.policy import POLICY_TIER

MEASURES: Mapping[str, Callable[[], Tier]] = MappingProxyType(
    {"evicted": Evicted, "gpuTimeLost": GpuTimeLost, "moves": Moves}
)


def _mend(context: Context) -> Iterator[Tier]:
    if Mend().applies(context):
        yield Mend()


def _admitted(context: Context) -> Iterator[Tier]:
    for band in context.spec.bands:
        candidates = (Retained(band), Admitted(band), Admitted(band, gpu=False))
        for tier in candidates:
            if tier.limit(context) > 0:
                yield tier


def _weighed(after: str, context: Context) -> Iterator[Tier]:
    tier = Policies(after)
    if any(tier.weighs(policy) for policy in context.spec.policies):
        yield tier


def _disruption(context: Context) -> Iterator[Tier]:
    if context.today.present():
        for measure in context.spec.objective.disruption:
            yield MEASURES[measure]()


def _cost(context: Context) -> Iterator[Tier]:
    if any(node.price or node.gpu_price for node in context.spec.cluster.nodes):
        yield Cost()


FAMILIES: Mapping[str, Callable[[Context], Iterator[Tier]]] = MappingProxyType(
    {
        "mend": _mend,
        "admitted": _admitted,
        "slo": _slo,
        POLICY_TIER: partial(_weighed, POLICY_TIER),
        "disruption": _disruption,
        "cost": _cost,
        "topology": _topology,
        "balance": _balance,
        "slowest": _slowest,
        "fragmentation": _fragmentation,
        LAST_TIER: _occupied,
    }
)


def families_of(spec: Spec) -> tuple[str, ...]:
    """Return the names of the families of tiers that a Spec's plan is judged by, most important first.

    What the planner may choose as it likes takes as little as it may: `occupied` comes last where the objective does
    not name it.
    """
    named = spec.objective.tiers
    return named if LAST_TIER in named else (*named, LAST_TIER)


def tiers_of(context: Context) -> tuple[Tier, ...]:
    """Return the tiers that a Spec's plan is judged by, most important first.

    A tier that no plan could change (nothing runs today, nothing has a price) is left out.
    """
    return tuple(tier for name in families_of(context.spec) for tier in with_policies(name, FAMILIES[name], context))


def with_policies(name: str, family: Callable[[Context], Iterable[Tier]], context: Context) -> Iterator[Tier]:
    """Yield the tiers of a family, and after them the tier of the soft policies that name it (S4.1)."""
    yield from family(context)
    if name != POLICY_TIER:
        yield from _weighed(name, context)


__all__ = [
    "FAMILIES",
    "Idle",
    "IdleGpu",
    "Sense",
    "Tier",
    "TierPart",
    "families_of",
    "is_limit",
    "limit_given",
    "sign_of",
    "tiers_of",
    "with_policies",
]
