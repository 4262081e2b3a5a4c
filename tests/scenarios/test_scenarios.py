"""Every shipped scenario is planned, proved, verified, and says the same wherever it is planned."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import keep
from tests.scenarios.shipped import (
    AS_OF,
    FOLDER,
    NAMES,
    commands_of,
    documents_of,
    plan_of,
    rewritten,
    solved,
    spec_of,
)

from dovetail.documents import Document
from dovetail.plan import write
from dovetail.verify import verify
from dovetail.whatif import prepare, read_scenario
from dovetail.whatif import run as compare
from dovetail_cli import library

LARGE = {"lose-a-rack"}  # planned in campaigns


def marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.campaign] if name in LARGE else []


WHATIFS = [
    pytest.param(name, document, id=f"{name}:{document.name}", marks=marks(name))
    for name in NAMES
    for document in documents_of(name).of_kind("Scenario")
]
ELSEWHERE = """
import sys
from pathlib import Path
from tests.scenarios.shipped import AS_OF, solved
from dovetail.build import build
from dovetail.documents import load_project
from dovetail.plan import write
for name in sys.argv[1:]:
    plan = solved(build(load_project(Path(name)), as_of=AS_OF))
    Path(f"{name}.yaml").write_text(write(plan), encoding="utf-8")
"""
each = pytest.mark.parametrize("name", NAMES)


def test_the_scenarios_are_there() -> None:
    assert {"five-small-jobs", "gitops-review", "mixed-fleet", "stranded-capacity"} <= set(NAMES)
    assert {"sixteen-scattered", "block-training", "repair-a-gang", "a-new-policy"} <= set(NAMES)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in NAMES])
def test_it_is_planned_to_optimality_and_verifies(name: str) -> None:
    plan = plan_of(name)
    assert plan.outcome.status == "optimal"
    assert all(tier.bound == tier.value for tier in plan.tiers)
    assert verify(spec_of(name), plan).ok


@each
def test_it_uses_the_baseline_pack(name: str) -> None:
    project = documents_of(name).project
    assert project is not None
    assert project.spec["packs"] == ["baseline"]


@each
def test_its_committed_plan_is_what_is_planned_now(name: str) -> None:
    """`DOVETAIL_GOLDEN=write` plans it anew; folders without a plan.yaml have none to compare."""
    page = FOLDER / name / "plan.yaml"
    if page.is_file():
        plan = plan_of(name)
        keep(page, write(plan))
        keep(FOLDER / name / "plan.cert.json", plan.evidence or "")


@pytest.mark.parametrize(("name", "document"), WHATIFS)
def test_its_expectations_hold(name: str, document: Document) -> None:
    scenario = read_scenario(document)
    assert scenario.expectations
    question = prepare(documents_of(name), scenario, as_of=AS_OF)
    result = compare(question, solved, base=plan_of(name))
    missed = [f"{check.expectation}: found {check.actual}" for check in result.checks if not check.ok]
    assert missed == []
    assert verify(result.spec, result.result).ok


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All scenarios shuffled, in another directory, planned by a process with other hashes."""
    folder = tmp_path_factory.mktemp("elsewhere")
    names = [name for name in NAMES if name not in LARGE]
    for name in names:
        shuffled(FOLDER / name, folder / name, random.Random(name))
    command = [sys.executable, "-c", ELSEWHERE, *names]
    path = os.pathsep.join([str(FOLDER.parent), *sys.path])
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": path}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True, timeout=300)
    return folder


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LARGE])
def test_other_order_place_and_hashes_give_the_same_bytes(name: str, elsewhere: Path) -> None:
    assert (elsewhere / f"{name}.yaml").read_bytes() == write(plan_of(name)).encode()


def shuffled(source: Path, target: Path, chance: random.Random) -> None:
    """Copy a project with each document in a file of its own, under names that sort in another order."""
    target.mkdir()
    parts = [
        part
        for file in sorted(source.rglob("*.yaml"))
        for part in re.split(r"^---\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if not re.search(r"^kind: (Project|Plan)$", part, re.MULTILINE)
    ]
    chance.shuffle(parts)
    for index, part in enumerate(parts):
        (target / f"part-{index:02}.yaml").write_text(part, encoding="utf-8")
    project = (source / "dovetail.yaml").read_text(encoding="utf-8")
    project = re.sub(r"^  documents: .*$", '  documents: ["part-*.yaml"]', project, flags=re.MULTILINE)
    (target / "dovetail.yaml").write_text(project, encoding="utf-8")


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in NAMES])
def test_its_readme_shows_what_its_commands_print(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run in a copy of the folder; `DOVETAIL_GOLDEN=write` copies what they print and write."""
    monkeypatch.setattr(library, "solve", solved)
    page = FOLDER / name / "README.md"
    text = page.read_text(encoding="utf-8")
    assert any(command.startswith("dovetail plan") for command in commands_of(text))
    folder = tmp_path / name
    shutil.copytree(FOLDER / name, folder, ignore=shutil.ignore_patterns("*.run.json"))
    keep(page, rewritten(text, folder))
    for made in sorted(set(folder.glob("*.md")) - {folder / "README.md"}):
        keep(FOLDER / name / made.name, made.read_text(encoding="utf-8"))
