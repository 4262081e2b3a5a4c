"""Solvers in a process of their own, whose end, whatever it is, leaves the best plan so far.

Solvers are native code: they abort, overrun their time limits in presolve, and take memory until the machine ends
them. Here the parent keeps a copy of the best plan, so that none of this costs more than the rest of the search.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, BinaryIO, cast

from dovetail.engine.guarded import child
from dovetail.engine.processes import Pulse, context_to_start, dumps, end_group, loads
from dovetail.placement import Places
from dovetail.plan import Plan, finish
from dovetail.plan.model import Outcome
from dovetail.progress import Limits, Reporter, Stop
from dovetail.rules import context_of
from dovetail.spec import Spec

_TICK = 0.1
_FAREWELL = 5.0  # seconds that a process which is ended may take to be gone
_LONGEST = 200  # characters of last words


@dataclass(frozen=True, slots=True)
class Grace:
    """How long a call may take beyond its end before its process is ended.

    Parameters
    ----------
    time : seconds beyond a time limit, None for as many as it has, and 30 at least.
    stop : seconds after it was asked to stop, once there is a plan.
    """

    time: float | None = None
    stop: float = 20.0

    def until(self, seconds: float | None) -> float | None:
        """Return when a call with a time limit that starts now is ended, on the monotonic clock; None without."""
        if seconds is None:
            return None
        return time.monotonic() + seconds + (max(30.0, seconds) if self.time is None else self.time)


def solve_guarded(
    spec: Spec,
    limits: Limits | None = None,
    *,
    hint: Places | None = None,
    reporter: Reporter | None = None,
    stop: Stop | None = None,
) -> Plan:
    """Plan a Spec in a process of its own, as `dovetail.engine.solve` does in this one; see `SolverProcess.solve`."""
    limits = limits or Limits()
    with SolverProcess(limits.memory) as solver:
        return solver.solve(spec, limits, hint=hint, reporter=reporter, stop=stop)


@dataclass(slots=True)
class _Heard:
    """What a call has told so far.

    Parameters
    ----------
    table, known : the best plan, node by node, and the latest word on its tiers; None before there is one.
    value, error : how the call ended, neither where its process did not get so far.
    ended : why the parent ended the process, None where it did not.
    started : whether there was a process at all.
    """

    reporter: Reporter
    table: dict[int, Any] | None = None
    known: tuple[Any, ...] = ()
    value: Plan | None = None
    error: BaseException | None = None
    ended: str | None = None
    started: bool = True
    how: str = ""

    def over(self) -> bool:
        """Tell whether there is nothing more to hear."""
        return self.value is not None or self.error is not None or self.ended is not None

    def hear(self, kind: str, *values: Any) -> None:
        """Take one message."""
        if kind == "state":
            changed, tiers = values
            self.table = {} if self.table is None else self.table
            self.table.update(changed)
            self.known = tiers or self.known
        elif kind in ("value", "error"):
            setattr(self, kind, values[0])
        else:
            getattr(self.reporter, kind)(*values)

    def what_happened(self) -> str:
        """Return how the call ended, in words."""
        if self.ended == "time":
            return "did not end at its time limit and was ended"
        if self.ended == "interrupt":
            return "did not stop when it was asked to and was ended"
        if self.ended == "crash":
            return "did nothing any more, as may happen without memory, and was ended"
        if isinstance(self.error, MemoryError):
            return "ran out of memory"
        if self.error is not None:
            return f"ended with {type(self.error).__name__}: {' '.join(str(self.error).split())[:_LONGEST]}"
        return self.how


class SolverProcess:
    """A process for solvers, started when it is first needed, and again after it came to an end.

    Parameters
    ----------
    memory : bytes that the process may take, None for four fifths of the machine's.
    tick : called about ten times a second while the process works.
    """

    def __init__(
        self, memory: int | None = None, tick: Callable[[], None] = lambda: None, grace: Grace | None = None
    ) -> None:
        self._memory, self._tick, self._grace = memory, tick, grace or Grace()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._log: BinaryIO | None = None
        self._spec: Spec | None = None
        self._calls = 0

    def __enter__(self) -> SolverProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What it does.

    def solve(
        self,
        spec: Spec,
        limits: Limits,
        *,
        hint: Places | None = None,
        reporter: Reporter | None = None,
        stop: Stop | None = None,
    ) -> Plan:
        """Plan a Spec.

        Returns
        -------
        Plan
            What the search found. Where its process ended before its time, the best plan that it had told, stopped
            by `crash` (or by what it did not heed: `time`, `interrupt`); `unknown` where it had none yet.

        Raises
        ------
        Exception
            What the search raised, other than MemoryError, where it had no plan yet.
        """
        reporter, stop = reporter or Reporter(), Stop() if stop is None else stop
        heard = self._call(child.Search(spec, limits, hint), reporter, stop, limits.time, kept=False)
        if heard.value is not None:
            return heard.value
        if not heard.started:
            from dovetail.engine.ladder import solve

            reporter.warning(f"the search {heard.what_happened()}")
            return solve(spec, limits, hint=hint, reporter=reporter, stop=stop)
        return _left(heard, spec, limits, stop)

    def certified(self, spec: Spec, plan: Plan, seconds: float | None, reporter: Reporter, stop: Stop) -> Plan:
        """Return a plan with proofs of its bounds, as far as they are found; without them where the process ends."""
        heard = self._call(child.Certification(spec, plan, seconds), reporter, stop, seconds, kept=True)
        if heard.value is None:
            reporter.warning(f"the search for a certificate {heard.what_happened()}; the plan goes without")
        return heard.value or plan

    def second_opinion(self, spec: Spec, plan: Plan, seconds: float | None, reporter: Reporter, stop: Stop) -> Plan:
        """Return a plan with what another engine says of it; without that where the process ends.

        Raises
        ------
        BackendTooLarge
            Where the problem is too large to ask.
        """
        heard = self._call(child.Opinion(spec, plan, seconds), reporter, stop, seconds, kept=True)
        if heard.error is not None and not isinstance(heard.error, MemoryError):
            raise heard.error
        if heard.value is None:
            reporter.warning(f"the second opinion {heard.what_happened()}; the plan goes without")
        return heard.value or plan

    def close(self) -> None:
        """End the process and whatever it has started."""
        if self._process is not None:
            if self._process.pid is not None:
                end_group(self._process.pid)
            self._process.kill()
            self._process.join(_FAREWELL)
        for open_file in (self._connection, self._log):
            if open_file is not None:
                open_file.close()
        self._process = self._connection = self._log = self._spec = None

    # How it does that.

    def _call(
        self,
        call: child.Search | child.Certification | child.Opinion,
        reporter: Reporter,
        stop: Stop,
        seconds: float | None,
        *,
        kept: bool,
    ) -> _Heard:
        """Have a call done; `kept` tells whether there is a plan already, so that waiting may end any time."""
        heard = _Heard(reporter)
        try:
            connection = self._handed_over(call)
        except OSError as error:
            heard.how, heard.started = f"got no process of its own ({error.strerror})", False
            return heard
        self._follow(connection, heard, stop, self._grace.until(seconds), kept=kept)
        if heard.value is None:
            heard.how = self._last_words()
            self.close()
        return heard

    def _handed_over(self, call: child.Search | child.Certification | child.Opinion) -> Connection:
        """Give a call to the process, if need be to a new one; raises OSError where the machine gives none."""
        if self._connection is not None:
            known = call.spec is self._spec
            try:
                self._connection.send_bytes(dumps(replace(call, spec=None) if known else call))
            except OSError:
                self.close()
            else:
                self._spec, self._calls = call.spec, self._calls + 1
                return self._connection
        connection = self._connection = self._started(call)
        self._spec, self._calls = call.spec, 0
        return connection

    def _started(self, call: child.Call) -> Connection:
        context = context_to_start()
        ours, theirs = context.Pipe()
        with suppress(OSError):
            file = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes it)
            self._log = cast(BinaryIO, file)
        given: tuple[Any, ...]
        if context.get_start_method() == "fork":
            given = theirs, call, self._memory, ours, None if self._log is None else self._log.fileno()
        else:
            given = theirs, dumps(call), self._memory
        process = context.Process(target=child.main, args=given, name="dovetail")  # type: ignore[attr-defined]
        try:
            process.start()
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._process = process
        return ours

    def _follow(self, connection: Connection, heard: _Heard, stop: Stop, end: float | None, *, kept: bool) -> None:
        """Hear a call out: until it is over, its process is gone, or has to be ended."""
        stop_by: float | None = None
        pulse, pulse_at = Pulse(self._process.pid if self._process else None), 0.0
        while not heard.over():
            self._tick()
            if connection.poll(_TICK):
                try:
                    heard.hear(*loads(connection.recv_bytes()))
                except (EOFError, OSError):
                    return
            elif not self._alive() and not connection.poll(0):
                return
            if stop and stop_by is None:
                stop_by = time.monotonic() + self._grace.stop
                with suppress(OSError):
                    connection.send_bytes(dumps(self._calls))
            now = time.monotonic()
            if not heard.over() and end is not None and now > end:
                heard.ended = "time"
            elif not heard.over() and stop_by is not None and now > stop_by and (kept or heard.table is not None):
                heard.ended = "interrupt"
            elif not heard.over() and now > pulse_at:
                pulse_at = now + 1.0
                heard.ended = "crash" if pulse.stopped() else None

    def _alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def _last_words(self) -> str:
        """Return how the process came to its end, with the last that its native code printed."""
        if self._process is None:
            return "never began"
        self._process.join(_TICK)
        code = self._process.exitcode
        if code is not None and -code == signal.SIGKILL:
            return "was killed, as happens where a machine runs out of memory"
        how = f"was ended by {signal.Signals(-code).name}" if code is not None and code < 0 else "broke off"
        said = ""
        if self._log is not None:
            self._log.seek(0)
            said = last_of(self._log.read().decode("utf-8", errors="replace").splitlines())
        return f"{how} ({said[:_LONGEST]})" if said else how


def last_of(lines: Sequence[str]) -> str:
    """Return the last line that native code printed, before it where Python was then, if it was told.

    A process that native code ends prints the stacks of its threads (`faulthandler`), that of the one at work first.
    """
    said = [line for line in lines if line.strip()]
    where = [number for number, line in enumerate(said) if line.startswith("Fatal Python error")]
    if not where:
        return " ".join(said[-1].split()) if said else ""
    before, after = said[: where[-1]], said[where[-1] :]
    frames = [line for line in after if line.lstrip().startswith("File ")]
    return " ".join(" ".join([*before[-1:], after[0], *frames[:1]]).split())


def _left(heard: _Heard, spec: Spec, limits: Limits, stop: Stop) -> Plan:
    """Return what the early end of a search left, and tell about it."""
    from dovetail.engine.incumbent import plan_of

    if heard.table is None and heard.error is not None and not isinstance(heard.error, MemoryError):
        raise heard.error
    stopped = heard.ended or ("interrupt" if stop else "crash")
    found = "the plan is the best so far" if heard.table is not None else "there is no plan yet"
    heard.reporter.warning(f"the search {heard.what_happened()}; {found}")
    if heard.table is None:
        return finish(context_of(spec), {}, (), Outcome("unknown", stopped, limits.fast))
    heard.reporter.phase("finish")
    return plan_of(spec, heard.table, heard.known, Outcome("feasible", stopped, limits.fast))
