"""The page of packs says what the shipped files say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.docs.pages import between
from tests.docs.tables import escaped

from dovetail.documents import load_text
from dovetail.resources import pack_names, pack_text
from dovetail_cli.render.policies import flow

ORDER = ("baseline", "training", "inference", "research", "multi-tenant", "regulated")


def described(name: str) -> Iterator[str]:
    """Yield what a page says of one pack."""
    spec = load_text(pack_text(name), f"{name}.yaml")[0].spec
    yield from (f"## {name}", "", f"Version {spec['version']}. {flat(spec['description'])}", "")
    yield from ("| policy | rule | enforcement | matches | why |", "|---|---|---|---|---|")
    for policy in spec["policies"]:
        ((rule, parameters),) = policy["rule"].items()
        cells = [
            f"`{policy['name']}`",
            f"[`{rule}`](rules/{rule}.md) `{flow(parameters)}`" if parameters else f"[`{rule}`](rules/{rule}.md)",
            f"`{flow(policy['enforcement'])}`",
            matched(policy.get("match", {})),
            escaped(flat(policy["description"])),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def matched(match: Mapping[str, Any]) -> str:
    """Return whom a policy matches, all where it says nothing."""
    said = {key: value for key, value in match.items() if value}
    return "; ".join(f"{key} `{flow(value)}`" for key, value in said.items()) or "all"


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_page_of_packs_is_what_the_packs_say(root: Path) -> None:
    assert sorted(ORDER) == sorted(pack_names())
    lines = [line for name in ORDER for line in described(name)]
    between(root / "docs/reference/packs.md", "packs", "\n".join(lines))
