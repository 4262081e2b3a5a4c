"""How a long computation tells what it is doing: no-op hooks that a caller fills in, so nothing here prints."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """When a search stops.

    Parameters
    ----------
    time : a ceiling in seconds of wall clock, None for none; results that it cut off may differ from run to run.
    work : units of deterministic work for the whole search (a second or two of one core each), None for the default.
    gap : relative gap of the admitted tiers at which the search may stop improving them.
    fast : search in parallel; quicker, but not reproducible.
    jobs : how many processes may solve parts side by side, which changes nothing but the time that it takes; None for
        one per processor where time ends the search or with `fast`, else for one.
    memory : bytes that each process of a search may take, None for four fifths of the machine's; it binds where the
        search has a process of its own.
    """

    time: float | None = None
    work: float | None = None
    gap: float = 0.0
    fast: bool = False
    jobs: int | None = None
    memory: int | None = None

    @property
    def processes(self) -> int:
        """How many processes may solve parts side by side."""
        if self.jobs is not None:
            return self.jobs
        return 1 if self.time is None and not self.fast else os.cpu_count() or 1


class Reporter:
    """Hooks called as a search goes on; each does nothing unless overridden."""

    def phase(self, name: str, detail: str = "") -> None:
        """A phase of the run begins: `load`, `compile`, `construct`, `bound`, `improve`, `expand`, `verify`."""

    def tier(self, name: str, unit: str, value: int | None, bound: int | None) -> None:
        """A tier's best value or bound changed."""

    def warning(self, message: str) -> None:
        """Something the user should know."""


@dataclass(slots=True)
class Stop:
    """A switch that another thread or a signal handler flips to end a search with the best plan so far."""

    event: threading.Event = field(default_factory=threading.Event)

    def set(self) -> None:
        """Ask the search to stop."""
        self.event.set()

    def __bool__(self) -> bool:
        """Tell whether the search was asked to stop."""
        return self.event.is_set()
