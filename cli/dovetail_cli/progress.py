"""Progress on stderr: a live line on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from dovetail.plan import relative_gap
from dovetail.progress import Reporter
from dovetail_cli import streams
from dovetail_cli.render.columns import Screen, prose
from dovetail_cli.render.words import human_unit, human_value, percent, printable

_EVERY = 10.0
_LIVE_EVERY = 0.2
_CLEAR = "\r\x1b[2K"


@dataclass(frozen=True, slots=True)
class Point:
    """One value or bound of a tier as the search found it; `at` in seconds from the start."""

    at: float
    tier: str
    unit: str
    value: int | None
    bound: int | None


@dataclass(slots=True)
class Timeline(Reporter):
    """Hears what a computation does and keeps it: phases with their seconds, tiers as they improve, warnings.

    The engine calls from its own thread and the display reads from another, hence the lock.
    """

    clock: Callable[[], float] = time.monotonic
    points: list[Point] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    detail: str = ""
    name: str = ""
    _started: float = field(init=False)
    _phase_started: float = field(init=False)
    _warnings: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._started = self._phase_started = self.clock()

    @classmethod
    def starting(cls, phase: str) -> Timeline:
        """Return a timeline whose first phase begins now."""
        timeline = cls()
        timeline.phase(phase)
        return timeline

    def phase(self, name: str, detail: str = "") -> None:
        """Note that a phase begins, and how long the one before took."""
        with self._lock:
            self._close()
            self.name, self.detail = name, detail

    def tier(self, name: str, unit: str, value: int | None, bound: int | None) -> None:
        """Note a tier's value and bound."""
        with self._lock:
            self.points.append(Point(self.elapsed(), name, unit, value, bound))

    def warning(self, message: str) -> None:
        """Keep a warning until the display takes it."""
        with self._lock:
            self._warnings.append(message)

    def take_warnings(self) -> list[str]:
        """Return the warnings that came since the last time."""
        with self._lock:
            found, self._warnings = self._warnings, []
        return found

    def finish(self) -> None:
        """Close the last phase."""
        with self._lock:
            self._close()
            self.name = self.detail = ""

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return self.clock() - self._started

    def status(self) -> str:
        """Return what goes on now, in one line."""
        parts = [f"{self.elapsed():.0f} s", self.name + (f" ({self.detail})" if self.detail else "")]
        current = self._in_question()
        if current is not None:
            parts.append(_point(current))
        return printable("  ".join(part for part in parts if part))

    def _in_question(self) -> Point | None:
        """Return the latest word on the first tier that is still open, or on the last tier where none is."""
        with self._lock:
            latest = {point.tier: point for point in self.points}
        still_open = (point for point in latest.values() if point.value is None or point.value != point.bound)
        return next(still_open, next(reversed(latest.values()), None))

    def to_document(self) -> dict[str, Any]:
        """Return phases and the tiers' history as plain data, without anything that names a machine."""
        return {
            "seconds": round(self.elapsed(), 3),
            "phases": [{"name": name, "seconds": round(taken, 3)} for name, taken in self.seconds.items()],
            "history": [
                {"at": round(p.at, 3), "tier": p.tier, "unit": p.unit, "value": p.value, "bound": p.bound}
                for p in self.points
            ],
        }

    def _close(self) -> None:
        now = self.clock()
        if self.name:
            self.seconds[self.name] = self.seconds.get(self.name, 0.0) + now - self._phase_started
        self._phase_started = now


def _point(point: Point) -> str:
    text = f"{point.tier} {human_value(point.value, point.unit)}"
    if point.bound is None:
        return f"{text} {human_unit(point.unit)}"
    text += f", bound {human_value(point.bound, point.unit)} {human_unit(point.unit)}"
    if point.value is None:
        return text
    return f"{text}, gap {percent(relative_gap(point.value, point.bound))}"


class Display:
    """Shows a timeline on stderr; `tick` is called often and prints when it is time."""

    def __init__(self, timeline: Timeline, stream: TextIO | None = None) -> None:
        self._timeline = timeline
        self._stream = stream or sys.stderr
        self._live = streams.is_live(self._stream)
        self._next = _LIVE_EVERY if self._live else _EVERY

    def tick(self) -> None:
        """Print warnings that came, and the state where it is time."""
        for warning in self._timeline.take_warnings():
            self._print(f"dovetail: warning: {printable(warning)}")
        if self._timeline.elapsed() < self._next:
            return
        if self._live:
            self._next = self._timeline.elapsed() + _LIVE_EVERY
            self._write(f"{_CLEAR}{self._timeline.status()[: (streams.width(self._stream) or 80) - 1]}")
        else:
            self._next += _EVERY
            self._print(self._timeline.status())

    def close(self) -> None:
        """Take the live line away and say what took how long."""
        self.tick()
        self._timeline.finish()
        phases = ", ".join(f"{name} {taken:.1f}" for name, taken in self._timeline.seconds.items())
        told = f"dovetail: {self._timeline.elapsed():.1f} s" + (f" ({phases})" if phases else "")
        self._print("\n".join(prose(told, Screen(streams.width(self._stream)), indent=0)))

    def _print(self, line: str) -> None:
        self._write(f"{_CLEAR if self._live else ''}{line}\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            return
