"""What pages on tests of policies show runs as it is shown, in a project that `init` writes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.shell import Shell
from tests.docs.pages import FENCE

pytestmark = pytest.mark.usefixtures("solvers_here")


@pytest.fixture
def new(dovetail: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project as `init` writes it, which is the current directory."""
    monkeypatch.chdir(tmp_path)
    assert dovetail("init") == 0
    return tmp_path


def shown(page: Path, kind: str) -> list[str]:
    """Return the blocks of one language that a page shows."""
    return [body for found, body in FENCE.findall(page.read_text(encoding="utf-8")) if found == kind]


def test_the_guide_runs_step_by_step(dovetail: Shell, root: Path, new: Path) -> None:
    page = root / "docs/guides/testing-policies.md"
    policy, documents, test = shown(page, "yaml")[:3]
    written = re.findall(r"`((?:policies|tests)/\S+\.yaml)`:\n", page.read_text(encoding="utf-8"))
    for name, text in zip(written, (policy, test), strict=True):
        (new / name).parent.mkdir(exist_ok=True)
        (new / name).write_text(text, encoding="utf-8")
    project = (new / "dovetail.yaml").read_text(encoding="utf-8")
    (new / "dovetail.yaml").write_text(re.sub(r"  documents: .*\n", documents, project), encoding="utf-8")

    for use in shown(page, "sh")[0].splitlines():
        assert dovetail(*shlex.split(use)[1:]) == 0, dovetail.out + dovetail.err
        assert "PolicyTest  tenants-apart  2 cases pass" in dovetail.out
    for use in re.findall(r"\bdovetail ((?:validate|test) -.*)$", "\n".join(shown(page, "yaml")), re.MULTILINE):
        assert dovetail(*shlex.split(use)) == 0, dovetail.out + dovetail.err

    (new / written[0]).write_text(policy.replace("at: node", "at: gpu"), encoding="utf-8")
    assert dovetail("test", "--only", "tenants-apart") == 6
    assert "!  tenants-apart: two tenants on one node are refused" in dovetail.out


def test_the_example_of_the_reference_runs(dovetail: Shell, root: Path, new: Path) -> None:
    (new / "tests/shown.yaml").write_text(shown(root / "docs/reference/tests.md", "yaml")[0], encoding="utf-8")
    assert dovetail("test", "--only", "tenants-never-share-a-node") == 0, dovetail.out + dovetail.err
    assert "2 cases pass" in dovetail.out
