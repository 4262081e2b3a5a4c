"""Renderings: nothing that a document holds steers a terminal, a page, or a build server."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from dovetail.diff import Change, Row, diff
from dovetail.faults import Fault, Position
from dovetail.placement import Place
from dovetail.plan import AdmissionResult, Outcome, Plan, PolicyResult, TierResult
from dovetail.plan.plain import SUMMARY
from dovetail.spec import ReplicaId
from dovetail_cli.render import annotation, github, gitlab, junit, markdown, sarif, text
from dovetail_cli.render.columns import Screen, layout
from dovetail_cli.render.review import Review, figures
from dovetail_cli.render.words import amount, human_change, human_value, nodes, percent, printable, signed

EVIL = "x\x1b[31m\r\n| <script>alert(1)</script> ` @team #1 **b** \u202e ]("
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


def plan(workloads: int, name: str = "demo", shift: int = 0) -> Plan:
    """A plan of many workloads with names as long as they may be."""
    rows = {ReplicaId(f"team/{'w' * 50}-{i}", "", 0): Place(f"node-{i + shift}", (0, 1)) for i in range(workloads)}
    fail = PolicyResult("hard", "fail", 1, "replicas", {f"subject-{i}": 1 for i in range(9)})
    return Plan(
        name,
        "sha256:" + "0" * 64,
        Outcome("feasible"),
        tiers=(TierResult("admitted[0]", 1, 2, "milli-GPU", "max", "solver"),),
        summary={"admittedFull": workloads, "workloads": workloads},
        placements=rows,
        policies={f"{'p' * 50}-{i}": fail for i in range(workloads // 10)},
        admitted={f"wait/{'w' * 50}-{i}": AdmissionResult("none", 0, 2, ("DT4101",)) for i in range(workloads)},
    )


def changed(workloads: int) -> Review:
    before = replace(plan(workloads), admitted={f"wait/{'w' * 50}-0": AdmissionResult("none", 0, 2, ("DT4101",))})
    after = plan(workloads, shift=1)
    return Review(after, diff(before, after), "plan.yaml")


@pytest.mark.parametrize("workloads", [1, 30, 300, 3000, 8000])
def test_markdown_is_never_longer_than_a_comment(workloads: int) -> None:
    found = markdown.rendered(changed(workloads))
    assert len(found) <= markdown.LARGEST
    assert found.startswith("<!-- dovetail:plan demo -->\n### dovetail plan: `demo`\n\n**FEASIBLE")
    assert found.count("<details") == found.count("</details>")
    assert "| admitted | " in found


def test_what_is_least_needed_is_shed_first() -> None:
    sections = [markdown.Section(name, ("x" * 99,) * 50) for name in ("proof", "failures", "replicas", "changes")]
    small = markdown.shed(sections, 12_000)
    assert [(s.name, s.shed > 0) for s in small] == [
        ("proof", False), ("failures", False), ("replicas", True), ("changes", True),
    ]  # fmt: skip
    assert "more lines left out" in small[2].text()
    assert [s.shed for s in markdown.shed(sections, 100_000)] == [0, 0, 0, 0]


@pytest.mark.parametrize("write", [markdown.code, markdown.text])
def test_markdown_takes_no_markup_from_names(write: object) -> None:
    assert callable(write)
    found = write(EVIL)
    assert not CONTROL.search(found)
    assert "\n" not in found
    body = found.removeprefix("<code>").removesuffix("</code>")
    assert not re.search(r"[<>|`*@\[\]]", body)


def moved(before: Place, after: Place) -> Review:
    base, target = (replace(plan(0), placements={ReplicaId("w", "", 0): place}) for place in (before, after))
    return Review(target, diff(base, target), "plan.yaml", detail=True)


@pytest.mark.parametrize(
    ("after", "where", "row"),
    [
        (Place("n", (0,), "1g.10gb@3"), "n, other instances", "n gpu 0 1g.10gb@2 -> n gpu 0 1g.10gb@3"),
        (Place("n", (1,), "1g.10gb@2"), "n, other GPUs", "n gpu 0 1g.10gb@2 -> n gpu 1 1g.10gb@2"),
        (Place("m", (0,), "1g.10gb@2"), "n -> m", "n gpu 0 1g.10gb@2 -> m gpu 0 1g.10gb@2"),
    ],
)
def test_moves_between_instances_tell_them(after: Place, where: str, row: str) -> None:
    review = moved(Place("n", (0,), "1g.10gb@2"), after)
    assert f"  ~  w  1x GPU  {where}  1 replica moved\n      w#0  {row}\n" in text.rendered(review)
    found = markdown.rendered(review)
    assert f"| {markdown.code(where)} |" in found
    assert f"| {markdown.code(row)} |" in found


def test_who_restarts_in_place_has_one_place() -> None:
    place = Place("n", (0, 1))
    row = Row("w", 0, 1, place, place)
    change = Change("restart", "w", 2, shape="2x GPU", why="GPUs are cut anew", rows=(row,))
    same = plan(0)
    review = Review(same, replace(diff(same, same), changes=(change,)), "plan.yaml", detail=True)
    said = "2 replicas restarted in place: GPUs are cut anew"
    assert f"  ~  w  2x GPU  n  {said}\n      w#0-1  n gpu 0-1\n" in text.rendered(review)
    assert "Workloads: 1 restarted in place." in markdown.rendered(review)


def test_markers_cannot_be_left() -> None:
    found = markdown.rendered(Review(plan(1, name="a --> <b>")))
    assert found.splitlines()[0] == "<!-- dovetail:plan a------b- -->"


def test_text_shows_control_characters_as_text() -> None:
    bad = plan(1, name=EVIL)
    found = text.rendered(
        Review(replace(bad, policies={EVIL: bad.policies.get("p", PolicyResult("hard", "fail", 1, EVIL))}))
    )
    assert not CONTROL.search(found)
    assert "\\x1b[31m" in found
    assert "\\u202e" in found


def test_what_today_excuses_is_shown() -> None:
    found = PolicyResult("hard", "pass", 1, "extra values in a domain", {"h100-000": 1}, excused=1)
    review = Review(replace(plan(1), policies={"apart": found}))
    said = "1 extra value in a domain, as today: h100-000 (1)"
    assert f"  ?  policy apart  hard, excused    {said}\n" in text.rendered(review)
    assert (
        "**Policies that are broken as today, and excused**\n\n- :warning: `apart`, hard: 1 extra"
        in markdown.rendered(review)
    )
    assert f"::notice title=policy apart::hard policy apart is excused: {said}\n" in github.rendered(
        annotation.of_review(review)
    )


@pytest.mark.parametrize("missing", SUMMARY)
def test_a_figure_that_a_plan_does_not_tell_is_not_shown(missing: str) -> None:
    told = dict.fromkeys(SUMMARY, 1)
    whole = replace(plan(1), summary=told)
    part = replace(whole, summary={key: value for key, value in told.items() if key != missing})
    for review in (Review(part), Review(part, diff(whole, part)), Review(whole, diff(part, whole))):
        shown = dict(figures(review))
        assert ("admitted" in shown) == told_all(review, "admittedFull", "workloads")
        assert ("GPUs allocated" in shown) == told_all(review, "gpusAllocated", "gpusTotal")
        assert ("used" in shown) == told_all(review, "gpusUsed", "gpusUsedKnown")
        assert ("fragmented" in shown) == told_all(review, "gpusFragmented", "fragmentationRate")
        assert text.rendered(review)
        assert markdown.rendered(review)


def told_all(review: Review, *keys: str) -> bool:
    return review.plan.summary.keys() >= set(keys)


def test_differences_are_those_of_the_figures_beside_them() -> None:
    before, after = 48_000 - 1, 4_200_000
    assert [human_value(before, "milli-GPU s"), human_value(after, "milli-GPU s")] == ["0.013", "1.167"]
    assert human_change(before, after, "milli-GPU s") == "+1.154"
    assert [human_change(3, 1, "replicas"), human_change(0, 0, "milli-GPU")] == ["-2", "+0"]


def test_plain_text_is_left_alone() -> None:
    assert printable("Zürich 日本 -> a\tb", keep="\t") == "Zürich 日本 -> a\tb"


def test_annotations_are_escaped() -> None:
    fault = Fault("DT1103", "50% of\nx::error::y", Position("a,b:c.yaml", 3, 5), hint="h")
    assert github.rendered(annotation.of_faults([fault])) == (
        "::error file=a%2Cb%3Ac.yaml,line=3,col=5,title=DT1103::50%25 of%0Ax::error::y%0Ahint: h\n"
    )


def test_at_most_ten_annotations_of_a_level() -> None:
    faults = [Fault("DT1103", f"fault {i}", Position("a.yaml", i + 1, 1)) for i in range(25)]
    lines = github.rendered(
        annotation.of_faults([*faults, Fault("DT1901", "odd", None, severity="warning")])
    ).splitlines()
    assert len(lines) == 11
    assert lines[9] == "::error title=dovetail::and 16 more errors"
    assert lines[10] == "::warning title=DT1901::odd"
    assert len(github.rendered(annotation.of_faults(faults[:10])).splitlines()) == 10


def test_columns_are_as_wide_as_what_stands_in_them() -> None:
    assert layout([("+", "a", "1", "x"), ("~", "bbb", "22", "y")], right=(2,)) == [
        "  +  a     1  x",
        "  ~  bbb  22  y",
    ]


def test_a_narrow_terminal_wraps_the_last_column_and_loses_nothing() -> None:
    row = ("!", "search/web", "not admitted: " + "no room " * 12)
    lines = layout([row], Screen(width=50))
    assert max(map(len, lines)) <= 50
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(row).split())
    assert len(layout([row])) == 1


def test_colours_are_for_screens_that_show_them() -> None:
    assert layout([("+", "a")], Screen(colours=True)) == ["\x1b[32m  +  a\x1b[0m"]
    assert layout([("+", "a")]) == ["  +  a"]


def test_numbers_read_well() -> None:
    assert [amount(1912), amount(1912.375), amount(2.50), signed(0), signed(-40), signed(1.5)] == [
        "1,912", "1,912.375", "2.5", "+0", "-40", "+1.5",
    ]  # fmt: skip
    assert [percent(0), percent(0.0154), percent(1e-9)] == ["0 %", "1.54 %", "< 0.01 %"]


def test_nodes_fold_and_many_are_counted() -> None:
    assert nodes(["gpu-2", "gpu-1", "gpu-3"]) == "gpu-[1-3]"
    assert nodes(f"{letter}{'x' * 20}" for letter in "abcdef") == f"a{'x' * 20} ... f{'x' * 20} (6 nodes)"
    assert nodes([EVIL]) == EVIL


EVERYWHERE = [
    annotation.Annotation("error", "DT1103", "DT1103", f'a <b> & "c" {EVIL}', Position("a b%/c.yaml", 3, 5)),
    annotation.Annotation("warning", "undecided", "PolicyTest x: y", "same", Position("/tmp/d.yaml", 1, 1)),
    annotation.Annotation("notice", "undecided", "PolicyTest x: y", "same", Position("/tmp/d.yaml", 9, 9)),
    annotation.Annotation("error", EVIL, EVIL, "no place"),
]


def test_sarif_keeps_to_what_the_standard_requires() -> None:
    found = json.loads(sarif.rendered(EVERYWHERE))
    assert (found["version"], len(found["runs"])) == ("2.1.0", 1)
    driver, results = found["runs"][0]["tool"]["driver"], found["runs"][0]["results"]
    assert driver["name"] == "dovetail"
    assert driver["version"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert [result["level"] for result in results] == ["error", "warning", "note", "error"]
    for result in results:
        assert result["message"]["text"]
        assert ids[result["ruleIndex"]] == result["ruleId"]
    places = [result["locations"][0]["physicalLocation"] for result in results[:3]]
    assert [place["artifactLocation"]["uri"] for place in places] == ["a%20b%25/c.yaml", *["file:///tmp/d.yaml"] * 2]
    assert places[0]["region"] == {"startLine": 3, "startColumn": 5}
    assert "locations" not in results[3]
    assert not CONTROL.search("".join(result["message"]["text"] for result in results))


def test_gitlab_issues_have_a_place_a_severity_and_fingerprints_of_their_own() -> None:
    found = json.loads(gitlab.rendered(EVERYWHERE))
    assert [each["severity"] for each in found] == ["major", "minor", "info", "major"]
    assert all(each.keys() >= {"description", "check_name", "fingerprint", "severity", "location"} for each in found)
    assert [each["location"]["path"] for each in found][::3] == ["a b%/c.yaml", "dovetail.yaml"]
    assert [each["location"]["lines"]["begin"] for each in found] == [3, 1, 9, 1]
    assert len({each["fingerprint"] for each in found}) == 4
    assert json.loads(gitlab.rendered([])) == []


def test_fingerprints_stay_where_lines_move() -> None:
    moved = [replace(each, position=Position("/tmp/d.yaml", 40, 2)) for each in EVERYWHERE[1:2]]
    assert annotation.fingerprints(moved) == annotation.fingerprints(EVERYWHERE[1:2])


def test_junit_counts_its_cases_and_takes_no_markup_from_names() -> None:
    troubles = [None, *(junit.Trouble(kind, "t", EVIL, f"]]>{EVIL}") for kind in ("failure", "error", "skipped"))]
    cases = tuple(junit.Case(f"{EVIL}{i}", EVIL, trouble, None, 0.5) for i, trouble in enumerate(troubles))
    text = junit.rendered([junit.Suite(EVIL, cases), junit.Suite("none", ())], EVIL)
    assert not CONTROL.search(text)
    root = ElementTree.fromstring(text)
    assert (root.tag, root.attrib["tests"], root.attrib["failures"], root.attrib["time"]) == (
        "testsuites",
        "4",
        "1",
        "2.000",
    )
    suite = root[0]
    assert {key: suite.attrib[key] for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "1", "errors": "1", "skipped": "1",
    }  # fmt: skip
    assert [[below.tag for below in case] for case in suite] == [[], ["failure"], ["error"], ["skipped"]]
    assert all(case.attrib["name"] and case.attrib["classname"] for case in suite)
    assert "<script>" in suite[1][0].attrib["message"]
    assert "<script>" not in text
