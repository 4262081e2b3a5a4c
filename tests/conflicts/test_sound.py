"""What is called a contradiction before any search is one: brute force finds no plan (S4.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from random import Random

from tests.oracle.brute import TooLarge, brute
from tests.support.specs import policy, request
from tests.support.tiny_specs import tiny

from dovetail.conflicts import Conflict, conflicts_of
from dovetail.rules import Rule
from dovetail.rules.admission import Admission
from dovetail.rules.colocate import Colocate
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.reserve import Reserve
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import Current, NodeSelector, Policy, Spec, WorkloadSelector

SEEDS = 160
RULES: tuple[Callable[[Random], Rule], ...] = (
    lambda rng: Require(),
    lambda rng: Forbid(),
    lambda rng: Quota(limits=(("gpus", rng.choice((0, 500, 1000, 2000))),), per=rng.choice(("all", "tenant"))),
    lambda rng: Spread(over=rng.choice(("rack", "node")), max_per_domain=1),
    lambda rng: Exclusive(at=rng.choice(("rack", "node"))),
    lambda rng: Colocate(by=rng.choice(("tenant", "workload")), at=rng.choice(("rack", "node"))),
    lambda rng: Reserve(domains=rng.choice((1, 2)), of=rng.choice(("rack", "node"))),
    lambda rng: Reserve(replicas=rng.choice((1, 2)), request=request(rng.choice((1, 2, 3)))),
    lambda rng: Separate(by=rng.choice(("tenant", "workload")), at=rng.choice(("rack", "node"))),
)


def drawn(seed: int) -> Spec:
    """Return a tiny Spec with policies that often contradict each other."""
    rng = Random(f"conflict {seed}")
    spec = tiny(seed)
    policies = [policy("all-run", Admission(), workloads=_some(rng, spec))]
    for index in range(rng.choice((1, 2, 2, 3))):
        rule = rng.choice(RULES)(rng)
        nodes = _nodes(rng, spec) if isinstance(rule, Require | Forbid) or rng.random() < 0.2 else None
        policies.append(policy(f"p{index}", rule, workloads=_matched(rng, rule, spec), nodes=nodes))
    current = spec.current if rng.random() < 0.3 else Current()
    return replace(spec, policies=tuple(policies), waivers=(), current=current)


def _matched(rng: Random, rule: Rule, spec: Spec) -> WorkloadSelector:
    return WorkloadSelector() if isinstance(rule, Reserve) else _some(rng, spec)


def _some(rng: Random, spec: Spec) -> WorkloadSelector:
    names = tuple(sorted(w.id for w in spec.workloads if rng.random() < 0.7))
    return WorkloadSelector() if rng.random() < 0.4 or not names else WorkloadSelector(names=names)


def _nodes(rng: Random, spec: Spec) -> NodeSelector:
    names = tuple(sorted(node.name for node in spec.cluster.nodes if rng.random() < 0.6))
    return NodeSelector(names=names or ("none",))


@cache
def cases() -> tuple[tuple[int, Spec, Conflict], ...]:
    specs = ((seed, drawn(seed)) for seed in range(SEEDS))
    return tuple((seed, spec, conflict) for seed, spec in specs for conflict in conflicts_of(spec))


def only(spec: Spec, names: tuple[str, ...], *more: Policy) -> Spec:
    """Return a Spec with some of its policies, and others."""
    kept = [each for each in spec.policies if each.name in names]
    return replace(spec, policies=tuple(sorted([*kept, *more], key=lambda each: each.name)))


def feasible(spec: Spec) -> bool | None:
    """Tell whether brute force finds a plan, None where it is too much."""
    try:
        return brute(spec) is not None
    except TooLarge:
        return None


def test_no_plan_keeps_the_policies_of_a_conflict(tell: Callable[[str], None]) -> None:
    found: Counter[str] = Counter()
    for seed, spec, conflict in cases():
        if conflict.kind == "impossible" and (answer := feasible(only(spec, conflict.policies))) is not None:
            assert answer is False, (seed, conflict)
            found[conflict.code] += 1
    tell(f"conflicts shown to be infeasible by brute force: {dict(sorted(found.items()))}")
    assert found.total() >= 60
    assert len(found) >= 6


def test_no_plan_admits_what_a_conflict_says_is_never_admitted() -> None:
    count = 0
    for seed, spec, conflict in cases():
        if conflict.kind == "never":
            (name,) = conflict.workloads
            asked = policy("asked", Admission(), workloads=WorkloadSelector(names=(name,)))
            given = spec.by_id[name]
            whole = given.atomic or given.replicas == 1
            for variant in [spec] if whole else _by_one(spec, name):
                answer = feasible(only(variant, conflict.policies, asked))
                assert answer is not True, (seed, conflict)
                count += answer is False
    assert count >= 10


def _by_one(spec: Spec, name: str) -> Iterator[Spec]:
    """Yield the Spec with one replica of each role of a workload by itself."""
    given = spec.by_id[name]
    for role in given.roles:
        if role.replicas:
            single = replace(given, roles=(replace(role, replicas=1),), min_replicas=0)
            yield replace(spec, workloads=tuple(single if w.id == name else w for w in spec.workloads))


def test_none_of_the_policies_of_a_conflict_can_be_left_out() -> None:
    for seed, spec, conflict in cases():
        if conflict.kind == "impossible":
            for name in conflict.policies:
                rest = tuple(each for each in conflict.policies if each != name)
                again = [c for c in conflicts_of(only(spec, rest)) if c.kind == "impossible"]
                assert all(c.workloads != conflict.workloads or c.code != conflict.code for c in again), (seed, name)


def test_conflicts_do_not_depend_on_the_order_of_policies() -> None:
    for _, spec, _ in cases()[:60]:
        assert conflicts_of(spec) == conflicts_of(replace(spec, policies=tuple(reversed(spec.policies))))
