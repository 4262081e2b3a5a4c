"""Progress on stderr, and what Ctrl-C does to a run."""

from __future__ import annotations

import io
import os
import signal
import threading
from dataclasses import dataclass

import pytest

from dovetail.progress import Stop
from dovetail_cli import interrupts, streams
from dovetail_cli.progress import Display, Timeline


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(stream: io.StringIO) -> tuple[Clock, Timeline, Display]:
    clock = Clock()
    timeline = Timeline(clock)
    return clock, timeline, Display(timeline, stream)


def test_elsewhere_than_on_a_terminal_there_is_a_line_every_ten_seconds() -> None:
    stream = io.StringIO()
    clock, timeline, display = watched(stream)
    timeline.phase("improve", "part 3")
    timeline.tier("admitted[0]", "milli-GPU", 128_000, 130_000)
    for tick in range(1, 351):
        clock.now = tick / 10
        display.tick()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0] == "10 s  improve (part 3)  admitted[0] 128, bound 130 GPU, gap 1.54 %"


def test_a_short_run_says_only_what_took_how_long() -> None:
    stream = io.StringIO()
    clock, timeline, display = watched(stream)
    for name, seconds in (("load", 1.0), ("solve", 3.0), ("load", 0.5)):
        timeline.phase(name)
        clock.now += seconds
        display.tick()
    display.close()
    assert stream.getvalue() == "dovetail: 4.5 s (load 1.5, solve 3.0)\n"


def test_what_took_how_long_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    _, timeline, display = watched(stream)
    for name in ("load", "compile", "construct", "improve", "verify"):
        timeline.phase(name)
    display.close()
    lines = stream.getvalue().split("\x1b[2K")[-1].splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 40


def test_on_a_terminal_one_line_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    clock, timeline, display = watched(stream)
    timeline.phase("improve", "x" * 100)
    for tick in range(1, 21):
        clock.now = tick / 10
        display.tick()
    shown = stream.getvalue().split("\r\x1b[2K")[1:]
    assert 5 <= len(shown) <= 11
    assert "\n" not in stream.getvalue()
    assert {len(line) for line in shown} == {39}


def test_warnings_are_told_once_and_cannot_steer_the_terminal() -> None:
    stream = io.StringIO()
    _, timeline, display = watched(stream)
    timeline.warning("odd \x1b[2J")
    display.tick()
    display.tick()
    assert stream.getvalue() == "dovetail: warning: odd \\x1b[2J\n"


def test_the_log_of_a_run_names_no_machine() -> None:
    clock, timeline, _ = watched(io.StringIO())
    timeline.phase("solve")
    clock.now = 2.0
    timeline.tier("moves", "replicas", 3, None)
    timeline.finish()
    assert timeline.to_document() == {
        "seconds": 2.0,
        "phases": [{"name": "solve", "seconds": 2.0}],
        "history": [{"at": 2.0, "tier": "moves", "unit": "replicas", "value": 3, "bound": None}],
    }


def test_colours_only_on_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert streams.colours(Terminal())
    assert not streams.colours(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not streams.colours(Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not streams.is_live(Terminal())


def test_width_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    assert streams.width(Terminal()) == 72
    assert streams.width(io.StringIO()) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interrupt_stops_the_search_and_keeps_what_it_has(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    stop, before = Stop(), signal.getsignal(number)

    def search() -> str:
        os.kill(os.getpid(), number)
        assert stop.event.wait(10)
        return "best so far"

    with interrupts.guarded(stop):
        assert interrupts.in_background(search, lambda: None) == "best so far"
    assert stop
    assert "keeping the best plan so far" in capsys.readouterr().err
    assert signal.getsignal(number) is before


def test_the_second_interrupt_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    left = threading.Event()
    monkeypatch.setattr(interrupts, "_leave", left.set)
    stop = Stop()
    stop.set()

    def stubborn() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert left.wait(10)

    with interrupts.guarded(stop):
        interrupts.in_background(stubborn, lambda: None)


def test_what_goes_wrong_in_the_background_is_raised_here() -> None:
    def fail() -> None:
        raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        interrupts.in_background(fail, lambda: None)
