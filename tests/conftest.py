"""What every test may ask for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Random tests draw the same examples every time; `make campaign` is where new ones are looked for.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """The directory of public traces, which the project does not carry; skips where it is not given."""
    given = os.environ.get("DOVETAIL_DATA")
    if not given:
        pytest.skip("DOVETAIL_DATA does not name the directory of the traces")
    return Path(given)


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keep a line, a figure that was measured or a count of cases, for the end of the run."""
    return lambda line: record_property("told", line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the lines that tests told."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    lines = [str(value) for report in reports for key, value in report.user_properties if key == "told"]
    if lines:
        terminalreporter.section("measured", sep="-")
        for line in lines:
            terminalreporter.write_line(line)
