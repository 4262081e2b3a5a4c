"""Who must leave for less to be broken: never more than brute force, and where little is at stake as many."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest
from tests.support.specs import make_spec, node, place, policy, workload

from dovetail.rules import Rule, context_of
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.leaving import Leaving, evened, must_leave
from dovetail.rules.require import Forbid
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import NodeSelector, WorkloadSelector


def fewest(counts: Sequence[int], most: int, ahead: int) -> int | None:
    """Return how many leave at the least where domains differ by no more, None where nothing is so even."""
    ends = product(range(most + 1), repeat=len(counts))
    even = (end for end in ends if sum(counts) <= sum(end) <= most and max(end) - min(end) <= ahead)
    leave = (sum(counts) - sum(map(min, counts, end)) for end in even)
    return min(leave, default=None)


@pytest.mark.parametrize("seed", range(40))
def test_no_more_leave_than_brute_force_has_it(seed: int) -> None:
    rng = Random(seed)
    counts = [rng.randint(0, 4) for _ in range(rng.randint(2, 3))]
    most, skew = sum(counts) + rng.choice((0, 0, 1, 3)), rng.choice((0, 1, 1, 2))
    fewer = evened(counts, most, skew)
    assert list(fewer) == sorted(fewer, reverse=True)
    for kept in range(len(fewer) + 1):
        exactly = fewest(counts, most, skew + kept)
        assert exactly is None or sum(fewer[kept:]) <= exactly


def test_most_often_as_many_leave() -> None:
    short = looked = 0
    for counts in product(range(4), repeat=3):
        for more in (0, 2):
            exactly = fewest(counts, sum(counts) + more, 1)
            if exactly is not None:
                looked += 1
                short += sum(evened(counts, sum(counts) + more, 1)) < exactly
    assert looked > 100
    assert short <= 0.05 * looked


def told(rule: Rule, **about: object) -> list[tuple[int, ...]]:
    """Return what a rule says of `x/w` three times on `a`, once on `b`, and `y/v` twice on `a`."""
    work = [workload("x/w", 4, gpus=1), workload("y/v", 2, gpus=1)]
    spots = {"x/w": "aaab", "y/v": "aa"}
    rows, used = {}, {"a": 0, "b": 0}
    for name, hosts in spots.items():
        for ordinal, host in enumerate(hosts):
            rows[f"{name}#{ordinal}"] = place(host, used[host])
            used[host] += 1
    nodes = [node(name, 8, labels={"n": name}) for name in "abcd"]
    new = policy("new", rule, **about)  # type: ignore[arg-type]
    (own,) = context_of(make_spec(nodes, work, policies=(new,), running=rows)).leaving
    return sorted(leaving.fewer for leaving in own if leaving.fewer)


def test_each_rule_says_who() -> None:
    x = WorkloadSelector(tenants=("x",))
    assert told(Spread(over="node", max_per_domain=1)) == [(1,), (1, 1)]
    assert told(Spread(over="node", max_skew=1), workloads=x) == [(1, 1)]  # all four are apart then
    assert told(Separate(by="tenant", at="node")) == [(2,)]
    assert told(Exclusive(at="node"), workloads=x) == [(1, 1)]
    assert told(Forbid(), nodes=NodeSelector(match_labels={"n": "a"})) == [(1, 1), (1, 1, 1)]


def test_violations_that_are_kept_save_those_who_would_be_most() -> None:
    one, other = Leaving(frozenset("v"), (3, 1)), Leaving(frozenset("w"), (2,))
    assert [must_leave([[one, other]], kept, lambda _: 1) for kept in range(5)] == [6, 3, 1, 0, 0]


def test_policies_that_may_mean_the_same_replicas_count_once() -> None:
    many, few, else_where = ([Leaving.each(names, count)] for names, count in (("vw", 3), ("w", 2), ("u", 1)))
    assert must_leave([few, many], 0, lambda _: 1) == 3
    assert must_leave([few, many, else_where], 0, lambda _: 1) == 4
    assert must_leave([few, many], 0, {"v": 0, "w": 5}.__getitem__) == 10
