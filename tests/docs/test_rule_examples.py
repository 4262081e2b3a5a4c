"""Every rule has its page, and the plan that a page shows is the plan that its documents give."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path

import pytest
from tests.docs.pages import FENCE, keep

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.engine import solve
from dovetail.plan import write
from dovetail.rules import TABLE
from dovetail.verify import verify

PAGES = Path(__file__).resolve().parents[2] / "docs/reference/rules"
SHOWN = re.compile(r"^  (outcome|tiers|placements|held|recovery|admitted|promises|policies):")


def planned(text: str, folder: Path) -> str:
    """Plan the documents of a page, and return the sections of the plan file that pages show."""
    folder.mkdir()
    (folder / "example.yaml").write_text(text, encoding="utf-8")
    spec = build(load_project(folder), as_of=dt.date(2026, 1, 1))
    plan = solve(spec)
    assert verify(spec, plan).ok
    shown, kept = False, []
    for line in write(plan).splitlines():
        if not line.startswith("   ") and not line.startswith("  -"):
            shown = bool(SHOWN.match(line))
        if shown:
            kept.append(line.removeprefix("  "))
    return "\n".join(kept) + "\n"


@pytest.mark.parametrize("rule", sorted(TABLE))
def test_the_plan_on_a_page_is_what_its_documents_give(rule: str, tmp_path: Path) -> None:
    page = PAGES / f"{rule}.md"
    text = page.read_text(encoding="utf-8")
    parts = re.split(r"^(?=## Example)", text, flags=re.MULTILINE)
    assert len(parts) > 1, "a page has an example"
    for position, part in enumerate(parts[1:], start=1):
        blocks = dict(FENCE.findall(part))
        found = planned(blocks["yaml"], tmp_path / str(position))
        parts[position] = re.sub(
            r"^```text\n.*?^```$", lambda _, f=found: f"```text\n{f}```", part, flags=re.MULTILINE | re.DOTALL
        )
    keep(page, "".join(parts))


@pytest.mark.parametrize("rule", sorted(TABLE))
def test_a_page_names_every_parameter_and_the_unit_of_its_rule(rule: str, root: Path) -> None:
    text = (PAGES / f"{rule}.md").read_text(encoding="utf-8")
    schema = json.loads((root / f"schemas/rules/{rule}.schema.json").read_text(encoding="utf-8"))
    assert [name for name in schema["properties"] if f"`{name}" not in text] == []
    if rule != "quota":
        assert TABLE[rule].unit.split()[-1] in text


def test_the_overview_lists_the_rules_that_are_honoured(root: Path) -> None:
    text = (PAGES / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[`(\w+)`\]\(\1\.md\)", text, re.MULTILINE)) == sorted(TABLE)
    unsupported = {path.name.partition(".")[0] for path in (root / "schemas/rules").glob("*.json")} - set(TABLE)
    assert [name for name in unsupported if f"`{name}`" not in text] == []
