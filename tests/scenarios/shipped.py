"""The shipped scenarios: their folders, and the commands of their READMEs."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path

from dovetail.build import build
from dovetail.documents import DocumentSet, load_project
from dovetail.engine import solve
from dovetail.engine.proving.certify import with_certificate
from dovetail.placement import Places
from dovetail.plan import Plan
from dovetail.progress import Limits
from dovetail.rules import context_of
from dovetail.spec import Spec
from dovetail_cli.main import run

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
NAMES = tuple(sorted(path.parent.name for path in FOLDER.glob("*/dovetail.yaml")))
AS_OF = dt.datetime.now(dt.UTC).date()

_PLANS: dict[str, Plan] = {}

_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@cache
def documents_of(name: str) -> DocumentSet:
    """Return the documents of a scenario."""
    return load_project(FOLDER / name)


@cache
def spec_of(name: str) -> Spec:
    """Return what the documents of a scenario mean."""
    return build(documents_of(name), as_of=AS_OF)


def plan_of(name: str) -> Plan:
    """Return the plan that the engine makes of a scenario now."""
    return solved(spec_of(name))


def solved(spec: Spec, *given: object, hint: Places | None = None, **named: object) -> Plan:
    """Plan a Spec, or return the plan that was made of an equal one before: several tests ask the same."""
    key = repr((spec, hint))
    if key not in _PLANS:
        _PLANS[key] = with_certificate(context_of(spec), solve(spec, Limits(), hint=hint))
    return _PLANS[key]


def commands_of(page: str) -> list[str]:
    """Return the commands of a README in order: what follows `$ ` in its console blocks."""
    return [command for block in _BLOCK.findall(page) for command in _COMMAND.findall(block)]


def rewritten(page: str, folder: Path) -> str:
    """Return a README with what its commands print now; they run one after the other in `folder`."""

    def block(found: re.Match[str]) -> str:
        lines = [f"$ {command}\n{printed_by(command, folder)}" for command in _COMMAND.findall(found[1])]
        return f"```console\n{''.join(lines)}```"

    return _BLOCK.sub(block, page)


def printed_by(command: str, folder: Path) -> str:
    """Run a command of a README in a copy of its folder and return its stdout, followed by any exit code but 0."""
    command, _, shown = command.partition("; ")
    assert shown in ("", "echo $?"), f"not a command of a README: {shown}"
    words = shlex.split(command)
    if words[0] == "dovetail":
        with contextlib.chdir(folder):
            code, out = captured(words[1:])
    else:
        code, out = _tool(words, folder)
    return f"{out}{code}\n" if shown else out


def captured(arguments: list[str]) -> tuple[int, str]:
    """Run a command line in this process and return its exit code and stdout."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(arguments)
    return code, out.getvalue()


def _tool(words: list[str], folder: Path) -> tuple[int, str]:
    assert words[0] in ("patch", "git", "grep"), f"not a command of a README: {words[0]}"
    tool = shutil.which(words[0])
    assert tool, f"{words[0]} is not installed"
    stdin = None
    if "<" in words:
        at = words.index("<")
        words, stdin = words[:at], (folder / words[at + 1]).read_bytes()
    done = subprocess.run([tool, *words[1:]], cwd=folder, input=stdin, capture_output=True, check=False, timeout=60)
    return done.returncode, done.stdout.decode()
