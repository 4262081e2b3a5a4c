"""Runs a command in a process of its own and says how long it took and how much memory it needed at most."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dovetail.plan import Plan, read

_STAT = Path("/proc/stat")
_LOOK = 2.0  # seconds in which to see what others take
_IDLE = 3, 4  # columns of processor times: idle, and idle while something is read or written
_TIMES = 8  # the columns before those that are counted in others as well

PLENTY: Final = 10  # units of work for every second of a time limit, so that it is time that ends a search

# A small process starts and awaits the command: the peak that a system reports for a child includes what its parent
# held when it was started, and a process that runs tests or a solver may hold a lot.
_LAUNCHER = """
import json, os, resource, sys, time
report, ceiling, *command = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_CPU, (int(ceiling), int(ceiling)))
start = time.monotonic()
child = os.posix_spawn(command[0], command, os.environ)
_, status, used = os.wait4(child, 0)
seconds = time.monotonic() - start
scale = 1 if sys.platform == "darwin" else 1024
code, work = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
with open(report, "w") as stream:
    json.dump([code, seconds, work, used.ru_maxrss * scale], stream)
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What a command did: `seconds` by the clock, `work` on processors, `peak` memory in bytes."""

    code: int
    seconds: float
    work: float
    peak: int
    out: str
    err: str


def dovetail(
    *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, ceiling: int = 3600
) -> Run:
    """Run the command line with this interpreter; `ceiling` ends it after so many seconds of processor time."""
    command = [sys.executable, "-m", "dovetail_cli", *map(str, arguments)]
    return measured(command, cwd=cwd, env=env, ceiling=ceiling)


def measured(
    command: list[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, ceiling: int = 3600
) -> Run:
    """Run any command whose first word is the path of a program."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        launch = [sys.executable, "-S", "-E", "-c", _LAUNCHER, str(report), str(ceiling), *command]
        done = subprocess.run(
            launch, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=True
        )
        code, seconds, work, peak = json.loads(report.read_text(encoding="utf-8"))
    return Run(code, seconds, work, peak, done.stdout, done.stderr)


def planned(project: Path, file: Path, *options: str | Path) -> tuple[Run, Run, Plan]:
    """Plan a project into a file and verify that; return both runs and the plan. Ends the program where one fails."""
    run = dovetail("plan", project, *options, "--out", file)
    if run.code:
        raise SystemExit(run.err)
    verified = dovetail("verify", file, project)
    if verified.code:
        raise SystemExit(verified.out + verified.err)
    return run, verified, read(file.read_text(encoding="utf-8"), file.name)


def taken() -> float:
    """Return how many processors others keep busy, seen while this process waits.

    A load average would count what this very benchmark did a minute ago; it is all there is where a system does not
    tell the times of its processors.
    """
    try:
        before = busy_ticks(_STAT.read_text(encoding="ascii"))
        time.sleep(_LOOK)
        ticks = busy_ticks(_STAT.read_text(encoding="ascii")) - before
    except (OSError, ValueError, IndexError):
        return os.getloadavg()[0]
    return ticks / os.sysconf("SC_CLK_TCK") / _LOOK


def busy_ticks(stat: str) -> int:
    """Return the ticks that all processors have been busy, taken by other machines included, by `/proc/stat`."""
    times = [int(each) for each in stat.splitlines()[0].split()[1 : 1 + _TIMES]]
    return sum(times) - sum(times[column] for column in _IDLE)
