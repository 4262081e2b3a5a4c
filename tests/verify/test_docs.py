"""The reference pages name every check, figure and reason."""

from __future__ import annotations

import re
from pathlib import Path

from dovetail.faults import CODES
from dovetail.plan.plain import SUMMARY
from dovetail.verify import CERTIFICATE, DIGEST, TABLE


def test_every_check_has_its_row_in_order(root: Path) -> None:
    text = (root / "docs/reference/verify.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)`(, basic)? \| `(DT\d{4})` \|", text, re.M)
    assert rows == [
        (check.name, ", basic" if check.basic and check is not DIGEST else "", check.code)
        for check in (DIGEST, *TABLE, CERTIFICATE)
    ]


def test_every_figure_and_reason_is_defined(root: Path) -> None:
    text = (root / "docs/reference/plan.md").read_text(encoding="utf-8")
    assert [key for key in SUMMARY if f"`{key}`" not in text] == []
    reasons = re.findall(r"^\| `(DT4\d{3})` \|", text, re.M)
    assert reasons == [code for code in CODES if code.startswith("DT41")]
