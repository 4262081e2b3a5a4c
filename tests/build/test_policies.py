"""Policies of packs and documents, waivers, objectives; and what is only warned of (S4, S5.1)."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from tests.build.text import (
    AS_OF,
    JOB,
    SMALL,
    built,
    cluster,
    codes,
    document,
    faults_of,
    policy,
    project,
    spec_of,
    workload,
)

from dovetail.build import build
from dovetail.build.rules import READERS
from dovetail.documents import load_project
from dovetail.resources import pack_names
from dovetail.rules import TABLE
from dovetail.rules.move import Move, Window
from dovetail.rules.quota import Quota
from dovetail.rules.spread import Spread
from dovetail.spec import Objective

WORK = workload(JOB, "w", ", namespace: team, labels: {app: web}")
OTHER = workload(JOB, "v", ", namespace: crew")


def packs(**rules: str) -> str:
    """Return a pack named `pack` with a policy per name."""
    rows = [f"- {{name: {name}, description: Why., {rule}}}" for name, rule in rules.items()]
    return document("PolicyPack", "pack", "\n".join(['version: "1"', "description: A pack.", "policies:", *rows]))


AUDIT = "rule: {admission: {}}, enforcement: audit"


def test_every_rule_has_a_reader_and_every_reader_a_rule() -> None:
    assert READERS.keys() == TABLE.keys()


def test_packs_apply_only_where_the_project_names_them() -> None:
    assert spec_of(project(), SMALL, packs(a=AUDIT)).policies == ()
    found = spec_of(project("packs: [pack]"), SMALL, packs(b=AUDIT, a=AUDIT)).policies
    assert [(each.name, each.origin) for each in found] == [("a", "pack"), ("b", "pack")]


def test_a_document_replaces_the_policy_of_a_pack() -> None:
    own = policy("rule: {move: {maxMoves: 3}}", name="a")
    found = spec_of(project("packs: [pack]"), SMALL, packs(a=AUDIT, b=AUDIT), own).policies
    assert [each.name for each in found] == ["a", "b"]
    assert (found[0].rule, found[0].origin) == (Move(max_moves=3), "")


def test_a_policy_of_a_pack_can_be_left_out() -> None:
    head = project("packs: [pack]\nwithoutPolicies: [a]")
    assert [each.name for each in spec_of(head, SMALL, packs(a=AUDIT, b=AUDIT)).policies] == ["b"]


@pytest.mark.parametrize("name", pack_names())
def test_every_shipped_pack_builds_without_a_warning(name: str, tmp_path: Path) -> None:
    (tmp_path / "dovetail.yaml").write_text(project(f"packs: [{name}]") + "---\n" + SMALL)
    assert build(load_project(tmp_path), as_of=AS_OF).policies


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("spread: {over: node, maxSkew: 0}", Spread(over="node", max_skew=0)),
        ("move: {never: true}", Move(never=True)),
        (
            "move: {maxMoves: 1, onlyIn: [{days: [sunday, friday], from: 2026-01-02}]}",
            Move(max_moves=1, only_in=(Window(("friday", "sunday"), dt.date(2026, 1, 2)),)),
        ),
        (
            "quota: {limit: {memory: 1.5Mi, gpus: 12.5, cpu: 100m}}",
            Quota(limits=(("cpu", 100), ("gpus", 12_500), ("memory", 1))),
        ),
        ("quota: {per: label, label: a, limit: {gpus: 1}}", Quota((("gpus", 1_000),), per="label", label="a")),
    ],
)
def test_parameters_of_rules(rule: str, wanted: object) -> None:
    assert spec_of(SMALL, policy(f"rule: {{{rule}}}")).policies[0].rule == wanted


@pytest.mark.parametrize(
    ("given", "kind", "weight"),
    [("hard", "hard", 0), ("audit", "audit", 0), ("{soft: {}}", "soft", 1), ("{soft: {weight: 9}}", "soft", 9)],
)
def test_enforcement(given: str, kind: str, weight: int) -> None:
    found = spec_of(SMALL, policy("rule: {admission: {}}", enforcement=given)).policies[0].enforcement
    assert (found.kind, found.weight) == (kind, weight)


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("{tenants: [taem]}", "did you mean team?"),
        ("{namespaces: [teams]}", "did you mean team?"),
        ("{types: [gang]}", "types here: job"),
        ("{matchLabels: {app: wbe}}", "did you mean web?"),
        ("{matchLabels: {ap: web}}", "did you mean app?"),
        ("{priority: {min: 1}}", "priorities here are 0 to 0"),
        ("{matchLabels: {x: y}}", "label keys here: app"),
        ("{matchExpressions: [{key: ap, operator: Exists}]}", "did you mean app?"),
        ("{matchExpressions: [{key: app, operator: In, values: [wbe]}]}", "did you mean web?"),
        ("{accelerators: [L4-24GB]}", "workloads ask for: none"),
        (
            "{matchLabels: {app: web}, priority: {min: -1, max: 0}, namespaces: [crew]}",
            "each condition by itself selects some, all of them together none",
        ),
    ],
)
def test_a_selector_without_effect_gives_a_warning_with_what_was_meant(selector: str, hint: str | None) -> None:
    found = built(SMALL, WORK, OTHER, policy(f"match: {{workloads: {selector}}}\nrule: {{admission: {{}}}}")).warnings
    assert [(each.code, each.severity, each.hint) for each in found] == [("DT1911", "warning", hint)]


def test_who_may_be_evicted_is_looked_for_as_well() -> None:
    rule = "rule: {survive: {of: node, mayEvict: {tenants: [taem]}}}"
    assert "DT1911" in {each.code for each in built(SMALL, WORK, OTHER, policy(rule)).warnings}


@pytest.mark.parametrize("operator", ["NotIn, values: [web]", "DoesNotExist"])
def test_a_condition_that_holds_for_all_because_its_label_is_misspelt_gives_a_warning(operator: str) -> None:
    rule = (
        f"match: {{workloads: {{matchExpressions: [{{key: ap, operator: {operator}}}]}}}}\nrule: {{admission: {{}}}}"
    )
    found = built(SMALL, WORK, policy(rule)).warnings
    assert [(each.code, each.hint) for each in found] == [("DT1917", "did you mean app?")]


@pytest.mark.parametrize(
    ("condition", "selected"),
    [
        ("key: slots, operator: In, values: ['8']", {"a"}),
        ("key: slots, operator: NotIn, values: ['8']", {"b", "c", "d"}),
        ("key: slots, operator: Exists", {"a", "b", "c"}),
        ("key: slots, operator: DoesNotExist", {"d"}),
        ("key: slots, operator: Gt, values: ['8']", {"b"}),
        ("key: slots, operator: Lt, values: ['16']", {"a"}),
    ],
)
def test_conditions_on_labels_of_nodes_mean_what_they_mean_in_kubernetes(condition: str, selected: set[str]) -> None:
    labels = {"a": '{slots: "8"}', "b": '{slots: "16"}', "c": "{slots: many}", "d": "{}"}
    groups = "\n".join(f"{{name: {name}, count: 1, gpus: 0, labels: {given}}}" for name, given in labels.items())
    text = policy(f"match: {{nodes: {{matchExpressions: [{{{condition}}}]}}}}\nrule: {{forbid: {{}}}}")
    spec = spec_of(cluster(groups), text)
    nodes = spec.policies[0].nodes
    assert nodes is not None
    assert {node.group for node in spec.cluster.nodes if nodes.selects(node)} == selected


def test_workloads_are_selected_by_what_they_may_run_on() -> None:
    def job(name: str, more: str) -> str:
        return workload(f"type: job\nrequest: {{{more}}}", name)

    listing = workload("type: job\nrequest: {gpus: 1}\naccelerators: [H100]", "listing")
    other = workload("type: job\nrequest: {gpus: 1}\naccelerators: [L4-24GB]", "other")
    rule = policy("match: {workloads: {accelerators: [H100-80GB]}}\nrule: {admission: {}}", enforcement="audit")
    spec = spec_of(
        SMALL, job("any", "gpus: 1"), job("cpu-only", "cpu: 1"), other, listing.replace("H100]", "H100-80GB]"), rule
    )
    assert [each.id for each in spec.matched(spec.policies[0])] == ["any", "listing"]


def test_nodes_that_nobody_has_give_a_warning() -> None:
    text = policy("match: {nodes: {matchLabels: {zone: a}}}\nrule: {forbid: {}}")
    assert codes(built(SMALL, WORK, text).warnings) == ["DT1912"]


def test_a_pack_with_nothing_to_match_gives_no_warning() -> None:
    quiet = "match: {workloads: {types: [gang]}}, rule: {admission: {}}, enforcement: audit"
    assert built(project("packs: [pack]"), SMALL, WORK, packs(a=quiet)).warnings == ()


def test_tenants_that_nobody_lists_give_one_warning() -> None:
    own = [workload(f"{JOB}\ntenant: t", name) for name in ("a", "b")]
    assert codes(built(project(), SMALL, *own).warnings) == ["DT1913"]
    assert built(project("tenants: [t]"), SMALL, *own).warnings == ()


def test_shares_that_no_node_can_hold_give_one_warning() -> None:
    whole = SMALL.replace(", sharing: {mechanism: fraction}", "")
    shares = [workload("type: job\nrequest: {share: {compute: 0.5}}", name) for name in ("a", "b")]
    found = built(whole, *shares).warnings
    assert codes(found) == ["DT1915"]
    assert "1 more" in found[0].message
    assert built(SMALL, *shares).warnings == ()


def test_a_preference_that_no_tier_looks_at_gives_one_warning() -> None:
    own = document("Objective", "cheap", "tiers: [admitted, cost]")
    wishing = [workload("type: gang\nrequest: {gpus: 1}\ntopology: {prefer: node}", name) for name in ("a", "b")]
    found = built(project("objective: cheap"), SMALL, own, *wishing).warnings
    assert codes(found) == ["DT1927"]
    assert "1 more" in found[0].message
    assert built(project(), SMALL, *wishing).warnings == ()


def test_soft_policies_that_no_tier_weighs_give_one_warning() -> None:
    cheap = document("Objective", "cheap", "tiers: [admitted, cost]")
    own = policy("rule: {move: {never: true}}", "own", "{soft: {weight: 2}}")
    elsewhere = policy("rule: {move: {never: true}}", "elsewhere", "{soft: {tier: cost, weight: 2}}")
    pack = packs(a="rule: {move: {never: true}}, enforcement: {soft: {weight: 1}}")
    found = built(project("objective: cheap\npacks: [pack]"), SMALL, cheap, own, elsewhere, pack).warnings
    assert codes(found) == ["DT1928"]
    assert "'own' is not weighed, nor 1 more" in found[0].message
    (of_pack,) = built(project("objective: cheap\npacks: [pack]"), SMALL, cheap, elsewhere, pack).warnings
    assert "withoutPolicies" in (of_pack.hint or "")
    assert built(project("objective: cheap"), SMALL, cheap, elsewhere).warnings == ()
    assert built(project("packs: [pack]"), SMALL, own, elsewhere, pack).warnings == ()


def test_an_objective_that_nobody_picks_gives_a_warning() -> None:
    own = document("Objective", "cheap", "tiers: [admitted, cost]")
    found = built(project(), SMALL, own)
    assert codes(found.warnings) == ["DT1916"]
    assert found.spec.objective == Objective()


def test_the_objective_default_is_built_in_unless_a_document_says_otherwise() -> None:
    head = project("objective: default")
    assert spec_of(head, SMALL).objective == Objective()
    own = document("Objective", "default", "bands: [0, 100]")
    assert spec_of(head, SMALL, own).objective == Objective("default", (100, 0))


def test_waivers_are_kept_whether_or_not_they_have_expired() -> None:
    waiver = "policy: p\nmatch: {workloads: {}}\nreason: r\nowner: o\nexpires: %s"
    texts = [document("Waiver", name, waiver % day) for name, day in (("b", "2026-05-31"), ("a", "2026-06-01"))]
    found = spec_of(SMALL, policy("rule: {admission: {}}"), *texts)
    assert [each.name for each in found.waivers] == ["a", "b"]
    assert [each.name for each in found.expired_waivers()] == ["b"]


def test_all_faults_of_all_documents_are_told_together() -> None:
    texts = [
        SMALL.replace("H100-80GB", "H100-80"),
        workload("type: gang\nminReplicas: 2\nrequest: {cpu: 1}"),
        policy("rule: {exclusive: {at: rack}}"),
        document("Waiver", "x", "policy: q\nmatch: {workloads: {}}\nreason: r\nowner: o\nexpires: 2026-02-30"),
        document("Placement", "now", "placements: {w#1-0: {node: n}}"),
    ]
    assert codes(faults_of(*texts)) == ["DT1304", "DT1504", "DT1306", "DT1314", "DT1201", "DT1701"]
