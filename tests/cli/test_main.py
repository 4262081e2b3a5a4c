"""Whatever happens, a short message and the right code; stdout is for the asked-for document alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.shell import Engine, Shell

from dovetail_cli.commands import TABLE
from dovetail_cli.problems import CommandError

LIGHT = [
    ("--help",),
    ("plan", "--help"),
    ("validate", "."),
    ("schema", "Workload"),
    ("fmt", "--check", "."),
    ("verify", "plan.yaml", "."),
    ("show", "plan.yaml"),
    ("diff", "plan.yaml", "plan.yaml"),
    ("explain", "DT1103"),
    ("doctor", "--model", "."),
    ("accelerators", "H100-80GB"),
    ("policies",),
]
SOLVERS = {"ortools", "pyomo", "highspy", "pandas", "numpy"}


@pytest.mark.parametrize(
    "arguments",
    [(), ("plna",), ("plan", "--no-such"), ("plan", "-o", "pdf"), ("plan", "--gap", "x"), ("plan", "--gap", "no=0.1"),
     ("plan", "--time-limit", "soon"), ("plan", "--work", "0"), ("plan", "--max-moves", "-1"), ("plan", "--pin", "x"),
     ("plan", "--as-of", "today"), ("plan", "--out", "no/such/plan.yaml"), ("plan", "--out", "workloads"),
     ("plan", "--also", "md"), ("plan", "--also", "pdf=x"), ("plan", "--base", "none.yaml"), ("explain", "DT0"),
     ("plan", "--current", "none.yaml"), ("schema", "Nothing"), ("diff", "a.yaml"), ("verify", "none.yaml"),
     ("import", "openb"), ("import", "slurm"), ("plan", "--write-model", "x"), ("doctor", "."),
     ("doctor", "-o", "md"), ("accelerators", "H100-81GB"), ("policies", "no/such"), ("policies", "--work", "0")],
)  # fmt: skip
def test_a_command_line_without_meaning_ends_with_64(
    dovetail: Shell, project: Path, engine: Engine, arguments: tuple[str, ...]
) -> None:
    assert dovetail(*arguments) == 64
    assert dovetail.out == ""
    assert dovetail.err.startswith("dovetail: ")


def test_what_was_probably_meant_is_said(dovetail: Shell, project: Path) -> None:
    dovetail("plna")
    assert "did you mean plan?" in dovetail.err
    dovetail("plan", "--pin", "search/wbe")
    assert "did you mean search/web?" in dovetail.err


def test_an_amount_of_next_to_nothing_is_told_its_form(dovetail: Shell, project: Path) -> None:
    assert dovetail("plan", "--memory", "8") == 64
    assert "--memory 8 is less than one MiB: a plain number is bytes\n  hint: write it as 8Gi" in dovetail.err
    assert dovetail("plan", "--time-limit", "0") == 64
    assert "more than nothing\n  hint: write it as 60s" in dovetail.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("plan", ""), "an argument"), (("init", ""), "an argument"), (("show", "plan.yaml", "--by="), "--by"),
     (("export", "ranks", "plan.yaml", "--out", ""), "an argument"), (("plan", "--out="), "--out")],
)  # fmt: skip
def test_an_argument_that_is_empty_stands_for_nothing(
    dovetail: Shell, project: Path, engine: Engine, arguments: tuple[str, ...], named: str
) -> None:
    before = sorted(project.rglob("*"))
    assert dovetail(*arguments) == 64
    assert dovetail.err.startswith(f"dovetail: {named} is empty\n  hint: ")
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize("gaps", [("0.1", "0.2"), ("policies=0", "policies=1")])
def test_a_gap_is_given_once(dovetail: Shell, project: Path, engine: Engine, gaps: tuple[str, str]) -> None:
    assert dovetail("plan", *(f"--gap={gap}" for gap in gaps)) == 64
    assert "is given already" in dovetail.err


def test_a_device_is_no_plan(dovetail: Shell) -> None:
    assert dovetail("show", "/dev/null") == 64
    assert "/dev/null is no regular file\n  hint: save the plan in one first" in dovetail.err


@pytest.mark.parametrize("option", ["--out=-", "--also=md=-", "--write-model=-"])
def test_a_dash_is_no_file(dovetail: Shell, project: Path, engine: Engine, option: str) -> None:
    assert dovetail("plan", option) == 64
    assert "hint: " in dovetail.err
    assert not list(project.glob("-*"))


def test_every_command_has_help(dovetail: Shell) -> None:
    dovetail("--help")
    for command in TABLE:
        assert command.summary in dovetail.out
    for command in TABLE:
        assert dovetail(command.name, "--help") == 0
        assert "--help" in dovetail.out


@pytest.mark.parametrize("line", ["explain", "fmt", "init", "policies", "schema", "show", "export ranks"])
def test_arguments_are_in_brackets_once(dovetail: Shell, line: str) -> None:
    assert dovetail(*line.split(), "--help") == 0
    assert "[[" not in dovetail.out


@pytest.mark.parametrize("command", ["import", "export"])
def test_formats_are_told_in_full(dovetail: Shell, command: str) -> None:
    assert dovetail(command, "--help") == 0
    assert "..." not in dovetail.out.replace("[ARGS]...", "")


def test_a_defect_ends_with_1_and_one_line(dovetail: Shell, project: Path, engine: Engine) -> None:
    engine.error = RuntimeError("this\nshould not be")
    assert dovetail("plan") == 1
    assert dovetail.out == ""
    assert "internal error: RuntimeError: this should not be" in dovetail.err
    assert "Traceback" not in dovetail.err


@pytest.mark.parametrize("command", ["validate", "plan", "verify", "init", "fmt"])
def test_a_name_that_is_too_long_is_no_defect(command: str, dovetail: Shell) -> None:
    assert dovetail(command, "x" * 300) != 0
    assert "internal error" not in dovetail.err
    assert "too long" in dovetail.out + dovetail.err or "there is no " in dovetail.err


def test_debugging_shows_where_a_defect_is(
    dovetail: Shell, project: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.error = RuntimeError("odd")
    monkeypatch.setenv("DOVETAIL_DEBUG", "1")
    assert dovetail("plan") == 1
    assert "Traceback" in dovetail.err


def test_a_solver_that_is_not_there_ends_with_69(
    dovetail: Shell, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ["dovetail.engine", *(name for name in sys.modules if name.startswith("dovetail.engine."))]:
        monkeypatch.setitem(sys.modules, name, None)
    assert dovetail("plan") == 69
    assert "cannot be loaded" in dovetail.err


def test_errors_carry_their_hint() -> None:
    from dovetail_cli.exit_codes import Finding

    error = CommandError(Finding.USAGE, "no", "yes")
    assert (str(error), error.hint) == ("no", "yes")


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dovetail_cli", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}, timeout=60
    )


def test_light_commands_never_load_a_solver(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    program = (
        "import json, sys\nfrom dovetail_cli.main import run\n"
        f"codes = [run(list(arguments)) for arguments in {LIGHT!r}]\n"
        "print(json.dumps([codes, sorted({name.partition('.')[0] for name in sys.modules})]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    codes, modules = json.loads(done.stdout.splitlines()[-1])
    assert codes == [0] * len(LIGHT)
    assert SOLVERS.isdisjoint(modules)


def test_a_reader_that_goes_away_changes_nothing(project: Path) -> None:
    command = f"{sys.executable} -m dovetail_cli schema Plan | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_streams_that_are_closed_take_nothing(project: Path, closed: str) -> None:
    command = f"{sys.executable} -m dovetail_cli plan --out plan.yaml {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert "internal" not in done.stdout + done.stderr
    assert (project / "plan.yaml").read_text("utf-8").startswith("apiVersion: dovetail/")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_behind_stdout_is_told(project: Path) -> None:
    command = f"{sys.executable} -m dovetail_cli schema Plan > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, "dovetail: stdout cannot be written: No space left on device\n")


def test_the_installed_command_runs_anywhere(tmp_path: Path) -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("dovetail ")


@pytest.mark.limits
def test_help_is_there_within_half_a_second() -> None:
    took = []
    for _ in range(3):
        start = time.monotonic()
        assert run("--help").returncode == 0
        took.append(time.monotonic() - start)
    assert min(took) < 0.5
