"""Which hard policies keep work out, and which only apply to it: as planning without them would find it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.support.mig_specs import card
from tests.support.plans import greedy, plan_for
from tests.support.specs import CARD, CARDS, make_spec, node, place, places, policy, request, role, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.placement import Place
from dovetail.plan.forbidden import Trials
from dovetail.rules import Rule, context_of, policy_of, without_policy
from dovetail.rules.admission import Admission
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.modes import Modes
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid
from dovetail.rules.reserve import Reserve
from dovetail.rules.spread import Spread
from dovetail.spec import (
    Enforcement,
    Group,
    Node,
    NodeSelector,
    Policy,
    Share,
    Spec,
    Topology,
    Workload,
    WorkloadSelector,
)
from dovetail.whynot import Bar, Explanation, barring, to_document
from dovetail.whynot.barring import _verdict

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
Rows = Mapping[str, tuple[str, tuple[int, ...]]]


def on_w(name: str, rule: Rule, *nodes: str, enforcement: str = "hard") -> Policy:
    found = policy(name, rule, workloads=WorkloadSelector(names=("w",)), enforcement=enforcement)
    return replace(found, nodes=NodeSelector(names=nodes)) if nodes else found


def gpus(count: int) -> Quota:
    return Quota((("gpus", 1000 * count),))


def bars(
    nodes: list[Node],
    work: list[Workload],
    rows: Rows,
    policies: list[Policy],
    running: Mapping[str, Place] | None = None,
) -> dict[str, Bar]:
    spec = make_spec(nodes, work, policies, running=running)
    plan = plan_for(spec, places({key: place(name, *on) for key, (name, on) in rows.items()}), "feasible")
    return {bar.policy.name: bar for bar in barring(spec, plan, spec.by_id["w"])}


def stands(
    nodes: list[Node],
    work: list[Workload],
    rows: Rows,
    policies: list[Policy],
    running: Mapping[str, Place] | None = None,
) -> dict[str, str]:
    return {name: bar.stand for name, bar in bars(nodes, work, rows, policies, running).items()}


W = workload("w", 2, gpus=1)
FULL = workload("full", 2, gpus=1, priority=9)
FILLED = {"full#0": ("n", (0,)), "full#1": ("n", (1,))}


def test_a_quota_of_which_some_is_free_keeps_nothing_out() -> None:
    rows = {**FILLED, "w#0": ("n", (2,))}
    assert stands([node("n", 3)], [W, FULL], rows, [on_w("q", gpus(3))]) == {"q": "aside"}
    assert stands([node("n", 4)], [W, FULL], rows, [on_w("q", gpus(1))]) == {"q": "alone"}
    assert stands([node("n", 4)], [W, FULL], rows, [on_w("q", gpus(3))]) == {"q": "idle"}


def test_a_quota_that_is_used_up_says_so_where_there_is_no_room_either() -> None:
    rows = {**FILLED, "w#0": ("n", (2,))}
    told = {count: bars([node("n", 3)], [W, FULL], rows, [on_w("q", gpus(count))])["q"] for count in (1, 2)}
    assert [(bar.stand, bar.spent) for bar in told.values()] == [("aside", True), ("aside", False)]
    share = replace(W, roles=(role("", 2, request(0, 600)),))
    (bar,) = bars([node("n", 2)], [share, FULL], FILLED, [on_w("q", Quota((("gpus", 500),)))]).values()
    assert (bar.stand, bar.spent) == ("aside", True)


def test_who_is_admitted_in_full_is_kept_out_by_nothing() -> None:
    assert stands([node("n", 2)], [W], {"w#0": ("n", (0,)), "w#1": ("n", (1,))}, [on_w("q", gpus(2))]) == {}


def test_nodes_that_are_closed_and_full_are_no_place() -> None:
    closed = [on_w("off", Forbid(), "n")]
    assert stands([node("n", 2)], [W, FULL], FILLED, closed) == {"off": "aside"}
    assert stands([node("n", 3)], [W, FULL], FILLED, closed) == {"off": "alone"}


def test_lower_work_gives_way_and_says_so() -> None:
    low, closed = replace(FULL, priority=-1), [on_w("off", Forbid(), "n"), on_w("q", gpus(2))]
    found = bars([node("n", 2)], [W, low], FILLED, closed)
    assert (found["off"].stand, found["off"].evicting, found["q"].stand) == ("alone", True, "aside")
    runs = {"full#0": place("n", 0), "full#1": place("n", 1)}
    assert stands([node("n", 2)], [W, low], FILLED, closed[:1], runs) == {"off": "aside"}


def test_policies_that_only_help_together_are_told_so() -> None:
    both = [on_w("off", Forbid(), "n"), on_w("q", gpus(0)), on_w("ample", gpus(9))]
    found = bars([node("n", 2)], [W], {}, both)
    assert {name: (bar.stand, bar.beside) for name, bar in found.items()} == {
        "ample": ("aside", ()),
        "off": ("together", ("q",)),
        "q": ("together", ("off",)),
    }


def test_one_of_two_places_will_do() -> None:
    found = stands([node("n", 2), node("m", 2)], [W], {}, [on_w("no-n", Forbid(), "n"), on_w("no-m", Forbid(), "m")])
    assert found == {"no-m": "alone", "no-n": "alone"}


def test_a_policy_of_others_may_keep_out_too() -> None:
    mine = policy("mine", Exclusive("node"), workloads=WorkloadSelector(names=("full",)))
    assert stands([node("n", 3)], [W, FULL], FILLED, [mine]) == {"mine": "alone"}
    assert stands([node("n", 2)], [W, FULL], FILLED, [mine]) == {}


def test_places_that_are_held_keep_out() -> None:
    spare = policy("spare", Reserve(replicas=1, request=request(1)))
    half = replace(W, roles=(role("", 2, request(0, 500)),))
    gang = workload("w", 2, gpus=1, type="gang")
    for work, free in ((W, 3), (W, 4), (half, 3), (gang, 4)):
        spec = make_spec([node("n", free)], [work, FULL], [spare, on_w("q", gpus(2))])
        plan = solve(spec)
        assert len(plan.held["spare"].held) == 1
        stood = {bar.policy.name: bar.stand for bar in barring(spec, plan, spec.by_id["w"])}
        assert (stood["spare"], plan.admitted["w"].reasons[0]) == (
            "alone",
            "DT4112" if work is not gang else "DT4108",
        )
    spec = make_spec([node("n", 2)], [replace(W, roles=(role("", 1, request(2)),))], [spare])
    assert [bar.stand for bar in barring(spec, solve(spec), spec.by_id["w"])] == ["alone"]


def test_soft_policies_and_those_about_moves_without_a_state_are_not_told() -> None:
    told = [on_w("soft", gpus(0), enforcement="audit"), policy("still", Move(max_moves=0))]
    assert stands([node("n", 2)], [W], {}, told) == {}


def test_limits_on_moves_are_told_where_a_move_would_do() -> None:
    run = workload("run", 2, gpus=1, priority=9)
    at = {"run#0": place("n", 0), "run#1": place("m", 0)}
    rows = {"run#0": ("n", (0,)), "run#1": ("m", (0,))}
    nodes, one, still = [node("n", 2), node("m", 2)], workload("w", gpus=2), policy("still", Move(max_moves=0))
    assert stands(nodes, [one, run], rows, [still], at) == {"still": "alone"}
    assert stands(nodes, [one, replace(run, movable=False)], rows, [still], at) == {"still": "unknown"}
    two = [still, policy("calm", Move(max_moves=1))]
    assert stands(nodes, [one, run], rows, two, at) == {"still": "unknown", "calm": "unknown"}


def test_who_is_admitted_together_or_not_at_all() -> None:
    pair = policy("pair", Admission(or_none=True, per="tenant"))
    other = workload("z", gpus=8)
    assert stands([node("n", 2)], [workload("w", gpus=1), other], {}, [pair]) == {"pair": "alone"}


def test_modes_that_are_closed_to_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, either = (
        workload("w", roles=[role("", 1, replace(request(), share=share))])
        for share in (Share(200), Share(200, modes=("fraction", "mig")))
    )
    cut, shared = [on_w("p", Modes(("mig",)))], [on_w("p", Modes(("whole", "time-slice")))]
    nodes = [node("n", 1, mechanism="fraction")]
    assert stands(nodes, [plain], {}, cut) == {"p": "alone"}
    monkeypatch.setitem(CARDS, CARD, card(CARD))
    assert stands(nodes, [either], {}, cut) == {"p": "idle"}
    assert stands(nodes, [plain], {}, shared) == {"p": "idle"}
    full = [plain, workload("full", gpus=1)]
    assert stands(nodes, full, {"full#0": ("n", (0,))}, cut) == {"p": "aside"}


GANG = workload("w", 3, gpus=2, type="gang")


@pytest.mark.parametrize(
    ("nodes", "policies", "told"),
    [
        ([2, 2], {"q": gpus(6)}, {"q": "aside"}),
        ([2, 2, 2], {"q": gpus(5)}, {"q": "alone"}),
        ([2, 2, 2], {"q": gpus(6)}, {"q": "idle"}),
        ([6], {"s": Spread("node", max_per_domain=1)}, {"s": "alone"}),
        ([6], {"s": Spread("node", max_per_domain=1), "q": gpus(6)}, {"s": "alone", "q": "idle"}),
        ([6], {"s": Spread("node", max_per_domain=1), "q": gpus(2)}, {"s": "together", "q": "together"}),
        ([2, 2, 2], {"a": gpus(1), "b": gpus(2), "c": gpus(6)}, {"a": "together", "b": "together", "c": "aside"}),
    ],
)
def test_a_gang_needs_all_of_its_places(nodes: list[int], policies: dict[str, Rule], told: dict[str, str]) -> None:
    made = [node(f"n{index}", size) for index, size in enumerate(nodes)]
    found = bars(made, [GANG], {}, [on_w(name, rule) for name, rule in policies.items()])
    assert {name: bar.stand for name, bar in found.items()} == told
    assert {bar.needed for bar in found.values()} == {3}


def test_replicas_that_come_in_groups_or_steps_are_asked_for_together() -> None:
    pairs = replace(workload("w", 6, gpus=2), min_replicas=2, topology=Topology(groups=(Group("rack", 2),)))
    demanded = policy_of([pairs])
    assert demanded is not None
    nodes = [node(f"n{index}", 2, domains={"rack": f"r{index // 3}"}) for index in range(6)]
    rows = {f"w#{index}": (f"n{(0, 1, 3, 4)[index]}", (0, 1)) for index in range(4)}
    found = bars(nodes, [pairs], rows, [demanded, on_w("q", gpus(12))])
    assert {name: (bar.stand, bar.needed) for name, bar in found.items()} == {
        "workload-topology": ("alone", 2),
        "q": ("idle", 2),
    }
    lead = role("lead", 1, request(2), least=1)
    steps = workload("w", roles=[lead, role("more", 4, request(2), least=0, step=2)], min_replicas=1)
    assert stands(nodes, [steps], {"w.lead#0": ("n0", (0, 1))}, [on_w("q", gpus(2))]) == {"q": "unknown"}


def test_an_elastic_gang_is_asked_for_at_its_narrowest_and_then_by_steps() -> None:
    asked = replace(role("", 10, request(2)), least=2, step=4)
    gang = replace(workload("w", type="gang", roles=[asked]), min_replicas=2)
    limit = [on_w("q", gpus(4))]
    (bar,) = bars([node("n0", 2)], [gang], {}, limit).values()
    assert (bar.stand, bar.needed, bar.spent) == ("aside", 2, False)
    rows = {f"w#{index}": ("n0", (2 * index, 2 * index + 1)) for index in range(2)}
    (bar,) = bars([node("n0", 16)], [gang], rows, limit).values()
    assert (bar.stand, bar.needed) == ("alone", 4)


def test_a_gang_that_must_be_together() -> None:
    gang = replace(GANG, topology=Topology("rack"))
    nodes = [node(f"n{index}", 2, domains={"rack": f"r{index // 2}"}) for index in range(4)]
    demanded = policy_of([gang])
    assert demanded is not None
    assert stands(nodes, [gang], {}, [demanded, on_w("q", gpus(6))])[demanded.name] == "aside"
    wide = [node(f"n{index}", 2, domains={"rack": f"r{index // 3}"}) for index in range(4)]
    found = stands(wide, [gang], {}, [demanded, on_w("off", Forbid(), "n0")])
    assert found == {demanded.name: "alone", "off": "alone"} or found["off"] == "alone"


def test_a_document_tells_it_and_follows_the_schema() -> None:
    found = [json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.rglob("*.json")]
    registry: Any = Registry().with_resources([(each["$id"], Resource.from_contents(each)) for each in found])
    schema = next(each for each in found if each["title"] == "Explanation")
    spec = make_spec([node("n", 2)], [W], [on_w("off", Forbid(), "n"), on_w("q", gpus(0)), on_w("ample", gpus(9))])
    plan, work = plan_for(spec, {}), spec.by_id["w"]
    document = to_document(Explanation(spec, plan, work, barring(spec, plan, work)))
    Draft202012Validator(schema, registry=registry).validate(document)
    assert document["spec"]["bars"] == [
        {"policy": "ample", "stands": "aside", "replicas": 1, "spent": False},
        {"policy": "off", "stands": "together", "replicas": 1, "spent": False, "beside": ["q"], "evicting": False},
        {"policy": "q", "stands": "together", "replicas": 1, "spent": True, "beside": ["off"], "evicting": False},
    ]


def _hard(seed: int) -> Spec:
    spec = tiny(seed)
    return replace(spec, policies=tuple(replace(each, enforcement=Enforcement("hard")) for each in spec.policies))


def _in_cohort(spec: Spec, seed: int) -> Spec:
    """Return a Spec whose namespaces lend to each other, the one that tells of both being no part of most work."""
    amounts = (("gpus", 1000 * (seed % 3)),)
    more = [
        policy(name, Quota((), guaranteed=amounts, cohort="c"), workloads=WorkloadSelector(namespaces=(space,)))
        for name, space in (("a-blue", "blue"), ("b-red", "red"))
    ]
    return replace(spec, policies=tuple(sorted((*spec.policies, *more), key=lambda each: each.name)))


def _as_without(spec: Spec, told: Counter[str]) -> None:
    """Hold what is said of each policy against what there is room for without it."""
    plan = plan_for(spec, greedy(spec), "feasible")
    for name in plan.admitted:
        for bar in barring(spec, plan, spec.by_id[name]):
            if bar.policy.rule.needs_current or bar.evicting or bar.stand == "unknown":
                continue
            without = spec
            for gone in (bar.policy.name, *bar.beside):
                without = without_policy(without, gone)
            found = _verdict(context_of(without), plan, without.by_id[name], bar.needed)
            told[bar.stand] += 1
            if bar.needed == 1 or bar.stand != "idle":
                assert found.open == (bar.stand in ("alone", "together", "idle")), bar


def test_it_is_as_a_plan_without_the_policy_would_have_it() -> None:
    told: Counter[str] = Counter()
    for seed in range(240):
        _as_without(_hard(seed), told)
    assert min(told[each] for each in ("alone", "together", "aside", "idle")) > 5, told


def test_of_quotas_that_lend_to_each_other_each_is_left_out() -> None:
    told: Counter[str] = Counter()
    for seed in range(120):
        _as_without(_in_cohort(_hard(seed), seed), told)
    assert min(told[each] for each in ("alone", "aside", "idle")) > 5, told


def test_accounts_say_what_whole_checks_say(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [(spec, plan_for(spec, greedy(spec), "feasible")) for spec in map(_hard, range(120))]
    quick = [barring(spec, plan, spec.by_id[name]) for spec, plan in made for name in plan.admitted]
    with monkeypatch.context() as patch:
        patch.setattr(Trials, "_rises", lambda *_: True)
        patch.setattr(Trials, "_certain", lambda *_: False)
        whole = [barring(spec, plan, spec.by_id[name]) for spec, plan in made for name in plan.admitted]
    assert quick == whole
