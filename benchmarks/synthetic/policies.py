"""Policies that a fleet gets one day, and that what runs on it breaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NEW: Final[Mapping[str, str]] = {
    "even": "match: {workloads: {tenants: [gale]}}\n  rule: {spread: {over: zone, maxSkew: 1}}",
    "few": "match: {workloads: {tenants: [gale]}}\n  rule: {spread: {over: rack, maxPerDomain: 2}}",
    "apart": "match: {workloads: {tenants: [atlas, boreal, cirrus]}}\n  rule: {separate: {by: tenant, at: node}}",
    "off": "match: {workloads: {tenants: [gale]}, nodes: {accelerators: [L40S-48GB]}}\n  rule: {forbid: {}}",
}
"""By name: a tenant's workloads evenly over zones, or two of each to a rack; three tenants on nodes of their own;
a tenant off an accelerator."""


def with_policy(texts: Mapping[str, str], name: str) -> Mapping[str, str]:
    """Return the files of a fleet with one more policy."""
    policy = (
        "---\napiVersion: dovetail/v1alpha1\nkind: Policy\n"
        f"metadata: {{name: new-{name}}}\nspec:\n  {NEW[name]}\n  enforcement: hard\n"
    )
    return {**texts, "policies.yaml": texts["policies.yaml"] + policy}
