"""What must not be where it runs goes if it is preemptible and has no other place, or others go for it."""

from __future__ import annotations

import pytest
from tests.support.at_work import GANG, HIGH, LOW, on, ones, planned, racks, running, stepped
from tests.support.specs import make_spec, node, place, policy, workload

from dovetail.engine import ladder, solve
from dovetail.engine.construction.letting_go import with_misplaced_gone
from dovetail.engine.construction.vacating import with_gangs
from dovetail.progress import Limits
from dovetail.rules.require import Forbid
from dovetail.rules.spread import Spread
from dovetail.spec import NodeSelector, Policy
from dovetail.verify import verify


def drained(*names: str) -> Policy:
    return policy("drained", Forbid(), nodes=NodeSelector(names=names))


def test_preemptible_work_without_another_place_goes() -> None:
    low = workload("low", 2, gpus=1, **LOW)
    told, view = stepped(
        planned(racks(x=1, y=1), [low, *ones(v=4)], running(low="x0 x0", v="y0 y0 y0 y0"), drained("x0")),
        with_misplaced_gone,
    )
    assert not on(view, "low")
    assert (told["mend"], told["disruption.evicted"], told["disruption.moves"]) == (0, 1, 0)


def test_it_goes_for_what_may_not_whatever_its_priority() -> None:
    high = workload("high", 4, gpus=1, preemptible=True, **HIGH)
    told, view = stepped(
        planned(racks(x=1, y=1), [high, *ones(v=1)], running(high="y0 y0 y0 y0", v="x0"), drained("x0")),
        with_misplaced_gone,
    )
    assert on(view, "v") == ["y0"]
    assert on(view, "high") == ["y0", "y0", "y0"]
    assert (told["mend"], told["disruption.moves"]) == (0, 1)


def test_who_made_room_for_one_that_must_go_goes_no_more_itself() -> None:
    cards = {"fast": "H100-80GB", "slow": "L4"}
    nodes = [
        node("n0", 2, accelerator=cards["fast"], cpu=2000),
        node("n1", 3, accelerator=cards["fast"]),
        node("n2", 2, accelerator=cards["slow"]),
        node("n3", 1, accelerator=cards["slow"]),
    ]
    work = [
        workload("a", 2, gpus=1, accelerators=(cards["fast"],)),
        workload("b", 3, gpus=1, cpu=1500),
        workload("p", 2, gpus=1, accelerators=(cards["slow"],), preemptible=True),
        workload("q", 1, gpus=1, accelerators=(cards["slow"],), preemptible=True),
    ]
    where = running(a="n0 n0", b="n1 n1 n1", p="n2 n2", q="n3")
    one = policy("one", Spread("node", max_per_domain=1))
    told, view = stepped(make_spec(nodes, work, [one], running=where), with_misplaced_gone)
    assert on(view, "b") == ["n1", "n2", "n3"]
    assert (told["mend"], told["disruption.evicted"], told["disruption.moves"]) == (0, 2, 3)


def test_it_goes_for_a_gang_that_may_not() -> None:
    high = workload("high", 4, gpus=1, preemptible=True, **HIGH)
    gang = workload("gang", 2, gpus=4, **GANG)
    where = {**running(high="y0 y0 y0 y0"), "gang#0": place("x0", 0, 1, 2, 3), "gang#1": place("x1", 0, 1, 2, 3)}
    told, view = stepped(planned(racks(x=2, y=1), [high, gang], where, drained("x0")), with_gangs)
    assert on(view, "gang") == ["x1", "y0"]
    assert not on(view, "high")
    assert told["mend"] == 0


def test_what_may_not_go_stays_and_is_told() -> None:
    told, view = stepped(
        planned(racks(x=1, y=1), ones(w=2, v=4), running(w="x0 x0", v="y0 y0 y0 y0"), drained("x0")),
        with_misplaced_gone,
    )
    assert on(view, "w") == ["x0", "x0"]
    assert (told["mend"], told["disruption.evicted"]) == (2, 0)


def test_a_search_lets_nobody_go_who_has_another_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    low = workload("low", 3, gpus=1, **LOW)
    spec = planned(racks(x=1, y=1), [low, *ones(v=2)], running(low="x0 x0 x0", v="y0 y0"), drained("x0"))
    plan = solve(spec, Limits(work=0.2))
    assert verify(spec, plan).ok
    values = {tier.name: tier.value for tier in plan.tiers}
    assert (values["mend"], values["disruption.evicted"], values["disruption.moves"]) == (0, 1, 2)
    assert sorted(p.node for r, p in plan.placements.items() if r.workload == "low") == ["y0", "y0"]
