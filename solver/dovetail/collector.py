"""When the garbage collector runs: fleets are plain values by the million, and hardly any cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = 100_000, 20, 50  # values made between collections; collections of younger ones between those of older ones


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector: building a million plain values takes a third of the time without it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def collect_seldom() -> None:
    """Let the garbage collector of this process run seldom, for the life of it."""
    gc.set_threshold(*_SELDOM)
