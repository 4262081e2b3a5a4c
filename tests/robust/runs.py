"""Runs the command line as a user does, and disturbs it: finds its processes, ends them, takes their memory."""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
BEFORE = "# what was there before\n"
LATEST = 120.0  # seconds that a run may take on a crowded machine


@dataclass(frozen=True, slots=True)
class Entry:
    """A process that runs."""

    pid: int
    parent: int
    session: int


def running() -> list[Entry]:
    """Return the processes of this machine that run, without those that have ended and wait to be noticed."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if state != "Z":
                found.append(Entry(int(folder.name), int(parent), int(session)))
    return found


@dataclass
class Run:
    """A run of `dovetail` in a session of its own, in a folder with a plan of before."""

    folder: Path
    process: subprocess.Popen[str]
    out: str = ""
    err: str = ""

    @classmethod
    def start(cls, folder: Path, scenario: str, *arguments: str) -> Run:
        """Begin to plan a scenario."""
        shutil.copytree(SCENARIOS / scenario, folder / "project")
        (folder / "out").mkdir()
        plan = folder / "out" / "plan.yaml"
        plan.write_text(BEFORE, encoding="utf-8")
        command = [sys.executable, "-m", "dovetail_cli", "plan", "project", "--out", "out/plan.yaml", *arguments]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=folder, text=True, start_new_session=True, stdout=pipe, stderr=pipe)
        return cls(folder, process)

    def wait(self, seconds: float) -> bool:
        """Let it run for some seconds; tell whether it still does."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def child(self) -> int | None:
        """Return the process of the solvers, once there is one; None if the run ends without."""
        while True:
            found = [entry.pid for entry in running() if entry.parent == self.process.pid]
            if found or not self.wait(0.02):
                return found[0] if found else None

    def workers(self) -> list[int]:
        """Return the processes that the solvers' process has started."""
        child = self.child()
        return [entry.pid for entry in running() if entry.parent == child]

    def disturb(self, how: Callable[[int], object]) -> bool:
        """Do something to the process of the solvers; tell whether there was one."""
        child = self.child()
        if child is None:
            return False
        with suppress(ProcessLookupError, FileNotFoundError):
            how(child)
        return True

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for its end and return its code."""
        self.out, self.err = self.process.communicate(timeout=LATEST)
        return self.process.returncode

    @property
    def plan(self) -> str:
        """What the file of the plan holds."""
        return (self.folder / "out" / "plan.yaml").read_text(encoding="utf-8")

    def check_what_is_left(self) -> None:
        """Assert that no process, no temporary file and no traceback is left, and that a new plan verifies."""
        end = time.monotonic() + 10
        while left := [entry.pid for entry in running() if entry.session == self.process.pid]:
            assert time.monotonic() < end, (left, self.err)
            select.select([], [], [], 0.02)  # what was killed takes a moment to be gone
        names = {path.name for path in (self.folder / "out").iterdir()}
        assert names <= {"plan.yaml", "plan.run.json", "plan.cert.json"}
        assert "Traceback" not in self.err
        if self.plan != BEFORE:
            from dovetail_cli.main import run

            assert run(["verify", str(self.folder / "out" / "plan.yaml"), str(self.folder / "project")]) == 0


def kill(pid: int) -> None:
    """End a process at once."""
    os.kill(pid, signal.SIGKILL)


def starve(pid: int) -> None:
    """Give a process no more memory than it has, unless it has ended by now and has none."""
    status = Path(f"/proc/{pid}/status").read_text()
    kibibytes = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData")), None)
    if kibibytes is None:
        return
    hard = resource.prlimit(pid, resource.RLIMIT_DATA)[1]
    resource.prlimit(pid, resource.RLIMIT_DATA, (kibibytes * 1024, hard))
