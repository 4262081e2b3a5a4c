"""The limits that a user can rely on, each with its reason; `make limits` asserts them on a quiet machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measure import Run

MIB = 2**20
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many seconds by the clock, and so many bytes at the peak, where given."""

    what: str
    seconds: float | None
    peak: int | None
    reason: str

    def check(self, run: Run, tell: Callable[[str], None], case: str = "") -> None:
        """Assert that a run kept the limit, and tell what it took.

        On a machine with more to do than it has processors the clock says little: there the time counts that the run,
        which has one thread, spent on processors.
        """
        crowded = os.getloadavg()[0] > (os.cpu_count() or 1)
        took = run.work if crowded else run.seconds
        what = f"{self.what} ({case})" if case else self.what
        told = f"{what}: {took:.2f} s{' of processors' if crowded else ''}, {run.peak / MIB:,.0f} MiB"
        tell(f"{told}; limit {self}")
        assert self.seconds is None or took <= self.seconds, f"{told}; {self.reason}"
        assert self.peak is None or run.peak <= self.peak, f"{told}; {self.reason}"

    def __str__(self) -> str:
        bounds = [f"{self.seconds:g} s"] if self.seconds is not None else []
        return ", ".join([*bounds, *([f"{self.peak / GIB:g} GiB"] if self.peak is not None else [])])


HELP = Limit("dovetail --help", 0.5, None, "help and completion are asked for between two keystrokes")
VALIDATE = Limit("validate the trace", 2, GIB, "validation runs in editors and before every commit")
IMPORT = Limit("import and validate the trace", 3, GIB, "an import is tried again and again until it is right")
VERIFY = Limit("verify a plan of the trace", 20, GIB, "every merge waits for it, on small build machines")
SHOW = Limit("show a plan of the trace", 10, GIB, "a plan is read more often than it is made")
PLAN = Limit("plan the trace", None, 4 * GIB, "a build machine has 4 GiB for it; time is what --time-limit says")
HOSTILE = Limit("refuse a hostile file below 1 MB", 5, GIB, "a pull request from anyone runs through validate")
ROWS = Limit("read a plan of 100,000 rows", 10, GIB, "a plan of 100,000 GPUs must be as easy to read as a small one")
DIFF = Limit("diff two plans of 100,000 rows", 20, GIB, "it reads two plans, and a reviewer waits for it")
AROUND = Limit(
    "load to verify 100,000 GPUs, search aside", 60, 4 * GIB, "it is paid on every run, whatever is searched"
)
STAGE = Limit("one stage of 100,000 GPUs", 20, None, "no stage may be what a run waits for")
FIRST = Limit("construct 100,000 GPUs", 10, None, "a first plan is there within ten seconds")
FLEET = Limit("build 12,500 nodes with 100,000 GPUs", 10, 2 * GIB, "the largest fleet that is planned for")
