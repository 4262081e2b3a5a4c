"""What a terminal shows fits it; a pipe gets the same words, with nothing wrapped."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.shell import Engine, Shell
from tests.cli.test_plan import edit

from dovetail_cli import streams
from dovetail_cli.render.columns import Screen, headline, layout

WIDTH = 60
QUOTA = """\
---
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: nobody-gets-all-of-it}
spec:
  match: {workloads: {}}
  rule: {quota: {per: tenant, limit: {gpus: 99, cpu: 900, memory: 4Ti}}}
  enforcement: hard
"""


@pytest.fixture
def planned(dovetail: Shell, project: Path, engine: Engine) -> None:
    """A project whose plan leaves work out, under a hard policy and an audited one that fails."""
    policies = (project / "policy.yaml").read_text(encoding="utf-8") + QUOTA
    (project / "policy.yaml").write_text(policies, encoding="utf-8")
    edit(project / "workloads/train.yaml", "replicas: 2", "replicas: 4")
    engine.bound = 48_000
    assert dovetail("plan", "--out", "plan.yaml") == 0


@pytest.mark.parametrize(
    "command",
    [
        "explain research/train --plan plan.yaml --ways 2",
        "explain research/batch --plan plan.yaml --ways 0",
        "explain h100-000 --plan plan.yaml",
        "explain DT4110",
        "accelerators",
        "accelerators H100-80GB",
        "diff plan.yaml plan.yaml",
        "show plan.yaml",
        "show plan.yaml . --by topology",
        "show plan.yaml . --by gang",
        "verify plan.yaml",
        "policies",
        "whatif --base plan.yaml --fail node=h100-002",
    ],
)
@pytest.mark.usefixtures("planned")
def test_nothing_is_wider_than_the_terminal(dovetail: Shell, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    assert dovetail(*command.split()) == 0, dovetail.err
    piped = dovetail.out
    monkeypatch.setattr(streams, "width", lambda stream: WIDTH)
    assert dovetail(*command.split()) == 0
    assert max(map(len, piped.splitlines())) > WIDTH >= max(map(len, dovetail.out.splitlines()))
    if command != "accelerators H100-80GB":  # whose boxes are narrower
        assert dovetail.out.split() == piped.split()


@pytest.mark.usefixtures("planned")
def test_headlines_break_between_what_they_tell(dovetail: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "width", lambda stream: 50)
    assert dovetail("policies") == 0
    assert "\n\n  nobody-gets-all-of-it   hard\n    quota {per: tenant, limit: {" in dovetail.out


def test_the_parts_of_a_headline_stand_below_where_they_do_not_fit() -> None:
    parts = ["dovetail plan: p", "base \x1b", "NO PLAN (" + "why " * 12 + ")"]
    assert headline(parts) == [f"dovetail plan: p   base \\x1b   {parts[2]}"]
    lines = headline(parts, Screen(width=40))
    assert lines[:2] == ["dovetail plan: p   base \\x1b", "  NO PLAN (why why why why why why why"]
    assert max(map(len, lines)) <= 40
    assert headline(parts[:1], Screen(width=40), indent=2) == ["  dovetail plan: p"]


def test_a_word_too_wide_for_its_column_stands_below_it() -> None:
    row = ("a-policy-of-some-length", "quota", "a/rather/long/path/policies.yaml:3 here")
    assert layout([row], Screen(width=60)) == [
        "  a-policy-of-some-length  quota",
        "      a/rather/long/path/policies.yaml:3 here",
    ]
