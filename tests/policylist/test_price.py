"""What a policy costs: by hand, against brute force, and as ranges where a side is not proved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.build.text import AS_OF
from tests.oracle.brute import TooLarge, brute
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, policy, workload
from tests.support.tiny_specs import tiny

from dovetail.build import build, origins_of
from dovetail.documents import DocumentSet, load_project
from dovetail.engine import solve
from dovetail.placement import Places
from dovetail.plan import Outcome, Plan, TierResult
from dovetail.policylist import GPUS, Interval, Price, listing, priceable, priced, to_document
from dovetail.rules.admission import Admission
from dovetail.rules.promises import Promises
from dovetail.rules.quota import Quota
from dovetail.spec import Spec, WorkloadSelector
from dovetail.spec.permits import Ratios

SCENARIO = Path(__file__).resolve().parents[2] / "scenarios/price-of-policies"
NOTHING = Interval(0, 0)


def planned(spec: Spec, hint: Places | None) -> Plan:
    return solve(spec, hint=hint)


def points(prices: tuple[Price, ...]) -> dict[str, int | None]:
    """Return the prices that are known to the number and are not nothing."""
    return {price.name: price.range.low for price in prices if price.range.is_point and price.range != NOTHING}


def test_the_prices_of_the_shipped_scenario_are_those_worked_out_by_hand() -> None:
    spec = build(load_project(SCENARIO), as_of=AS_OF)
    found = priced(spec, priceable(spec), planned)
    assert {each.policy: points(each.prices) for each in found.priced} == {
        "lab-quota": {"admitted[0]": 4_000, GPUS: 4_000},
        "move-budget": {},
        "tenants-never-share-a-node": {"cost": 8_000_000},
        "training-and-shop-off-spot": {"cost": 16_500_000},
    }
    assert all(price.range.is_point for each in found.priced for price in each.prices)


def test_the_order_of_documents_and_a_second_run_change_no_price() -> None:
    def told(given: DocumentSet) -> dict[str, Any]:
        spec = build(given, as_of=AS_OF)
        found = listing(spec, origins_of(given))
        return to_document(found, priced(spec, priceable(spec), planned))

    given = load_project(SCENARIO)
    other = replace(given, documents=tuple(reversed(given.documents)))
    assert told(given) == told(other) == told(given)


def test_prices_hold_what_brute_force_says(tell: Callable[[str], None]) -> None:
    count = exact = 0
    for seed in range(36):
        spec = tiny(seed)
        for name in priceable(spec):
            without = replace(spec, policies=tuple(p for p in spec.policies if p.name != name))
            try:
                here, there = brute(spec), brute(without)
            except TooLarge:
                continue
            if here is None or there is None:
                continue
            (found,) = priced(spec, [name], planned).priced
            for price in found.prices:
                if price.name in here.by_name and price.name in there.by_name and not price.given:
                    sign = -1 if price.name == "cost" else 1
                    truth = sign * (there.by_name[price.name] - here.by_name[price.name])
                    assert price.range.low is None or price.range.low <= truth, (seed, name, price)
                    assert price.range.high is None or truth <= price.range.high, (seed, name, price)
                    count, exact = count + 1, exact + price.range.is_point
    tell(f"{count} prices hold what brute force says, {exact} to the number")
    assert count > 40
    assert exact == count


def plan_with(spec: Spec, tiers: Mapping[str, tuple[int, int | None]]) -> Plan:
    """Return an empty plan with tiers of some values and bounds."""
    found = [
        TierResult(name, value, bound, "x", "min" if name == "cost" else "max", "solver")
        for name, (value, bound) in tiers.items()
    ]
    return replace(plan_for(spec, {}, "feasible"), tiers=tuple(found))


@pytest.mark.parametrize(("nodes", "expected"), [(2, NOTHING), (1, Interval(None, None))])
def test_where_nobody_waits_a_policy_costs_no_gpus_whatever_work_is_worth(nodes: int, expected: Interval) -> None:
    quota = policy("p", Quota(limits=(("gpus", 9_000),)))
    work = [workload("w", 1, gpus=4, value=7), workload("v", 1, gpus=4, value=9)]
    spec = make_spec([node(f"n{i}", 4) for i in range(nodes)], work, [quota])
    (found,) = priced(spec, ["p"], planned).priced
    assert [price.range for price in found.prices if price.name == GPUS] == [expected]


def ranges(
    with_it: Mapping[str, tuple[int, int | None]], without: Mapping[str, tuple[int, int | None]]
) -> list[Price]:
    quota = policy("p", Quota(limits=(("gpus", 0),)))
    spec = make_spec([node("a")], [workload("w", 1, gpus=1)], [quota])
    plans = iter([plan_with(spec, with_it), plan_with(spec, without)])
    return [
        price for price in priced(spec, ["p"], lambda spec, hint: next(plans)).priced[0].prices if price.name != GPUS
    ]


@pytest.mark.parametrize(
    ("with_it", "without", "expected"),
    [
        ((10, 10), (14, 14), Interval(4, 4)),
        ((10, 12), (14, 15), Interval(2, 5)),  # value without - bound with, bound without - value with
        ((10, 15), (14, 15), Interval(0, 5)),  # a policy never gains admitted value: at most
        ((10, None), (14, 15), Interval(0, 5)),
        ((10, 10), (10, None), Interval(0, None)),
        ((10, 10), (9, 12), Interval(0, 2)),  # the search found less without; the plan with it is still one
    ],
)
def test_a_price_is_between_values_and_bounds(
    with_it: tuple[int, int | None], without: tuple[int, int | None], expected: Interval
) -> None:
    (price,) = ranges({"admitted[0]": with_it}, {"admitted[0]": without})
    assert (price.range, price.given) == (expected, ())


def test_money_is_what_the_policy_adds() -> None:
    same = {"admitted[0]": (5, 5)}
    assert ranges({**same, "cost": (90, 80)}, {**same, "cost": (70, 60)})[1].range == Interval(10, 30)
    more = {"admitted[0]": (6, 6)}  # who admits more may well pay more: then the policy saves
    assert ranges({**same, "cost": (90, 90)}, {**more, "cost": (99, 99)})[1].range == Interval(-9, -9)


def test_money_without_a_bound_is_no_range() -> None:
    """That nothing costs less than nothing is no news: a policy was told to save up to all that the plan costs."""
    some, more = {"admitted[0]": (5, 6)}, {"admitted[0]": (6, 7)}
    assert ranges({**some, "cost": (90, 0)}, {**more, "cost": (70, 0)})[1].range == Interval(None, None)
    assert ranges({**some, "cost": (90, 80)}, {**more, "cost": (70, 0)})[1].range == Interval(10, None)
    assert ranges({**some, "cost": (0, 0)}, {**more, "cost": (70, 60)})[1].range == Interval(-70, -60)


def test_a_tier_after_one_that_is_open_says_so() -> None:
    found = ranges({"admitted[9]": (1, 2), "admitted[0]": (5, 5)}, {"admitted[9]": (2, 2), "admitted[0]": (4, 4)})
    assert [(price.name, price.given) for price in found] == [("admitted[9]", ()), ("admitted[0]", ("admitted[9]",))]
    assert found[1].range == Interval(-1, -1)  # what a lower band loses where a higher one gains


def test_a_policy_that_lends_or_promises_more_may_gain_admitted_value() -> None:
    """Without it seven GPUs that it lends are gone, and half the replicas that the CPU of a node is promised to."""
    work = [workload("a", 12, gpus=1), workload("b", 1, gpus=1)]
    own = [
        policy(name, Quota(guaranteed=(("gpus", amount),), cohort="all"), workloads=WorkloadSelector(names=(name,)))
        for name, amount in (("a", 4000), ("b", 8000))
    ]
    found = priced(make_spec([node("n", 16)], work, own), ["b"], planned).priced[0]
    assert points(found.prices) == {"admitted[0]": -7_000, GPUS: -7_000}
    twice = policy("twice", Promises(Ratios(cpu=2000)))
    spec = make_spec([node("n", 8, cpu=8_000)], [workload("j", 4, gpus=1, cpu=4_000)], [twice])
    found = priced(spec, ["twice"], planned).priced[0]
    assert points(found.prices) == {"admitted[0]": -2_000, GPUS: -2_000}
    assert all(price.found == price.range.low for price in found.prices)


def test_what_binds_nobody_and_what_is_not_hard_has_no_price() -> None:
    absent = policy("absent", Admission(), workloads=WorkloadSelector(names=("nobody",)))
    soft = policy("soft", Quota(limits=(("gpus", 0),)), enforcement=3)
    hard = policy("hard", Quota(limits=(("gpus", 0),)))
    assert priceable(make_spec([node("a")], [workload("w")], [absent, hard, soft])) == ("hard",)


def test_without_a_plan_there_is_no_price_but_an_answer() -> None:
    demand, none = policy("demand", Admission()), policy("none", Quota(limits=(("gpus", 0),)))
    spec = make_spec([node("a")], [workload("w", 1, gpus=1)], [demand, none])
    found = priced(
        spec, priceable(spec), lambda spec, hint: replace(plan_for(spec, {}), outcome=Outcome("infeasible"))
    )
    assert [each.prices for each in found.priced] == [(), ()]
