"""A search in a process of its own, whose end, whatever it is, leaves the best plan so far (E5).

Solvers are native code: they abort, overrun their time limits in presolve, and take memory until the machine ends
them. Here the parent keeps a copy of the best plan, so that none of this costs more than the rest of the search.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, BinaryIO, cast

from dovetail.engine import child
from dovetail.engine.processes import context_to_start, dumps, end_group, loads
from dovetail.placement import Places
from dovetail.plan import Plan, finish
from dovetail.plan.model import Outcome
from dovetail.progress import Limits, Reporter, Stop
from dovetail.quantities import format_memory
from dovetail.rules import context_of
from dovetail.spec import Spec

_TICK = 0.1
_FAREWELL = 5.0  # seconds that a process which has said its last word may take to end
_TOLD = 200  # characters of a solver's last words
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Grace:
    """How long a search may take beyond its end before it is ended.

    Parameters
    ----------
    time : seconds beyond the time limit, None for half of it and 10 seconds at least.
    stop : seconds after it was asked to stop, once there is a plan.
    """

    time: float | None = None
    stop: float = 20.0

    def until(self, limits: Limits) -> float | None:
        """Return the seconds after which a search is ended, None without a time limit."""
        if limits.time is None:
            return None
        return limits.time + (max(10.0, 0.5 * limits.time) if self.time is None else self.time)


def solve_guarded(
    spec: Spec,
    limits: Limits | None = None,
    *,
    hint: Places | None = None,
    reporter: Reporter | None = None,
    stop: Stop | None = None,
    tick: Callable[[], None] = lambda: None,
    grace: Grace | None = None,
) -> Plan:
    """Plan a Spec in a process of its own, as `dovetail.engine.solve` does in this one.

    Parameters
    ----------
    tick : called about ten times a second while the search runs.

    Returns
    -------
    Plan
        What the search found. Where its process ended before its time, the best plan that it had told, stopped by
        `crash`; `unknown` where it had none yet.

    Raises
    ------
    Exception
        What the search raised, if it had no plan yet.
    """
    limits, reporter = limits or Limits(), reporter or Reporter()
    stop = Stop() if stop is None else stop
    with _log() as log:
        run = _Run(child.Search(spec, limits, hint), reporter, stop, tick, grace or Grace(), log)
        try:
            run.start()
        except OSError as error:
            from dovetail.engine.ladder import solve

            reporter.warning(f"the search has no process of its own: {error.strerror}")
            return solve(spec, limits, hint=hint, reporter=reporter, stop=stop)
        try:
            run.follow()
        finally:
            run.end()
        return run.plan or _left(run)


@contextmanager
def _log() -> Iterator[BinaryIO | None]:
    """Give a file without a name for what native code prints, None where there can be none."""
    with ExitStack() as stack:
        log: BinaryIO | None = None
        with suppress(OSError):
            file = tempfile.TemporaryFile()  # noqa: SIM115 (the stack closes it)
            log = stack.enter_context(cast(BinaryIO, file))
        yield log


@dataclass(slots=True)
class _Run:
    """A child at work, and what it has told so far.

    Parameters
    ----------
    log : takes what the child's native code prints.
    table, known : the best plan, node by node, and the latest word on its tiers; None before there is one.
    stopped_by : why the child was ended, None where it ended by itself.
    """

    search: child.Search
    reporter: Reporter
    stop: Stop
    tick: Callable[[], None]
    grace: Grace
    log: BinaryIO | None
    table: dict[int, Any] | None = None
    known: tuple[Any, ...] = ()
    plan: Plan | None = None
    error: BaseException | None = None
    stopped_by: str | None = None
    exit_code: int | None = None
    _process: BaseProcess = field(init=False)
    _connection: Connection = field(init=False)
    _end: float | None = None
    _stop_at: float | None = None

    def start(self) -> None:
        """Start the child; raises OSError where the machine gives no process."""
        context = context_to_start()
        ours, theirs = context.Pipe()
        given: tuple[Any, ...]
        if context.get_start_method() == "fork":
            given = theirs, self.search, ours, None if self.log is None else self.log.fileno()
        else:
            given = theirs, dumps(self.search)
        process = context.Process(target=child.main, args=given, name="dovetail")  # type: ignore[attr-defined]
        self._process, self._connection = process, ours
        try:
            process.start()
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        if (limit := self.grace.until(self.search.limits)) is not None:
            self._end = time.monotonic() + limit

    def follow(self) -> None:
        """Hear the child out: until it has sent a plan or an error, is gone, or has to be ended."""
        while self.plan is None and self.error is None and self.stopped_by is None:
            self.tick()
            if self._connection.poll(_TICK):
                try:
                    message = loads(self._connection.recv_bytes())
                except (EOFError, OSError):
                    return
                self._hear(*message)
            elif not self._process.is_alive() and not self._connection.poll(0):
                return
            self._watch()

    def _hear(self, kind: str, *values: Any) -> None:
        if kind == "state":
            changed, tiers = values
            self.table = {} if self.table is None else self.table
            self.table.update(changed)
            self.known = tiers or self.known
        elif kind == "plan":
            (self.plan,) = values
        elif kind == "error":
            (self.error,) = values
        else:
            getattr(self.reporter, kind)(*values)

    def _watch(self) -> None:
        """Pass on that the search is to stop; give it up where it takes too long to end."""
        now = time.monotonic()
        if self.stop and self._stop_at is None:
            self._stop_at = now + self.grace.stop
            with suppress(OSError):
                self._connection.send_bytes(child.STOP)
        if self._stop_at is not None and self.table is not None and now > self._stop_at:
            self.stopped_by = "interrupt"
        elif self._end is not None and now > self._end:
            self.stopped_by = "time"

    def end(self) -> None:
        """See to it that nothing of the child is left."""
        if self.plan is not None:
            self._process.join(_FAREWELL)
        elif self.stopped_by is None:
            self._process.join(_TICK)
        self.exit_code = self._process.exitcode
        if self._process.pid is not None:
            end_group(self._process.pid)
        if self._process.is_alive():
            self._process.kill()
        self._process.join(_FAREWELL)
        self._connection.close()


def _left(run: _Run) -> Plan:
    """Return what an early end left, and tell about it; without a plan what the search raised is raised here."""
    from dovetail.engine.incumbent import plan_of

    if run.error is not None and not isinstance(run.error, MemoryError) and run.table is None:
        raise run.error
    search = run.search
    found = "it gives the best plan so far" if run.table is not None else "there is no plan yet"
    run.reporter.warning(f"{_what_happened(run)}; {found}")
    stopped = run.stopped_by or ("interrupt" if run.stop else "crash")
    if run.table is None:
        outcome = Outcome("unknown", stopped, search.limits.fast)
        return finish(context_of(search.spec), {}, (), outcome)
    run.reporter.phase("finish")
    return plan_of(search.spec, run.table, run.known, Outcome("feasible", stopped, search.limits.fast))


def _what_happened(run: _Run) -> str:
    if run.stopped_by == "time":
        return "the search did not end at its time limit and was ended"
    if run.stopped_by == "interrupt":
        return "the search did not stop when it was asked to and was ended"
    if isinstance(run.error, MemoryError):
        return f"the search ran out of memory{_limit(run.search.limits)}"
    if run.error is not None:
        said = " ".join(str(run.error).split())[:_TOLD]
        return f"the search ended with {type(run.error).__name__} ({said})"
    code = run.exit_code
    if code is not None and -code == signal.SIGKILL:
        return "the search was killed, as happens where a machine runs out of memory"
    how = f"with {signal.Signals(-code).name}" if code is not None and code < 0 else "without a word"
    return f"the search ended {how}{_last_words(run.log)}"


def _limit(limits: Limits) -> str:
    return "" if limits.memory is None else f" (limit {format_memory(limits.memory // MIB)})"


def _last_words(log: BinaryIO | None) -> str:
    """Return the last line that native code printed."""
    if log is None:
        return ""
    log.seek(0)
    lines = log.read().decode("utf-8", errors="replace").split("\n")
    said = " ".join(next((line for line in reversed(lines) if line.strip()), "").split())
    return f" ({said[:_TOLD]})" if said else ""
