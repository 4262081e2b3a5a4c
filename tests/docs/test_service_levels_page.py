"""The plans on the page of service levels are what its documents give."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import FENCE, keep
from tests.docs.test_rule_examples import planned


def test_the_plans_on_the_page_are_what_its_documents_give(root: Path, tmp_path: Path) -> None:
    page = root / "docs/reference/service-levels.md"
    head, *parts = re.split(r"^(?=## Example)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(parts) >= 2
    for position, part in enumerate(parts):
        found = planned(dict(FENCE.findall(part))["yaml"], tmp_path / str(position))
        shown = f"```text\n{found}```"
        parts[position] = re.sub(r"^```text\n.*?^```$", lambda _, f=shown: f, part, flags=re.MULTILINE | re.DOTALL)
    keep(page, "".join([head, *parts]))
