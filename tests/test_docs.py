"""What the documentation and the code say about each other."""

from __future__ import annotations

import re
from pathlib import Path

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
RULE = re.compile(r"\bS[1-7]\.\d+\b")


def written(root: Path, *patterns: str) -> list[Path]:
    """Return the files of the checkout that match, in order."""
    found = {path for pattern in patterns for path in root.glob(pattern)}
    return sorted(path for path in found if path.is_file())


def test_every_relative_link_leads_somewhere(root: Path) -> None:
    pages = written(root, "*.md", "docs/**/*.md", "scenarios/**/*.md", "policies/**/*.md")
    dead = [
        f"{page.relative_to(root)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert dead == []


def test_rules_are_numbered_without_gaps_or_repeats(root: Path) -> None:
    text = (root / "docs/reference/semantics.md").read_text(encoding="utf-8")
    numbers = [(int(s), int(n)) for s, n in re.findall(r"^- S(\d+)\.(\d+) ", text, re.M)]
    sections = {s for s, _ in numbers}
    expected = [(s, n + 1) for s in sorted(sections) for n in range(sum(t == s for t, _ in numbers))]
    assert numbers == expected
    assert sections == set(range(1, 8))


def test_every_rule_that_is_cited_exists(root: Path) -> None:
    text = (root / "docs/reference/semantics.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"^- (S\d+\.\d+) ", text, re.M))
    sources = written(
        root, "*.md", "docs/**/*.md", "solver/**/*.py", "cli/**/*.py", "tests/**/*.py", "schemas/**/*.json"
    )
    unknown = [
        f"{path.relative_to(root)}: {rule}"
        for path in sources
        for rule in RULE.findall(path.read_text(encoding="utf-8"))
        if rule not in defined
    ]
    assert unknown == []
