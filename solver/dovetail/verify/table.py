"""The table of all checks: the one place that lists them, in the order they are run and told."""

from __future__ import annotations

from dovetail.verify import claims, partitions, policies, sharing
from dovetail.verify.placed import PLACED, Check

DIGEST = Check("digest", "DT3001", lambda case: iter(()), basic=True)
"""Run apart: a plan that was made for other documents is stale, and nothing else is asked of it."""

CERTIFICATE = Check("certificate", "DT3708", lambda case: iter(()))
"""Run by `dovetail.proof` and added to the others where a plan claims a certificate: it needs the engine's rows."""

TABLE: tuple[Check, ...] = (
    Check("outcome", "DT3002", claims.outcome, basic=True),
    *PLACED,
    Check("hard-policies", "DT3601", policies.hard_policies),
    Check("policy-results", "DT3602", policies.policy_results),
    Check("held", "DT3603", policies.held),
    Check("recovery", "DT3604", policies.recovery),
    Check("tier-names", "DT3701", claims.tier_names),
    Check("tier-values", "DT3702", claims.tier_values),
    Check("tier-bounds", "DT3703", claims.tier_bounds),
    Check("tier-proofs", "DT3704", claims.tier_proofs),
    Check("given", "DT3705", claims.given),
    Check("optimal", "DT3706", claims.optimal),
    Check("second-opinion", "DT3707", claims.second_opinion),
    Check("layouts-asked-for", "DT3803", partitions.unasked),
    Check("modes-asked-for", "DT3804", sharing.unasked),
    Check("summary", "DT3801", claims.summary),
    Check("admitted", "DT3802", claims.admitted),
    Check("promises", "DT3805", claims.promises),
)
