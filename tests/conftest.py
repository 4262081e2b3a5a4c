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

LONGEST = (
    "scenarios/test_scenarios.py",
    "engine/test_oracle.py",
    "trace/test_trace.py",
    "robust/test_disturbed_runs.py",
    "engine/test_child.py",
    "oracle/test_new_rules.py",
    "docs/test_readme.py",
    "oracle/test_mig.py",
    "oracle/test_service_levels.py",
    "engine/test_medium_specs.py",
    "benchmarks/test_fleet.py",
    "engine/test_jobs.py",
    "oracle/test_mixed.py",
    "proof/test_proofs.py",
    "cli/test_doctor.py",
    "oracle/test_strength.py",
    "engine/test_gatherings.py",
    "engine/test_construct.py",
    "documents/test_hostile.py",
    "properties/test_engine.py",
    "verify/test_random_plans.py",
)
"""Files of tests that take longest, so that side by side none of them is begun last."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; `make test` gives them out in this order."""
    rank = {ROOT / "tests" / name: position for position, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


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
