"""What is shipped, and what the repository must not say."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import dovetail

SHIPPED = (".gitignore", "pyproject.toml", "README.md", "LICENSE", "solver", "cli", "schemas", "policies")

# Joined here, so that this file does not mention what it forbids.
REGISTRIES = "|".join((r"\bpy" + r"pi\.(?:org|io|python)", r"python" + r"hosted\.", r"\bana" + r"conda\.org"))
MACHINES = "|".join(("wo" + "rk", "ro" + "ot", "ho" + r"me/\w+", "Us" + r"ers/\w+"))
FORBIDDEN = {
    "a package registry's host": re.compile(REGISTRIES, re.I),
    "a path of one machine": re.compile(rf"(?<![\w.~-])/(?:{MACHINES})/"),
}


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def lock(root: Path) -> str:
    return (root / "requirements.lock").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what it is made of, without the network."""
    source = tmp_path_factory.mktemp("source")
    for name in SHIPPED:
        if (root / name).is_dir():
            shutil.copytree(root / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (root / name).exists():
            shutil.copy(root / name, source / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", "dist", "."]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = (source / "dist").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def members(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_installs_two_packages_and_nothing_generic(members: list[str]) -> None:
    tops = {name.split("/")[0] for name in members}
    assert tops == {"dovetail", "dovetail_cli", f"dovetail-{dovetail.__version__}.dist-info"}


@pytest.mark.parametrize(("folder", "suffix"), [("schemas", ".json"), ("policies", ".yaml")])
def test_the_wheel_carries_every_schema_and_pack(root: Path, members: list[str], folder: str, suffix: str) -> None:
    expected = {f"dovetail/{path.relative_to(root).as_posix()}" for path in (root / folder).rglob(f"*{suffix}")}
    assert expected
    assert expected == {name for name in members if name.startswith(f"dovetail/{folder}/")}


def test_the_wheel_carries_every_module(root: Path, members: list[str]) -> None:
    expected = {
        path.relative_to(source).as_posix()
        for source in (root / "solver", root / "cli")
        for path in source.rglob("*.py")
    }
    assert expected == {name for name in members if name.endswith(".py")}


def test_the_wheel_says_that_it_is_typed_and_carries_its_licence(members: list[str]) -> None:
    assert "dovetail/py.typed" in members
    assert any(name.endswith("/licenses/LICENSE") for name in members)


def test_the_wheel_the_package_and_the_installation_agree_on_the_version(wheel: Path) -> None:
    assert wheel.name.split("-")[1] == dovetail.__version__ == metadata.version("dovetail")


def test_the_changelog_has_a_section_for_what_comes_next(root: Path) -> None:
    assert "## [Unreleased]" in (root / "CHANGELOG.md").read_text(encoding="utf-8")


def locked_versions(lock: str) -> dict[str, list[str]]:
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9][a-z0-9-]*)==(\S+)", lock, re.M):
        versions.setdefault(name, []).append(version)
    return versions


def test_every_locked_package_has_hashes(lock: str) -> None:
    entries = re.split(r"^(?=[a-z0-9])", lock, flags=re.M)[1:]
    assert len(entries) > 30
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_names_no_index_and_no_file(lock: str) -> None:
    assert re.findall(r"https?:|file:|--(?:extra-)?index|--find-links|^-e|^/", lock, re.M) == []


def test_the_lock_satisfies_every_dependency(project: dict[str, Any], lock: str) -> None:
    versions = locked_versions(lock)
    wanted = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["dev"]]
    unmet = [
        str(requirement)
        for requirement in map(Requirement, wanted)
        if not any(requirement.specifier.contains(found) for found in versions[requirement.name.lower()])
    ]
    assert unmet == []


def test_the_repository_names_no_registry_and_no_path_of_one_machine(root: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        path = root / name
        if not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{name}: {what}" for what, pattern in FORBIDDEN.items() if pattern.search(text)]
    assert found == []
