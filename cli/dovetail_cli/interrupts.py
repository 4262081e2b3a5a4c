"""Ctrl-C, or SIGTERM: the first ends the search with the best plan so far, the second stops at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic, TypeVar

from dovetail.engine.processes import end_group
from dovetail.progress import Stop
from dovetail_cli import streams
from dovetail_cli.exit_codes import ExitCode

T = TypeVar("T")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TICK = 0.1


class _Outcome(Generic[T]):
    """What came out of the worker: a value or an exception."""

    value: T
    error: BaseException | None = None


@contextmanager
def guarded(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C or SIGTERM flip `stop` for the length of the block; a second one leaves the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop:
            _leave()
        stop.set()
        streams.say("\ndovetail: interrupted, keeping the best plan so far; Ctrl-C again stops at once")

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave() -> None:
    """End the process now, native code and all; files are written whole, so nothing is left half done."""
    sys.stderr.flush()
    for child in multiprocessing.active_children():
        if child.pid is not None:
            end_group(child.pid)
    os._exit(ExitCode.INTERRUPTED)


@contextmanager
def held() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the block is done."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def in_background(work: Callable[[], T], tick: Callable[[], None]) -> T:
    """Return what `work` returns, calling `tick` about ten times a second meanwhile.

    The work is done in another thread, so that this one hears of Ctrl-C even while a solver runs native code.
    """
    outcome: _Outcome[T] = _Outcome()

    def body() -> None:
        try:
            outcome.value = work()
        except BaseException as error:
            outcome.error = error

    worker = threading.Thread(target=body, name="work", daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(_TICK)
        tick()
    if outcome.error is not None:
        raise outcome.error
    return outcome.value
