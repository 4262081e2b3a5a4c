"""Pages that are held in step with the code: compared, or written anew with `DOVETAIL_GOLDEN=write`."""

from __future__ import annotations

import os
import re
from pathlib import Path

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def writing() -> bool:
    """Tell whether pages are to be written rather than compared."""
    return os.environ.get("DOVETAIL_GOLDEN") == "write"


def keep(page: Path, text: str) -> None:
    """Hold a whole page to a text."""
    if writing():
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text


def between(page: Path, name: str, text: str) -> None:
    """Hold the part of a page between `<!-- NAME -->` and `<!-- /NAME -->` to a text."""
    whole = page.read_text(encoding="utf-8")
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    head, found, rest = whole.partition(start)
    _, closed, tail = rest.partition(end)
    assert found, f"{page} has no part {name}"
    assert closed, f"the part {name} of {page} has no end"
    keep(page, head + start + text.strip("\n") + "\n" + end + tail)
