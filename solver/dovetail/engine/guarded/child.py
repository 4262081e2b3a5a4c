"""The process in which solvers run: it takes calls from its parent, sends what they find and do, and ends with it.

Messages to the parent are tuples of a kind and values: what a `Reporter` hears, the nodes that changed in a better
plan with what is known of its tiers, and at the end of a call its value or its exception, with which the process
ends. The parent sends further calls, and the numbers of calls that are to stop.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import queue
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NoReturn, Protocol

from dovetail.collector import collect_seldom
from dovetail.engine.processes import (
    dumps,
    ignore_interrupts,
    lead_group,
    limit_memory,
    loads,
    prefer_as_victim,
    short_of_memory,
)
from dovetail.placement import Places
from dovetail.plan import Plan
from dovetail.plan.model import TierResult
from dovetail.progress import Limits, Reporter, Stop
from dovetail.rules import context_of
from dovetail.spec import Spec


class Call(Protocol):
    """What a child is asked to do; its Spec is None where it is that of the call before."""

    @property
    def spec(self) -> Spec | None:
        """What the call is about."""

    def run(self, desk: Desk) -> Any:
        """Return what the parent waits for."""


@dataclass(frozen=True, slots=True)
class Search:
    """Plan a Spec."""

    spec: Spec | None
    limits: Limits
    hint: Places | None = None

    def run(self, desk: Desk) -> Plan:
        """Return the plan."""
        from dovetail.engine.fleet.aside import Aside
        from dovetail.engine.parts.jobs import Jobs

        # Processes are started before anything that a fork should not meet.
        aside = Aside.for_limits(desk.spec, self.limits, desk.connection)
        jobs = desk.jobs = desk.jobs or Jobs.for_limits(self.limits, desk.connection)
        jobs.start()
        desk.listen()
        from dovetail.engine.ladder import solve

        told = _Told(desk)
        given = desk.spec, self.limits
        return solve(*given, hint=self.hint, reporter=told, stop=desk.stop, jobs=jobs, keep=told.keep, aside=aside)


@dataclass(frozen=True, slots=True)
class Certification:
    """Prove the bounds of a plan."""

    spec: Spec | None
    plan: Plan
    seconds: float | None

    def run(self, desk: Desk) -> Plan:
        """Return the plan with its proofs."""
        desk.listen()
        from dovetail.engine.proving.certify import with_certificate

        return with_certificate(context_of(desk.spec), self.plan, seconds=self.seconds, stop=desk.stop)


@dataclass(frozen=True, slots=True)
class Opinion:
    """Ask an independent engine."""

    spec: Spec | None
    plan: Plan
    seconds: float | None

    def run(self, desk: Desk) -> Plan:
        """Return the plan with what that engine says."""
        desk.listen()
        from dovetail.engine.second_opinion import SECONDS, with_second_opinion

        seconds = SECONDS if self.seconds is None else self.seconds
        return with_second_opinion(context_of(desk.spec), self.plan, seconds=seconds, stop=desk.stop)


@dataclass(slots=True)
class Desk:
    """Where a child works: its connection, and what it keeps from one call to the next.

    Parameters
    ----------
    spec : what the call at hand is about.
    stop : ends that call; `number` is how many calls came before it.
    """

    connection: Connection
    spec: Spec
    stop: Stop = field(default_factory=Stop)
    number: int = 0
    jobs: Any = None
    _calls: queue.SimpleQueue[Call] = field(default_factory=queue.SimpleQueue)
    _sending: threading.Lock = field(default_factory=threading.Lock)
    _listening: bool = False

    def send(self, kind: str, *values: Any) -> None:
        """Send one message to the parent."""
        data = dumps((kind, *values))
        with self._sending:
            self.connection.send_bytes(data)

    def listen(self) -> None:
        """From now on hear the parent, and end this process when the parent is gone."""
        if not self._listening:
            self._listening = True
            threading.Thread(target=self._hear, name="parent", daemon=True).start()

    def _hear(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                said = loads(self.connection.recv_bytes())
                if not isinstance(said, int):
                    self._calls.put(said)
                elif said == self.number:
                    self.stop.set()
        os._exit(1)

    def next_call(self) -> Call:
        """Wait for another call and prepare for it."""
        call = self._calls.get()
        if call.spec is not None:
            self.spec = call.spec
        self.stop, self.number = Stop(), self.number + 1
        return call


def main(
    connection: Connection,
    given: Call | bytes,
    memory: int | None = None,
    other: Connection | None = None,
    log: int | None = None,
) -> NoReturn:
    """Do what is asked until the parent is gone or something goes wrong.

    Parameters
    ----------
    given : the first call, or its bytes for a process that shares no memory with its parent.
    memory : bytes that the process may take, None for a share of the machine's.
    other : the parent's end of the connection where a fork has copied it: it is to have one owner only.
    log : descriptor of the file that takes what native code prints, None for none.
    """
    ignore_interrupts()
    lead_group()
    prefer_as_victim()
    if other is not None:
        other.close()
    _divert(log)
    gc.freeze()  # what the parent made stays shared with it
    collect_seldom()
    _serve(connection, given, memory)


def _serve(connection: Connection, given: Call | bytes, memory: int | None) -> NoReturn:
    try:
        limit_memory(memory)
        call: Any = loads(given) if isinstance(given, bytes) else given
        desk = Desk(connection, call.spec)
        while True:
            desk.send("value", call.run(desk))
            call = desk.next_call()
    except BaseException as error:
        if short_of_memory():
            error = MemoryError(str(error))  # which has many names: no thread, no library, no file
        # What this process holds is worth nothing any more: the parent has the best plan.
        error.add_note("".join(traceback.format_exception(error)))
        with suppress(BaseException):
            connection.send_bytes(dumps(("error", _sendable(error))))
    finally:
        os._exit(1)


def _divert(log: int | None) -> None:
    """Send what native code prints to a file: the streams belong to the parent."""
    with suppress(OSError):
        target = os.open(os.devnull, os.O_WRONLY) if log is None else log
        for stream in (1, 2):
            os.dup2(target, stream)
        faulthandler.enable(2)  # where the process was when native code ended it


def _sendable(error: BaseException) -> BaseException:
    """Return an exception that another process can read: itself, else one that says the same."""
    try:
        loads(dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class _Told(Reporter):
    """Passes on what a search reports, and its best plan."""

    def __init__(self, desk: Desk) -> None:
        from dovetail.engine.incumbent import Changes

        self._desk = desk
        self._changes = Changes()

    def phase(self, name: str, detail: str = "") -> None:
        """Pass on that a phase begins."""
        self._desk.send("phase", name, detail)

    def tier(self, name: str, unit: str, value: int | None, bound: int | None) -> None:
        """Pass on a tier's value and bound."""
        self._desk.send("tier", name, unit, value, bound)

    def warning(self, message: str) -> None:
        """Pass on a warning."""
        self._desk.send("warning", message)

    def keep(self, state: Any, tiers: Sequence[TierResult]) -> None:
        """Pass on what changed in the best plan, and what is known of it."""
        self._desk.send("state", self._changes.since(state), tuple(tiers))
