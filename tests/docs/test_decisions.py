"""Decisions are numbered, say their status, and are listed."""

from __future__ import annotations

import re
from pathlib import Path

SECTIONS = ["Question", "Decision", "Instead of", "Consequences"]


def test_every_decision_is_numbered_complete_and_listed(root: Path) -> None:
    folder = root / "docs/decisions"
    pages = sorted(path for path in folder.glob("[0-9]*.md") if path.name != "0000-template.md")
    numbers = [int(path.name[:4]) for path in pages]
    assert numbers == sorted(set(numbers))
    rows = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        title = re.match(r"# (\d{4}): (.+)\n\nStatus: (accepted|proposed|replaced by \d{4})\. Rules: (.+?)\.\n", text)
        assert title is not None, page.name
        assert title[1] == page.name[:4]
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS, page.name
        rows.append(f"| [{title[1]}]({page.name}) {title[2]} | {title[4]} |")
    listed = (folder / "README.md").read_text(encoding="utf-8")
    assert [line for line in listed.splitlines() if line.startswith("| [")] == rows
