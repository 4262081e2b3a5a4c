"""A process in which the closest bounds of a large fleet are looked for, while the search for plans goes on."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from dovetail.engine.processes import begin_helping, context_to_start, dumps, go_after, go_last, loads
from dovetail.progress import Limits, Stop
from dovetail.spec import Spec

if TYPE_CHECKING:
    from dovetail.engine.fleet.pursuit import Best, Found

_TICK = 0.1
_AHEAD = 0.3  # of the time limit


@dataclass(slots=True)
class Aside:
    """A process that is told of better plans and looks for the bounds that are worth most to them (`Pursuit`).

    Parameters
    ----------
    private : a connection whose other end must see that it is closed when this process ends.
    ahead : seconds in which to look for bounds before it is told of any plan.
    lost : whether there is no process any more.
    """

    spec: Spec
    private: Connection | None = None
    ahead: float = 0.0
    lost: bool = False
    _process: BaseProcess | None = None
    _connection: Connection | None = None
    _found: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    _listening: bool = False

    @classmethod
    def for_limits(cls, spec: Spec, limits: Limits, private: Connection | None = None) -> Aside | None:
        """Return such a process where a search may have several; None where work ends it, which is to be reproduced.

        It is started at once where that is for free, else when it is first told anything.
        """
        if limits.time is None or limits.processes == 1:
            return None
        aside = cls(spec, private, _AHEAD * limits.time)
        aside._start(at_once=True)
        return aside

    def _start(self, *, at_once: bool = False) -> None:
        """Start the process, with `at_once` only by a fork, as before anything is imported."""
        if self._process is not None or self.lost:
            return
        context = context_to_start()
        forks = context.get_start_method() == "fork"
        if at_once and not forks:
            return
        ours, theirs = context.Pipe()
        told = self.spec, self.ahead
        given: tuple[Any, ...] = (theirs, *told, ours, self.private) if forks else (theirs, None, 0.0)
        process = context.Process(target=_serve, args=given, name="bounds", daemon=True)  # type: ignore[attr-defined]
        try:
            with theirs:  # closed here once the process has it, so that to send to one that is gone fails
                process.start()
            if not forks:
                ours.send_bytes(dumps(self.spec))
        except OSError:
            self.lost = True
            ours.close()
        else:
            self._process, self._connection = process, ours

    def tell(self, reached: Best) -> None:
        """Tell of the best plan so far."""
        self._start()
        if self._connection is None:
            return
        if not self._listening:
            self._listening = True
            threading.Thread(target=self._listen, args=(self._connection,), name="bounds", daemon=True).start()
        try:
            self._connection.send_bytes(dumps(reached))
        except OSError:
            self.close()

    def _listen(self, connection: Connection) -> None:
        """Take what is found as it comes; the process would wait for that."""
        with suppress(EOFError, OSError):
            while True:
                self._found.put(loads(connection.recv_bytes()))
        self._found.put(None)

    def heard(self, stop: Stop, until: float = 0.0) -> Iterator[Found | int]:
        """Yield what was found, tier by tier, and the number of a message for which nothing is left to find.

        Parameters
        ----------
        until : how long to wait for something, on the monotonic clock.
        """
        while not self.lost:
            try:
                found = self._found.get(timeout=min(_TICK, max(0.0, until - time.monotonic())))
            except queue.Empty:
                if stop or time.monotonic() >= until:
                    return
            else:
                if found is None:
                    self.close()
                else:
                    yield found

    def close(self) -> None:
        """End the process, for good."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._connection = None
        self.lost = True


def _serve(connection: Connection, given: Spec | None, ahead: float, *others: Connection | None) -> None:
    """Look for bounds until nobody is there any more; the newest message counts.

    Once there is a plan, processors are first of all for making it better.

    Parameters
    ----------
    given : None where the first message is the Spec.
    ahead : seconds in which to look for bounds before there is a message on any plan.
    others : ends of connections that a fork has copied.
    """
    begin_helping(*others)
    with suppress(EOFError, OSError):
        spec = given if given is not None else loads(connection.recv_bytes())
        from dovetail.engine.fleet.fleet_bounds import FleetBounds
        from dovetail.engine.fleet.pursuit import Best, Pursuit
        from dovetail.problem import compile_problem
        from dovetail.rules import context_of

        pursuit = Pursuit(FleetBounds(compile_problem(context_of(spec)), Stop()), go_last)
        nothing = Best(0, (0,) * len(pursuit.fleet.problem.tiers), time.monotonic() + ahead)
        while ahead and not connection.poll() and (early := pursuit.before_any_plan(nothing)) is not None:
            connection.send_bytes(dumps(early))
        reached: Best = loads(connection.recv_bytes())
        go_after()
        while True:
            found = pursuit.next(reached)
            connection.send_bytes(dumps(reached.number if found is None else found))
            if found is None:
                reached = loads(connection.recv_bytes())
            while connection.poll():
                reached = loads(connection.recv_bytes())
