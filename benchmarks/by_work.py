"""Plans of synthetic fleets by a command without options, and whether another run writes the same bytes.

    python -m benchmarks.by_work [--gpus 1000 10000 100000] [--loads 0.85 1.0 1.15] [--also gangs slices]

writes its part of docs/benchmarks.md and the raw figures to build/bench/fleets_by_work.json, fleet by fleet as
`benchmarks.fleets` does. Each fleet takes two to six minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.fleets import PATIENCE, PROJECT, begun, counts, keep, parser_of, plan
from benchmarks.measure import dovetail, taken
from benchmarks.page import BY_WORK_RAW, write_page

JOBS = 2  # processes of the second run


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan every fleet twice, then write the page."""
    given = parser_of("by_work", __doc__).parse_args(arguments)
    load = taken()
    for gpus in given.gpus:
        for share in given.loads:
            found, scratch = begun(gpus, share, given.seed, sorted(given.also))
            file = scratch / "plan.yaml"
            done = plan(scratch / PROJECT, file, None, fast=False, load=share)
            found.plans.append(done)
            gaps = {tier.name: tier.gap for tier in done.tiers if counts(tier.name, share)}
            same = not done.failed and again(scratch / PROJECT, file)
            told = f"{done.took:.0f} s: {done.failed or gaps}{'' if same else ', and other bytes again'}"
            print(f"{gpus:,} GPUs at {share:g}: {told}", file=sys.stderr)
            keep(BY_WORK_RAW, load, asdict(found) | {"again": same})
    write_page(given.out, BY_WORK_RAW)
    return 0


def again(project: Path, file: Path) -> bool:
    """Plan in several processes; tell whether the files are the same, byte for byte."""
    other = file.with_name(f"again-{file.name}")
    run = dovetail("plan", project, "--jobs", JOBS, "--out", other, ceiling=PATIENCE)
    return run.code == 0 and other.read_bytes() == file.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
