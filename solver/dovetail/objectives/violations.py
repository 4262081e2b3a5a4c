"""Tiers on policies: what today breaks is mended first, soft policies are weighed later (S4.5, S5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, TierPart
from dovetail.placement import View
from dovetail.rules import Context
from dovetail.spec import Policy, Spec
from dovetail.spec.policy import POLICY_TIER


@dataclass(frozen=True, slots=True)
class Mend:
    """The violations of hard policies that today's state excuses, added up over their subjects."""

    kind: ClassVar[str] = "mend"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "mend"
    sense: Sense = "min"
    unit: str = "violation"

    def encode(self, part: TierPart) -> Linear:
        """Return the sum of the violations of excused subjects."""
        return Linear.total(
            part.violations[policy][subject]
            for policy, excused in part.context.tolerated.items()
            for subject in excused
            if subject in part.violations.get(policy, ())
        )

    def measure(self, view: View, context: Context) -> int:
        """Add up the violations of excused subjects."""
        total = 0
        for policy in view.spec.policies:
            if excused := context.tolerated.get(policy.name):
                found = policy.rule.check(view, context.scopes[policy.name])
                total += sum(amount for subject, amount in found.items() if subject in excused)
        return total

    def limit(self, context: Context) -> int:
        """Nothing is broken less than not at all."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from what runs today."""
        return True

    def applies(self, context: Context) -> bool:
        """Tell whether today breaks any hard policy."""
        return any(context.tolerated.values())


@dataclass(frozen=True, slots=True)
class Policies:
    """The weighted violations of soft policies, of those that are weighed after the tiers of one family.

    Parameters
    ----------
    after : the name of that family; `policies` for all policies that name none.
    """

    kind: ClassVar[str] = "policies"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    after: str = POLICY_TIER
    sense: Sense = "min"
    unit: str = "weighted violation"

    @property
    def name(self) -> str:
        """The name that plans tell."""
        return self.kind if self.after == POLICY_TIER else f"{self.kind}[{self.after}]"

    def weighs(self, policy: Policy) -> bool:
        """Tell whether a policy counts here."""
        return policy.enforcement.kind == "soft" and policy.enforcement.tier == self.after

    def encode(self, part: TierPart) -> Linear:
        """Return the sum of weight times violation over soft policies."""
        total = Linear()
        for policy in part.spec.policies:
            if self.weighs(policy):
                for violation in part.violations[policy.name].values():
                    total.add(violation, policy.enforcement.weight)
        return total

    def measure(self, view: View, context: Context) -> int:
        """Add up weight times violation over soft policies."""
        return sum(
            policy.enforcement.weight * sum(policy.rule.check(view, context.scopes[policy.name]).values())
            for policy in view.spec.policies
            if self.weighs(policy)
        )

    def limit(self, context: Context) -> int:
        """Nothing is broken less than not at all."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from what runs today where a soft policy does."""
        return any(p.rule.needs_current for p in spec.policies if self.weighs(p))
