"""The sections on gangs of the page of measurements: a real ragged topology, and cases of other schedulers' tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

LINGJUN = """\
## Ten gangs on a real ragged topology

847 hosts of 8 GPUs under switches of three tiers, 119 groups of 2 to 8 hosts (Alibaba Lingjun 2023, published with
Crux, SIGCOMM 2024); ten gangs of 8 to 928 GPUs. The greedy takes gangs one by one: the smallest domain that still
holds the gang, and in it the fullest switches. Fewer domains are better, outermost first. `python -m
benchmarks.lingjun` measures this.
"""

CASES = """\
## Gang cases of other schedulers' tests

Each case is a test of a scheduler in a neutral form, with what is proved of it by enumeration. A case agrees where
the plan fits if and only if something does, and spans as few domains as possible, outermost level first; every answer
is checked against its case by arithmetic of its own. `python -m benchmarks.gang_cases` measures this.
"""


def lingjun(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield the section on the topology, from the runs of the benchmark."""
    yield LINGJUN
    yield "| hosts free | planner | gangs admitted | dsw | psw | asw | proof | time |"
    yield "|--:|---|--:|--:|--:|--:|---|--:|"
    for run in raw["runs"]:
        for row in run["rows"]:
            domains = " | ".join(str(row["domains"][level]) for level in ("dsw", "psw", "asw"))
            time = f"{row['seconds']:.1f} s" if "seconds" in row else ""
            cells = [run["free"], row["who"], row["admitted"], domains, row.get("proof", ""), time]
            yield f"| {' | '.join(map(str, cells))} |"
    yield ""


def cases(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield the section on cases, from the summary of the benchmark."""
    yield CASES
    yield "| aspect | cases | agree |"
    yield "|---|--:|--:|"
    for aspect, (agree, of) in raw["aspects"].items():
        yield f"| {aspect.replace('_', ' ')} | {of} | {agree} |"
    yield f"| everything, and the answer holds | {raw['cases']} | {raw['whole']} |"
    yield ""
    yield f"All cases take {raw['seconds']:.1f} s in all, the longest {raw['longest']:.2f} s."
    yield ""
