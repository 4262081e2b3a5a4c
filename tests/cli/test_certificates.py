"""Certificates on the command line: beside the plan, whole or not at all, and checked by `verify`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.shell import Shell, workload, write_project

from dovetail.plan import read
from dovetail_cli.main import run

pytestmark = pytest.mark.usefixtures("solvers_here")
CLAIM = "proof: certificate"


WIDE = workload("wide", "search", 3, 3)


@pytest.fixture
def tight(project: Path) -> Path:
    """A project in which not everything fits, so that bounds need a proof."""
    (project / "workloads" / "wide.yaml").write_text(WIDE, encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same elsewhere, with a plan and its certificate."""
    folder = tmp_path_factory.mktemp("made")
    write_project(folder)
    (folder / "workloads" / "wide.yaml").write_text(WIDE, encoding="utf-8")
    assert run(["plan", str(folder), "--out", str(folder / "plan.yaml")]) == 0
    return folder


@pytest.fixture
def planned(tight: Path, made: Path) -> Path:
    """The project with that plan and certificate."""
    for name in ("plan.yaml", "plan.cert.json", "plan.run.json"):
        shutil.copy(made / name, tight / name)
    return tight


def text(project: Path, name: str) -> str:
    return (project / name).read_text(encoding="utf-8")


def test_the_certificate_stands_beside_the_plan(dovetail: Shell, planned: Path) -> None:
    plan = read(text(planned, "plan.yaml"), "plan.yaml")
    assert CLAIM in text(planned, "plan.yaml")
    assert plan.certificate is not None
    assert json.loads(text(planned, "plan.cert.json"))["spec"]["inputs"] == plan.inputs
    assert dovetail("verify", "plan.yaml") == 0
    assert dovetail("verify", "plan.yaml", "-o", "json") == 0
    assert json.loads(dovetail.out)["spec"]["checks"][-1] == {
        "name": "certificate",
        "ok": True,
        "code": "DT3708",
        "ran": True,
    }


def test_two_runs_write_equal_bytes(dovetail: Shell, planned: Path) -> None:
    assert dovetail("plan", "--out", "again.yaml") == 0
    assert text(planned, "again.yaml") == text(planned, "plan.yaml")
    assert text(planned, "again.cert.json") == text(planned, "plan.cert.json")


def test_a_plan_that_keeps_no_certificate_claims_none(dovetail: Shell, tight: Path) -> None:
    assert dovetail("plan", "-o", "yaml") == 0
    (tight / "plan.yaml").write_text(dovetail.out, encoding="utf-8")
    assert "certificate" not in dovetail.out
    assert not list(tight.glob("*.cert.json"))
    assert dovetail("verify", "plan.yaml") == 0


def test_the_certificate_goes_where_it_is_told(dovetail: Shell, tight: Path) -> None:
    assert dovetail("plan", "-o", "yaml", "--certificate", "why.json") == 0
    (tight / "plan.yaml").write_text(dovetail.out, encoding="utf-8")
    assert dovetail("verify", "plan.yaml") == 4
    assert dovetail("verify", "plan.yaml", "--certificate", "why.json") == 0


def test_what_is_proved_infeasible_can_be_checked(dovetail: Shell, tight: Path) -> None:
    (tight / "must.yaml").write_text(
        "apiVersion: dovetail/v1alpha1\nkind: Policy\nmetadata: {name: must}\n"
        "spec: {match: {workloads: {}}, rule: {admission: {}}, enforcement: hard}\n",
        encoding="utf-8",
    )
    arguments = ("plan", "--out", "plan.yaml", "--also", "yaml=no.yaml", "--certificate", "no.cert.json")
    assert dovetail(*arguments) == 5
    assert not (tight / "plan.yaml").exists()
    assert "outcome: {status: infeasible, proof: certificate}" in text(tight, "no.yaml")
    assert dovetail("verify", "no.yaml") == 0
    (tight / "must.yaml").unlink()
    assert dovetail("verify", "no.yaml") == 8


def test_a_certificate_that_is_missing_is_told(dovetail: Shell, planned: Path) -> None:
    (planned / "plan.cert.json").unlink()
    assert dovetail("verify", "plan.yaml") == 4
    assert "DT3708 certificate" in dovetail.out
    assert "is missing: plan again with --out" in dovetail.out
    assert dovetail("verify", "plan.yaml", "--certificate", "gone.json") == 64


def test_a_certificate_that_is_nowhere_is_named_as_one(dovetail: Shell, planned: Path) -> None:
    assert dovetail("verify", "plan.yaml", "--certificate", "nowhere.json") == 64
    assert "there is no certificate nowhere.json" in dovetail.err


def test_a_certificate_of_another_plan_is_told(dovetail: Shell, planned: Path) -> None:
    changed = text(planned, "plan.cert.json").replace('"bound":', '"bound":1', 1)
    (planned / "plan.cert.json").write_text(changed, encoding="utf-8")
    assert dovetail("verify", "plan.yaml", "-o", "github") == 4
    told = "title=DT3708 certificate::certificate: is another one than the plan names"
    assert f"::error file=plan.yaml,line=6,col=3,{told}" in dovetail.out


@pytest.mark.parametrize("content", ["", "{", "[" * 5000, '{"kind": "Plan"}', "\x00", "9" * 10_000])
def test_what_is_no_certificate_is_refused(dovetail: Shell, planned: Path, content: str) -> None:
    (planned / "plan.cert.json").write_text(content, encoding="utf-8")
    assert dovetail("verify", "plan.yaml") == 3
    assert "plan.cert.json" in dovetail.err
    assert "Traceback" not in dovetail.err


def test_a_new_plan_without_proofs_takes_the_old_certificate_away(dovetail: Shell, planned: Path) -> None:
    for name in ("wide", "train", "batch"):
        (planned / "workloads" / f"{name}.yaml").unlink()
    assert dovetail("plan", "--out", "plan.yaml") == 0
    assert CLAIM not in text(planned, "plan.yaml")
    assert not (planned / "plan.cert.json").exists()
    (planned / "plan.cert.json").write_text("something else", encoding="utf-8")
    assert dovetail("plan", "--out", "plan.yaml") == 0
    assert text(planned, "plan.cert.json") == "something else"


def test_a_certificate_is_checked_without_a_solver(planned: Path) -> None:
    program = (
        "import sys; from dovetail_cli.main import run; code = run(['verify', 'plan.yaml'])\n"
        "loaded = {'ortools', 'highspy', 'pyomo', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'{code} {loaded}' if code or loaded or 'dovetail.proof.tree' not in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=planned, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
