"""Mixed tiny Specs with more of everything that bounds count together: alike roles, many replicas, rules by domain.

What `mixed` and `further` draw has one role to most workloads, and few replicas to a GPU. Relaxations add replicas
up over roles, nodes and domains, so what they count wrongly shows where there are several of each.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.support.mixed_further import further
from tests.support.mixed_specs import refused
from tests.support.specs import policy

from dovetail.rules.modes import MODES, Modes
from dovetail.rules.spread import Spread
from dovetail.spec import Node, Policy, Spec, Workload, WorkloadSelector


def crowded(seed: int) -> Spec:
    """Return the Spec of a seed."""
    rng = Random(f"crowded {seed}")
    spec = further(seed)
    ran = {present.replica.workload for present in spec.current.replicas}
    work = tuple(each if each.id in ran else _more(rng, each) for each in spec.workloads)
    nodes = tuple(_promising(rng, each) for each in spec.cluster.nodes)
    policies = tuple(sorted((*spec.policies, _by_domain(rng), _cut(rng)), key=lambda each: each.name))
    found = replace(spec, cluster=replace(spec.cluster, nodes=nodes), workloads=work, policies=policies)
    return replace(found, policies=tuple(p for p in found.policies if not refused(p, found)))


def _more(rng: Random, work: Workload) -> Workload:
    """Return a workload with more replicas, some of them in a role of their own that asks for the same."""
    if work.atomic or work.elastic or work.slo is not None or len(work.roles) != 1:
        return work
    (only,) = work.roles
    many = replace(only, replicas=only.replicas * rng.choice((1, 2, 4)))
    if many.replicas < 2 or rng.random() < 0.4:
        return replace(work, roles=(many,))
    half = many.replicas // 2
    return replace(
        work, roles=(replace(many, name="a", replicas=half), replace(many, name="b", replicas=many.replicas - half))
    )


def _promising(rng: Random, node: Node) -> Node:
    """Return a node that promises more of its GPUs than there is, now and then, where clients share them."""
    if node.sharing is None or rng.random() < 0.5:
        return node
    return replace(node, sharing=replace(node.sharing, oversubscription=rng.choice((1500, 3000))))


def _by_domain(rng: Random) -> Policy:
    rule = Spread(rng.choice(("zone", "rack", "node")), max_per_domain=rng.choice((3, 6)))
    return policy("by-domain", rule, enforcement=rng.choice(("hard", 1)), workloads=_some(rng))


def _cut(rng: Random) -> Policy:
    rule = Modes(tuple(mode for mode in MODES if mode != "whole" or rng.random() < 0.3))
    return policy("not-whole", rule, enforcement=rng.choice(("hard", 1, 1)), workloads=_some(rng))


def _some(rng: Random) -> WorkloadSelector:
    return WorkloadSelector(tenants=rng.choice(((), (), ("red",), ("blue",))))
