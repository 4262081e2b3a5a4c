"""The reference of documents and of codes says what the schemas and the table of codes say."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import between, keep
from tests.docs.tables import Reference, escaped

from dovetail.documents.kinds import READ_KINDS
from dovetail.documents.unsupported import unsupported_leaves
from dovetail.faults import CODES

RANGES = {
    "DT10": "Reading",
    "DT11": "Schemas",
    "DT12": "Quantities",
    "DT13": "References and identity",
    "DT14": "Cluster",
    "DT15": "Workloads",
    "DT16": "Policies, waivers, objective",
    "DT17": "Placement and current state",
    "DT18": "Scenarios",
    "DT19": "Not supported yet, warnings, and tables read by importers",
    "DT2": "Plan files",
    "DT3": "Verification",
    "DT4": "Why work is not admitted",
    "DT5": "The engine",
}


def test_the_tables_of_documents_are_those_of_the_schemas(root: Path) -> None:
    page = root / "docs/reference/documents.md"
    reference = Reference()
    kinds = reference.kinds()
    between(page, "fields", kinds)
    between(page, "names", reference.names())
    between(page, "refused", reference.waiting())


def test_everything_refused_is_listed_with_what_it_waits_for(root: Path) -> None:
    text = (root / "docs/reference/documents.md").read_text(encoding="utf-8")
    reasons = {reason for kind in READ_KINDS for reason in unsupported_leaves(kind).values()}
    assert [reason for reason in sorted(reasons) if f"| {reason} |" not in text] == []


def test_the_page_of_codes_is_the_table_of_codes(root: Path) -> None:
    lines = [
        "# Codes",
        "",
        "Every fault, failed check and reason has a code. A code is stable: its meaning never changes, and a retired",
        "one is not used again. `dovetail explain DT1103` prints a row of these tables.",
    ]
    told = set()
    for prefix, title in RANGES.items():
        codes = {code: info for code, info in CODES.items() if code.startswith(prefix)}
        told |= set(codes)
        if codes:
            lines += ["", f"## {prefix:x<6}: {title}", "", "| code | title | says |", "|---|---|---|"]
        for code, info in sorted(codes.items()):
            lines.append(f"| `{code}` | {escaped(info.title)} | {escaped(info.explanation)} |")
    assert told == set(CODES)
    keep(root / "docs/reference/codes.md", "\n".join(lines) + "\n")


def test_every_code_that_a_page_names_exists(root: Path) -> None:
    pages = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md", *(root / "docs").rglob("*.md")]
    named = {(page.name, code) for page in pages for code in re.findall(r"\bDT\d{4}\b", page.read_text("utf-8"))}
    assert [(page, code) for page, code in sorted(named) if code not in CODES] == []
