"""The plan file's text: sorted, one row per line, quoted exactly where needed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.specs import place, places

from dovetail.documents import load_text
from dovetail.documents.scalars import resolve
from dovetail.placement import Place
from dovetail.plan import AdmissionResult, Outcome, Plan, PolicyResult, TierResult, gap_of, to_document, write
from dovetail.plan.canonical import flow, text
from dovetail.spec import ReplicaId

DIGEST = "sha256:" + 64 * "0"
CANONICAL = f"""\
apiVersion: dovetail/v1alpha1
kind: Plan
metadata: {{name: prod-eu}}
spec:
  inputs: {DIGEST}
  outcome: {{status: feasible, stoppedBy: time}}
  tiers:
  - {{name: "admitted[9]", value: 128000, bound: 130000, gap: 0.015385, unit: milli-GPU, sense: max, proof: solver}}
  - {{name: cost, value: 5, bound: null, gap: null, unit: u, sense: min, proof: none, given: {{a: 7}}, relaxed: [q]}}
  summary: {{admittedFull: 58, gpusAllocated: 1912.375, moves: 3}}
  placements:
    a/p#0-2: {{node: h100-001}}
    a/p#10: {{node: h100-001}}
    a/p#4: {{node: h100-001}}
    b/w.x#0: {{node: "007", gpus: [0, 1, 2]}}
  admitted:
    b/sweep: {{state: none, replicas: 0, of: 4, reasons: [DT4102, DT4107]}}
  policies:
    quota: {{result: fail, enforcement: hard, violation: 3, unit: above, excused: 1, subjects: {{all/gpus: 3}}}}
"""


@pytest.fixture
def plan() -> Plan:
    cpu_only = {f"a/p#{index}": place("h100-001") for index in (0, 1, 2, 4, 10)}
    return Plan(
        name="prod-eu",
        inputs=DIGEST,
        outcome=Outcome("feasible", stopped_by="time"),
        tiers=(
            TierResult("admitted[9]", 128_000, 130_000, "milli-GPU", "max", "solver"),
            TierResult("cost", 5, None, "u", "min", "none", {"a": 7}, ("q",)),
        ),
        summary={"moves": 3, "gpusAllocated": Decimal("1912.375"), "admittedFull": 58},
        placements=places({"b/w.x#0": place("007", 0, 1, 2), **cpu_only}),
        admitted={"b/sweep": AdmissionResult("none", 0, 4, ("DT4102", "DT4107"))},
        policies={"quota": PolicyResult("hard", "fail", 3, "above", {"all/gpus": 3}, 1)},
    )


def test_the_text_is_canonical(plan: Plan) -> None:
    assert write(plan) == CANONICAL


def test_the_text_keeps_to_the_schema_and_means_what_the_document_says(plan: Plan) -> None:
    (document,) = load_text(write(plan), "plan.yaml")
    assert document.value == _exact(to_document(plan))


def _exact(value: object) -> object:
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return Decimal(str(value)) if isinstance(value, float) else value


def test_one_move_changes_two_lines_at_most(plan: Plan) -> None:
    moved = {**plan.placements, ReplicaId("b/w", "x", 0): Place("008", (0, 1, 2))}
    before, after = write(plan).splitlines(), write(_with(plan, moved)).splitlines()
    assert len(before) == len(after)
    assert sum(left != right for left, right in zip(before, after, strict=True)) == 1


def _with(plan: Plan, moved: dict[ReplicaId, Place]) -> Plan:
    return Plan(plan.name, plan.inputs, plan.outcome, plan.tiers, plan.summary, moved, plan.admitted, plan.policies)


def test_replicas_on_different_gpus_never_share_a_row() -> None:
    plan = Plan("p", DIGEST, Outcome("feasible"), placements=places({f"w#{i}": place("n", i) for i in range(3)}))
    assert len(plan.placements) == write(plan).count("{node: n, gpus:")


def test_a_plan_without_places_is_short() -> None:
    text_ = write(Plan("p", DIGEST, Outcome("infeasible"), conflict=("a", "b")))
    assert text_.endswith("  tiers: []\n  summary: {}\n  conflict: [a, b]\n  placements: {}\n")


@pytest.mark.parametrize(
    ("value", "bound", "gap"),
    [
        (5, None, None),
        (5, 5, 0),
        (0, 0, 0),
        (999_999_999, 1_000_000_000, Decimal("0.000001")),
        (0, 3, 1),
        (1, 3, Decimal("0.666667")),
        (4, 3, Decimal("0.25")),
    ],
)
def test_gaps_are_rounded_up(value: int, bound: int | None, gap: Decimal | int | None) -> None:
    assert gap_of(value, bound) == gap


@pytest.mark.parametrize(
    "plain", ["a", "NO", "yes", "a b", "a#b", "a:b", "-a", ".5.", "a/b#0-411", "é", "::a", "1.2.3"]
)
def test_plain_texts_stand_without_quotes(plain: str) -> None:
    assert text(plain) == plain


@pytest.mark.parametrize(
    "odd",
    [
        *(
            "",
            "010",
            "1e3",
            "0x1f",
            ".inf",
            "null",
            "~",
            "true",
            "a: b",
            "a:",
            "a #b",
            "-",
            "- a",
            "?",
            "a[0]",
            "a,b",
        ),
        *(" a", "a ", "'a", '"', "@a", "`", "%a", "*a", "&a", "!a", "|", ">", "---", "...", "\t", "a\nb"),
        *("\x85", "\u2028"),
    ],
)
def test_texts_that_mean_more_are_quoted(odd: str) -> None:
    assert text(odd).startswith('"')
    (document,) = load_text(_holding(text(odd)), "plan.yaml")
    assert document.spec["conflict"] == [odd]


def _holding(item: str) -> str:
    rest = f"inputs: {DIGEST}, outcome: {{status: unknown}}, tiers: [], summary: {{}}, placements: {{}}"
    return f"apiVersion: dovetail/v1alpha1\nkind: Plan\nmetadata: {{name: p}}\nspec: {{{rest}, conflict: [{item}]}}\n"


@given(st.text(max_size=12))
def test_any_text_reads_back(value: str) -> None:
    (document,) = load_text(_holding(text(value)), "plan.yaml")
    assert document.spec["conflict"] == [value]


@given(st.text(alphabet="ab0.-:#,[]{}' \"?~e", max_size=6))
def test_quotes_stand_only_where_they_are_needed(value: str) -> None:
    quoted = text(value)
    if quoted == value or value[:1] in ("-", "?", ":") or value.startswith("..."):
        return  # libyaml is more lenient than YAML 1.2 about these at a text's start
    try:
        (document,) = load_text(_holding(value), "plan.yaml")
    except Exception:
        return
    assert document.spec["conflict"] != [value]


def test_flow_style_has_exact_decimals_and_truth_values() -> None:
    assert flow({"a": Decimal("0.000001"), "b": [True, None, 2]}) == "{a: 0.000001, b: [true, null, 2]}"
    assert isinstance(resolve("0.000001"), Decimal)
