"""Gang cases are planned field by field as their truth says, and a case that makes no sense costs no other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks import gang_cases
from benchmarks.gang import answer, check
from benchmarks.gang.alike import as_kinds, dealt
from benchmarks.gang.answer import Answer
from benchmarks.gang.declare import declare
from benchmarks.gang.read import read_case
from benchmarks.gang.tokens import heavy
from benchmarks.gang.work import Mode
from tests.benchmarks.gang_mixed import counted, mixed, nested
from tests.benchmarks.gang_peers import PEERS
from tests.benchmarks.gang_samples import SAMPLES, case, gang, node
from tests.benchmarks.gang_strained import STRAINED, strained
from tests.benchmarks.gang_truth import truth

from dovetail.engine import solve
from dovetail.plan import Plan
from dovetail.plan.model import Outcome
from dovetail.problem import compile_problem
from dovetail.progress import Limits
from dovetail.rules import context_of
from dovetail.spec import Spec

LEAST = {"moved": "moves", "evicted": "fewest_victims"}
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))


@pytest.mark.parametrize("sample", [*SAMPLES, *PEERS, *STRAINED], ids=lambda sample: sample["id"])
def test_a_sample_has_its_truth(sample: dict[str, Any]) -> None:
    told = gang_cases.plan_case(sample)
    assert told["status"] in ("optimal", "infeasible", "invalid"), told
    assert told["agrees"], told
    assert all(told["agrees"].values()), told
    assert "faults" not in told


@pytest.mark.parametrize("sample", STRAINED, ids=lambda sample: sample["id"])
def test_the_truth_of_strained_samples_is_that_of_trying_everything(sample: dict[str, Any]) -> None:
    assert truth(sample) == sample["truth"]


def test_fields_that_the_form_does_not_have_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = {**SAMPLES[0], "colour": "red", "gangs": [{**SAMPLES[0]["gangs"][0], "anti_affinity": ["h"]}]}
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [odd, *SAMPLES[1:3]]}), encoding="utf-8")
    assert gang_cases.main([str(file)]) == 0
    assert capsys.readouterr().err == "elastic: not of the form, and not heeded: colour, gangs.anti_affinity\n"


def test_cases_without_sense_have_a_status_and_cost_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [{"id": "empty"}, {"id": "odd", "nodes": [{"name": "n"}], "gangs": [{"pods": "many"}]}, {"id": "none"}]
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [*bad, SAMPLES[0]]}), encoding="utf-8")
    assert gang_cases.main([str(file), "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"empty", "odd", "none", "elastic"}
    assert told["odd"]["status"] == "invalid"
    assert told["elastic"]["fits"]


def test_what_is_no_case_costs_no_other(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps([5, None, SAMPLES[0]]), encoding="utf-8")
    told = gang_cases.plan_file(file)
    assert {name: each["status"] for name, each in told.items()} == {
        "#0": "invalid",
        "#1": "invalid",
        "elastic": "optimal",
    }
    assert not gang_cases.warnings(file)


def test_a_case_without_a_name_and_an_amount_that_is_null_are_read() -> None:
    sample = case("c", [node("a"), node("b")], [gang("g", 2)], {"fits": True})
    sample["nodes"][0]["free"]["gpu"] = None
    told = gang_cases.plan_case({key: value for key, value in sample.items() if key != "id"})
    assert told["placement"] == {"g": {"b": 2}}


@pytest.mark.parametrize(("weights", "home"), [({"a": 0.5}, "a"), ({"a": 0.25, "b": 0.5}, "b"), ({"b": None}, None)])
def test_nodes_may_be_preferred_by_parts_of_a_whole(weights: dict[str, float | None], home: str | None) -> None:
    sample = case("c", [node("a"), node("b")], [gang("g", 1, prefer_nodes=weights)], {"fits": True})
    told = gang_cases.plan_case(sample)
    assert told["fits"]
    assert home is None or told["placement"] == {"g": {home: 1}}


@pytest.mark.parametrize("size", [0, -2])
def test_slices_of_no_pods_make_no_sense(size: int) -> None:
    sample = case("c", [node("a")], [gang("g", 2, slices=[{"level": "host", "size": size}])], {"fits": False})
    told = gang_cases.plan_case(sample)
    assert (told["fits"], told["status"]) == (False, "invalid")
    assert told["reason"] == "g: slices of less than one pod"


@pytest.mark.parametrize(
    ("sample", "placement", "words"),
    [
        (case("c", [node("a")], [gang("g", 5)], {}), {"g": {"a": 5}}, "wanted"),
        (case("c", [node("a"), node("b")], [gang("g", 2)], {}), {"g": {"a": 1}}, "wanted 2"),
        (case("c", [node("a")], [gang("g", 1, eligible_nodes=[])], {}), {"g": {"a": 1}}, "not eligible"),
        (
            case("c", [node("a", "b/r"), node("b", "b/q")], [gang("g", 2, topology={"required": "rack"})], {}),
            {"g": {"a": 1, "b": 1}},
            "several domains",
        ),
        (
            case("c", [node("a")], [gang("g", 3, slices=[{"level": "host", "size": 2}])], {}),
            {"g": {"a": 3}},
            "multiple of 2",
        ),
        (case("c", [node("a"), node("b")], [gang("g", 2, pinned={"b": 1})], {}), {"g": {"a": 2}}, "pod left b"),
        (
            case("c", [node("a")], [gang("g", 2)], {}, limits=[{"gangs": ["g"], "resource": "gpu", "max_new": 1}]),
            {"g": {"a": 2}},
            "at most 1",
        ),
        (
            case("c", [node("a", "b/r")], [gang("g", 1)], {}, reserve=[{"level": "rack", "count": 1}]),
            {"g": {"a": 1}},
            "whole domains",
        ),
        (
            case("c", [node("a")], [gang("x", 1), gang("y", 1)], {}, co_locate=[{"gangs": ["x", "y"]}]),
            {"x": {"a": 1}},
            "in part",
        ),
    ],
)
def test_the_check_finds_what_breaks_a_case(sample: dict[str, Any], placement: Any, words: str) -> None:
    found = check.faults(read_case(sample), Answer(True, "optimal", placement))
    assert any(words in each for each in found), found


def disagreements(first: int, count: int, made: Callable[[int], dict[str, Any]] = mixed) -> list[str]:
    """Return how the answers to random cases differ from what trying everything finds."""
    found = []
    for seed in range(first, first + count):
        sample = made(seed)
        told = gang_cases.plan_case(sample)
        wrong = [aspect for aspect, same in told["agrees"].items() if not same]
        wrong += told.get("faults", ()) if told["fits"] else ()
        wrong += [key for key in ("moved", "evicted") if told.get(key) and LEAST[key] not in sample["truth"]]
        if wrong or told["status"] not in ("optimal", "infeasible", "invalid"):
            found.append(f"seed {seed}: {wrong}, {told['status']}")
    return found


@pytest.mark.parametrize("first", range(0, 45, 15))
def test_cases_of_all_fields_are_answered_as_by_trying_everything(first: int) -> None:
    assert disagreements(first, 15) == []


@pytest.mark.parametrize("seed", [10412, 12174])
def test_cases_of_kept_pods_that_no_whole_slice_has_are_answered_so_too(seed: int) -> None:
    assert disagreements(seed, 1) == []


@pytest.mark.parametrize("first", range(0, 30, 15))
def test_sets_in_sets_and_pods_that_are_gone_are_answered_so_too(first: int) -> None:
    assert disagreements(first, 15, nested) == []


@pytest.mark.parametrize("first", range(0, 30, 15))
def test_sets_that_count_pods_are_answered_so_too(first: int) -> None:
    assert disagreements(first, 15, counted) == []


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_nodes_that_are_overdrawn_or_outside_some_levels_are_answered_so_too(first: int) -> None:
    assert disagreements(first, 20, strained) == []


@pytest.mark.parametrize("seed", [10044, 12623])
def test_a_set_that_counts_pods_is_away_as_a_whole_where_that_spans_less(seed: int) -> None:
    assert disagreements(seed, 1, counted) == []


@pytest.mark.parametrize("seed", [11017])
def test_what_keeps_pods_at_wrong_places_is_left_as_it_is_where_it_may_be_away(seed: int) -> None:
    assert disagreements(seed, 1, counted) == []


@pytest.mark.campaign
@pytest.mark.parametrize("chunk", range(10))
def test_thousands_of_cases_are_answered_as_by_trying_everything(chunk: int) -> None:
    first = CAMPAIGN_FIRST + chunk * 500
    print(f"seeds {first} to {first + 499}")
    assert disagreements(first, 500) == []
    assert disagreements(first, 200, nested) == []
    assert disagreements(first, 200, counted) == []
    assert disagreements(first, 200, strained) == []


def test_gangs_of_one_name_in_several_jobs_are_told_by_their_jobs() -> None:
    jobs = [{"name": name, "gangs": [gang("main", 4), gang(f"of-{name}", 4)]} for name in ("one", "two")]
    nodes = [node(name) for name in "abcd"]
    told = gang_cases.plan_case(case("c", nodes, [], {"fits": True}, jobs=jobs))
    assert sorted(told["placement"]) == ["of-one", "of-two", "one/main", "two/main"]
    told = gang_cases.plan_case(case("c", nodes, [gang("main", 4)], {"fits": True}, jobs=jobs))
    assert sorted(told["placement"]) == ["main", "of-one", "of-two"]


def test_gangs_of_one_name_in_one_job_make_no_sense() -> None:
    jobs = [{"name": "one", "gangs": [gang("main", 1), gang("main", 2)]}]
    told = gang_cases.plan_case(case("c", [node("a")], [], {"fits": False}, jobs=jobs))
    assert (told["status"], told["reason"]) == ("invalid", "gang 'main' is there twice")


def test_victims_under_the_name_of_a_gang_are_not_its_own_pods() -> None:
    running = [{"name": name, "on": {"a": 1}, "per_pod": {"gpu": 2}, "evictable": True} for name in ("g", "g-2")]
    told = gang_cases.plan_case(
        case("c", [node("a", gpu=0)], [gang("g", 1, 4)], {"fewest_victims": 2}, running=running)
    )
    assert (told["fits"], told["evicted"], told["placement"]) == (False, ["g", "g-2"], {"g": {"a": 1}})


def test_pods_that_move_under_the_name_of_a_gang_are_not_its_own() -> None:
    running = [{"name": "g", "on": {"a": 1}, "per_pod": {"gpu": 2}, "movable": True}]
    nodes = [node("a", gpu=2), node("b", gpu=2)]
    told = gang_cases.plan_case(case("c", nodes, [gang("g", 1, 4)], {"moves": 1}, running=running))
    assert (told["moved"], told["placement"]) == ([{"pods": "g", "from": "a", "to": "b"}], {"g": {"a": 1}})


@pytest.mark.parametrize("priorities", [(5, 1, 3), (3, 5, 1), (1, 3, 5)])
def test_of_as_many_victims_those_of_the_lowest_priority_go(priorities: tuple[int, ...]) -> None:
    nodes = [node(name, gpu=0) for name in "abc"]
    running = [
        {"name": f"r{priority}", "on": {name: 1}, "per_pod": {"gpu": 1}, "evictable": True, "priority": priority}
        for name, priority in zip("abc", priorities, strict=True)
    ]
    told = gang_cases.plan_case(case("victims", nodes, [gang("g", 2)], {"fewest_victims": 2}, running=running))
    assert sorted(told["evicted"]) == ["r1", "r3"]


def test_amounts_that_are_no_whole_numbers_are_refused() -> None:
    told = gang_cases.plan_case(case("halves", [node("a", gpu=2)], [gang("g", 4, 0.5)], {}))  # type: ignore[arg-type]
    assert (told["fits"], told["status"]) == (False, "invalid")
    assert "0.5" in told["reason"]


def test_no_job_is_admitted_where_not_even_what_is_outside_all_jobs_fits() -> None:
    gangs = [gang("kept", 2, pinned={"a": 1}), gang("outside", 1, 9)]
    told = gang_cases.plan_case(
        case("c", [node("a")], gangs, {"fits": False}, jobs=[{"name": "j", "gangs": ["kept"]}])
    )
    assert (told["fits"], told["status"], told["admitted"]) == (False, "infeasible", [])


def test_a_most_that_is_not_told_bounds_nothing() -> None:
    limits = [{"gangs": ["g"], "resource": "gpu", "max_new": None}, {"gangs": ["g"], "resource": "pods"}]
    wide = gang("g", 3, spread=[{"level": "host", "max": None}])
    told = gang_cases.plan_case(case("c", [node("a")], [wide], {}, limits=limits))
    assert (told["fits"], told["placement"]) == (True, {"g": {"a": 3}})


TWO_JOBS = case(
    "c",
    [node("a", gpu=4)],
    [gang("p", 3), gang("q", 2)],
    {"fits": False, "most_admitted": 1},
    jobs=[{"name": name, "gangs": [name]} for name in "pq"],
)


def test_as_many_jobs_as_there_can_be_is_a_tier_by_itself() -> None:
    read = read_case(TWO_JOBS)
    plan = solve(answer.spec_of(declare(read).documents), Limits(time=10.0))
    assert [(tier.name[:8], tier.value) for tier in plan.tiers[:2]] == [("admitted", heavy(read)), ("admitted", 3)]


def test_a_bound_below_what_is_needed_says_that_not_all_fit() -> None:
    alone = {key: value for key, value in TWO_JOBS.items() if key != "jobs"}
    for raw, all_of_it in ((TWO_JOBS, 2 * heavy(read_case(TWO_JOBS))), (alone, 5)):
        read = read_case(raw)
        plan = solve(answer.spec_of(declare(read).documents), Limits(time=10.0))
        first, *others = (tier for tier in plan.tiers if tier.name.startswith("admitted"))
        assert answer.too_few(read, [replace(first, bound=all_of_it - 1), *others])
        assert not answer.too_few(read, [replace(first, bound=all_of_it), *others])
        assert not answer.too_few(read, [replace(first, bound=None), *others])


@pytest.mark.parametrize("ability", ["movable", "evictable"])
def test_what_is_not_decided_of_changes_has_the_status_unknown(monkeypatch: pytest.MonkeyPatch, ability: str) -> None:
    """Changes that nobody found are not said to be of no use."""

    def hasty(spec: Spec, limits: Limits) -> Plan:
        plan = solve(spec, limits)
        open_ = replace(plan, tiers=(), placements={}, outcome=Outcome("unknown", "time"))
        return open_ if any(tier.name.startswith("disruption") for tier in plan.tiers) else plan

    monkeypatch.setattr(answer, "solve", hasty)
    running = [{"name": "r", "on": {"a": 1}, "per_pod": {"gpu": 2}, ability: True}]
    told = gang_cases.plan_case(
        case("c", [node("a", gpu=2), node("b", gpu=2)], [gang("g", 1, 4)], {}, running=running)
    )
    assert (told["fits"], told["status"]) == (False, "unknown")


@pytest.mark.parametrize(("gpus", "fits"), [(5, True), (4, False)])
def test_what_most_pods_leave_open_is_asked_by_itself(
    monkeypatch: pytest.MonkeyPatch, gpus: int, *, fits: bool
) -> None:
    asked: list[Spec] = []

    def hasty(spec: Spec, limits: Limits) -> Plan:
        asked.append(spec)
        plan = solve(spec, limits)
        open_ = replace(plan, tiers=(), placements={}, outcome=Outcome("unknown", "time"))
        return open_ if len(asked) == 1 else plan

    monkeypatch.setattr(answer, "solve", hasty)
    told = gang_cases.plan_case(case("c", [node("a", gpu=gpus)], [gang("p", 3), gang("q", 2)], {}))
    assert (told["fits"], len(asked)) == (fits, 2)


def test_pods_that_may_move_and_are_alike_are_one_workload() -> None:
    runs = [
        {"name": f"r{i}", "on": {"ab"[i % 2]: 1}, "per_pod": {"gpu": 1 + i // 4}, "movable": True} for i in range(6)
    ]
    read = read_case(case("c", [node("a", gpu=1), node("b", gpu=1)], [gang("g", 1)], {}, running=runs))
    kinds = as_kinds(read, read.running)
    assert [(each.name, each.on) for each in kinds.running] == [("r0", {"a": 2, "b": 2}), ("r4", {"a": 1, "b": 1})]
    pods = {"g": {"a": 1}, "r0": {"a": 1, "c": 2, "b": 1}, "r4": {"a": 1, "b": 1}}
    assert dealt(read.running, pods) == {
        "g": {"a": 1},
        "r0": {"a": 1},
        "r1": {"b": 1},
        "r2": {"c": 1},
        "r3": {"c": 1},
        "r4": {"a": 1},
        "r5": {"b": 1},
    }


@pytest.mark.parametrize(("mode", "whole"), [("now", True), ("moves", False), ("evictions", False)])
def test_beside_pods_that_may_leave_only_the_number_of_gpus_counts(mode: Mode, *, whole: bool) -> None:
    """Pods of one kind on a node share a place, and a count, where no GPUs tell them apart."""
    run = {"name": "r", "on": {"a": 2}, "per_pod": {"gpu": 1}, "movable": True, "evictable": True}
    read = read_case(case("c", [node("a", gpu=1), node("b")], [gang("g", 1)], {}, running=[run]))
    spec = answer.spec_of(declare(read, mode).documents)
    assert any(each.gpus for each in spec.cluster.nodes) == whole
    assert len(compile_problem(context_of(spec)).present.get(0, ())) == (not whole)


def test_moves_of_many_alike_are_told_by_the_names_of_those_that_move() -> None:
    """Two of four nodes that are half full by eight names each are emptied onto the others."""
    nodes = [node(name, gpu=4, pods=50) for name in "abcd"]
    one = {"per_pod": {"gpu": 1}, "movable": True}
    runs = [{"name": f"r{name}{i}", "on": {name: 1}, **one} for name in "abcd" for i in range(4)]
    told = gang_cases.plan_case(case("c", nodes, [gang("g", 2, 8)], {"fits": False, "moves": 8}, running=runs))
    assert all(told["agrees"].values())
    assert len({move["pods"] for move in told["moved"]}) == 8
    assert {(move["pods"][1], move["from"]) for move in told["moved"]} == {(n, n) for n in told["placement"]["g"]}
