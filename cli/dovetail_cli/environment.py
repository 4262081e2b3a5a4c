"""What dovetail runs on: versions, whether the solvers can be loaded, cores and memory.

Each package is loaded in a process of its own, and all of them in one more: a broken library may end the process that
loads it, and two that are fine apart may not go together.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail import __version__
from dovetail.documents.kinds import API_VERSION

PACKAGES = {
    "ortools": "ortools.sat.python.cp_model",
    "highspy": "highspy",
    "pyomo": "pyomo.environ",
    "numpy": "numpy",
}
"""What the engine loads: name of the distribution, and module."""

TOGETHER = "all together"
_SECONDS = 120
_LONGEST = 200
_MIB = 1 << 20
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Package:
    """A package: its version, None where it is not installed, and why it cannot be loaded, None where it can."""

    name: str
    version: str | None
    problem: str | None = None

    def to_row(self) -> dict[str, Any]:
        """Return the package as plain data."""
        row = {"name": self.name, "version": self.version, "loads": self.problem is None}
        return row if self.problem is None else {**row, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class Environment:
    """What this process runs on; memory in MiB, None where it is unknown."""

    packages: tuple[Package, ...]
    cores: int
    memory: int | None
    free: int | None
    version: str = __version__
    python: str = platform.python_version()

    @property
    def ok(self) -> bool:
        """Whether everything can be loaded."""
        return all(package.problem is None for package in self.packages)

    @property
    def platform(self) -> str:
        """The operating system and the processor."""
        return f"{platform.system()} {platform.release()} {platform.machine()}"

    def to_document(self) -> dict[str, Any]:
        """Return the environment as a document of kind Environment."""
        spec = {
            "ok": self.ok,
            "python": self.python,
            "platform": self.platform,
            "cores": self.cores,
            "memoryMiB": self.memory,
            "memoryFreeMiB": self.free,
            "packages": [package.to_row() for package in self.packages],
        }
        return {"apiVersion": API_VERSION, "kind": "Environment", "metadata": {"name": "dovetail"}, "spec": spec}


def environment() -> Environment:
    """Look at what this process runs on; takes as long as loading every solver once."""
    found = [Package(name, _version(name), _problem([module])) for name, module in PACKAGES.items()]
    if all(package.problem is None for package in found):
        found.append(Package(TOGETHER, None, _problem(list(PACKAGES.values()))))
    own = Package("dovetail", __version__)
    return Environment(
        (own, *found), _cores(), _least(_pages("SC_PHYS_PAGES"), _allowed()), _pages("SC_AVPHYS_PAGES")
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _problem(modules: list[str]) -> str | None:
    """Return why modules cannot be loaded into one process, None where they can."""
    # -P: a file in the current directory is no package.
    command = [sys.executable, "-P", "-c", "".join(f"import {module}\n" for module in modules)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not loaded after {_SECONDS} s"
    except OSError as error:
        return f"Python cannot be started: {error.strerror}"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"ends the process that loads it: {_signal(-done.returncode)}"
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return said[-1][:_LONGEST] if said else f"ends the process that loads it with {done.returncode}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _cores() -> int:
    """Return how many cores this process may use, a container's limit included."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _read("cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit() and int(period):
        usable = min(usable, -(-int(quota) // int(period)))
    return max(1, usable)


def _pages(name: str) -> int | None:
    """Return an amount of memory that the system tells, in MiB."""
    try:
        return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE") // _MIB
    except (AttributeError, OSError, ValueError):
        return None


def _allowed() -> int | None:
    """Return a container's limit of memory in MiB, None where there is none."""
    text = _read("memory.max")
    return int(text) // _MIB if text.isdigit() else None


def _read(name: str) -> str:
    try:
        return (_CGROUP / name).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _least(*amounts: int | None) -> int | None:
    return min((amount for amount in amounts if amount is not None), default=None)
