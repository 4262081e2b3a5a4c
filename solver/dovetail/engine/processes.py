"""Processes of one search: how they are started, what they may take, and that none outlives its parent."""

from __future__ import annotations

import copyreg
import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from types import MappingProxyType
from typing import Any

_SHARE = 0.8  # of the machine's memory, where no limit is given
_NATIVE = frozenset({"highspy", "numpy", "ortools"})
_THREAD = 2**24  # bytes that must be left: a thread, the least that solvers ask for in one piece, takes half of it
_AFTER, _LAST = 5, 19  # how nice a process is that has a third of what others have, and one that has what they leave
_SETTLING = 0.05  # seconds in which a thread that has just ended leaves the process table


def context_to_start() -> BaseContext:
    """Return how to start a process: by `fork` where that is safe, else by `spawn`, which takes a second more.

    A fork copies one thread and all locks as they are: with other threads, or once native libraries have had some, a
    lock may stay closed for ever.
    """
    deadline = time.monotonic() + _SETTLING
    while _threads() > 1 and time.monotonic() < deadline:
        time.sleep(0.005)
    pristine = _threads() == 1 and _NATIVE.isdisjoint(sys.modules)
    return multiprocessing.get_context("fork" if pristine else "spawn")


def _threads() -> int:
    """Return how many threads the process has, native ones included; many where that cannot be known."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return sys.maxsize


def limit_memory(limit: int | None) -> int | None:
    """Let this process, and those that it starts, take so many bytes at most; return the limit, None without one."""
    try:
        import resource
    except ImportError:  # not on every platform
        return None
    wanted = limit or default_memory()
    if wanted is None:
        return None
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    return wanted


def short_of_memory() -> bool:
    """Tell whether this process has taken about all that it may: what goes wrong then goes wrong for that."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
        status = Path("/proc/self/status").read_text(encoding="ascii")
        taken = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData"))
    except (ImportError, OSError, StopIteration):
        return False
    return limit != resource.RLIM_INFINITY and taken > limit - _THREAD


def default_memory() -> int | None:
    """Return four fifths of the memory of the machine or of the container, None where that cannot be known."""
    with suppress(ValueError, OSError, AttributeError):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        with suppress(ValueError, OSError):
            total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
        return int(_SHARE * total)
    return None


def prefer_as_victim() -> None:
    """Let a machine that runs out of memory end this process rather than any other."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def go_after() -> None:
    """Let this process from now on have about a quarter of a processor that another one wants as well."""
    _yield_to_others(_AFTER)


def go_last() -> None:
    """Let this process from now on have only what others leave of the processors."""
    _yield_to_others(_LAST)


def _yield_to_others(nice: int) -> None:
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(nice)


def lead_group() -> None:
    """Head a process group of its own, which Ctrl-C does not reach and which can be ended as a whole."""
    if hasattr(os, "setpgid"):
        with suppress(OSError):
            os.setpgid(0, 0)


def end_group(leader: int) -> None:
    """End a process and whatever it has started."""
    if hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(leader, signal.SIGKILL)


def begin_helping(*copied: Connection | None) -> None:
    """Prepare a process that helps its parent and ends with it.

    Parameters
    ----------
    copied : the parent's connections that a fork has copied: they are to have one owner only.
    """
    ignore_interrupts()
    _follow_parent()
    for connection in copied:
        if connection is not None:
            connection.close()


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _follow_parent() -> None:
    """End this process as soon as the one that started it is gone."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


class Pulse:
    """Tells whether a process, or any that it started, still does something; solvers that wait wait for ever.

    A thread that could not begin for want of memory, or a lock that nobody holds any more, leaves a process that
    neither ends nor works.
    """

    def __init__(self, pid: int | None, patience: int = 20) -> None:
        self._pid, self._patience = pid, patience
        self._spent: int | None = None
        self._still = 0

    def stopped(self) -> bool:
        """Tell whether no processor time was spent since so many calls; to be called about once a second."""
        spent = self._processor_time()
        self._still = self._still + 1 if spent is not None and spent == self._spent else 0
        self._spent = spent
        return self._still >= self._patience

    def _processor_time(self) -> int | None:
        """Return the ticks spent by the process and by its children, None where that cannot be known."""
        try:
            found = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text(encoding="ascii").split()
            return sum(self._ticks(pid) for pid in (self._pid, *found))
        except (OSError, ValueError, IndexError):
            return None

    @staticmethod
    def _ticks(pid: int | str | None) -> int:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])


class _Pickler(pickle.Pickler):
    """Takes read-only mappings too, which values of the domain have as defaults."""

    dispatch_table = copyreg.dispatch_table.copy()
    dispatch_table[MappingProxyType] = lambda mapping: (_read_only, (dict(mapping),))


def dumps(value: Any) -> bytes:
    """Return a value as bytes for another process of the same search."""
    stream = io.BytesIO()
    _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return stream.getvalue()


def loads(data: bytes) -> Any:
    """Return the value that another process of the same search sent."""
    return pickle.loads(data)
