"""The process that a search has to itself: it sends what it finds and does to its parent, and ends with it.

Messages to the parent are pairs of a kind and values: what a `Reporter` hears, the nodes that changed in a better
plan with what is known of its tiers, and at the end the plan or the exception. The parent sends one word, to stop.
"""

from __future__ import annotations

import gc
import os
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from dovetail.engine.processes import dumps, ignore_interrupts, lead_group, limit_memory, loads, prefer_as_victim
from dovetail.placement import Places
from dovetail.plan.model import TierResult
from dovetail.progress import Limits, Reporter, Stop
from dovetail.spec import Spec

STOP = b"stop"


@dataclass(frozen=True, slots=True)
class Search:
    """What a child is to search for."""

    spec: Spec
    limits: Limits
    hint: Places | None = None


def main(
    connection: Connection, given: Search | bytes, other: Connection | None = None, log: int | None = None
) -> NoReturn:
    """Search, send what comes of it, and end.

    Parameters
    ----------
    given : the search, or its bytes for a process that shares no memory with its parent.
    other : the parent's end of the connection where a fork has copied it: it is to have one owner only.
    log : descriptor of the file that takes what native code prints, None for none.
    """
    ignore_interrupts()
    lead_group()
    prefer_as_victim()
    if other is not None:
        other.close()
    gc.freeze()  # what the parent made stays shared with it
    search = loads(given) if isinstance(given, bytes) else given
    _divert(log)
    sender = _Sender(connection)
    try:
        limit_memory(search.limits.memory)
        sender.send("plan", _solved(search, sender, connection))
    except BaseException as error:
        error.add_note("".join(traceback.format_exception(error)))
        # What this process holds is worth nothing any more; the parent has the best plan.
        with suppress(Exception):
            sender.send("error", _sendable(error))
    finally:
        os._exit(0)


def _solved(search: Search, sender: _Sender, connection: Connection) -> Any:
    """Return the plan; processes for parts are started before anything that a fork should not meet."""
    from dovetail.engine.jobs import Jobs

    jobs = Jobs.for_limits(search.limits, connection)
    jobs.start()
    stop = Stop()
    threading.Thread(target=_listen, args=(connection, stop), name="parent", daemon=True).start()
    from dovetail.engine.ladder import solve

    told = _Told(sender)
    return solve(search.spec, search.limits, hint=search.hint, reporter=told, stop=stop, jobs=jobs, keep=told.keep)


def _listen(connection: Connection, stop: Stop) -> None:
    """Hear the parent's word to stop, and end this process when the parent is gone."""
    with suppress(EOFError, OSError):
        while True:
            if connection.recv_bytes() == STOP:
                stop.set()
    os._exit(1)


def _divert(log: int | None) -> None:
    """Send what native code prints to a file: the streams belong to the parent."""
    with suppress(OSError):
        target = os.open(os.devnull, os.O_WRONLY) if log is None else log
        for stream in (1, 2):
            os.dup2(target, stream)


def _sendable(error: BaseException) -> BaseException:
    """Return an exception that another process can read: itself, else one that says the same."""
    try:
        loads(dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class _Sender:
    """Sends messages, one at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, kind: str, *values: Any) -> None:
        """Send one message."""
        data = dumps((kind, *values))
        with self._lock:
            self._connection.send_bytes(data)


class _Told(Reporter):
    """Passes on what a search reports, and its best plan."""

    def __init__(self, sender: _Sender) -> None:
        from dovetail.engine.incumbent import Changes

        self._sender = sender
        self._changes = Changes()

    def phase(self, name: str, detail: str = "") -> None:
        """Pass on that a phase begins."""
        self._sender.send("phase", name, detail)

    def tier(self, name: str, unit: str, value: int | None, bound: int | None) -> None:
        """Pass on a tier's value and bound."""
        self._sender.send("tier", name, unit, value, bound)

    def warning(self, message: str) -> None:
        """Pass on a warning."""
        self._sender.send("warning", message)

    def keep(self, state: Any, tiers: Sequence[TierResult]) -> None:
        """Pass on what changed in the best plan, and what is known of it."""
        self._sender.send("state", self._changes.since(state), tuple(tiers))
