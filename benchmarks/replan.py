"""Plans of fleets that run 90 % full and change a little, beside rivals: what is admitted, and what moves for it.

    python -m benchmarks.replan [--gpus 1000 10000 100000] [--seconds 60] [--fast]

writes its part of docs/benchmarks.md and the raw figures to build/bench/replan.json. Each fleet is planned in haste,
that plan made the present state of a project in which one workload in a hundred and two nodes in a thousand have
changed (`python -m benchmarks.fleet --replan`), and this is planned within the seconds given.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import rivals
from benchmarks.fleet import fleet, later, write
from benchmarks.fleets import PATIENCE, Planned, plan
from benchmarks.measure import dovetail
from benchmarks.page import REPLAN_RAW, SCRATCH, store, write_page

from dovetail.plan import read

ROOT = Path(__file__).resolve().parent.parent
LOAD = 1.0  # of the fleet that was planned first; 90 % of its GPUs go on
HASTE = 0.5  # units of work for that plan


@dataclass(frozen=True, slots=True)
class Replanned:
    """All that was measured on one fleet; `summary` counts moves, restarts and evictions of the plan."""

    gpus: int
    seed: int
    replicas: int = 0
    summary: dict[str, int] = field(default_factory=dict)
    plan: Planned | None = None
    rivals: list[rivals.Result] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every fleet, then write the page."""
    given = _options(arguments)
    load = os.getloadavg()[0]
    store(REPLAN_RAW, {"load": load, "fleets": [asdict(measure(gpus, given)) for gpus in given.gpus]})
    write_page(given.out)
    return 0


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replan", description=__doc__.partition("\n")[0])
    parser.add_argument("--gpus", type=int, nargs="+", default=[1000, 10_000, 100_000], help="sizes of fleets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60, help="time limit of dovetail and of each rival")
    parser.add_argument("--fast", action="store_true", help="let dovetail search in parallel")
    parser.add_argument("--rivals", nargs="*", choices=rivals.REPLANNERS, default=list(rivals.REPLANNERS))
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    return parser.parse_args(arguments)


def measure(gpus: int, given: Any) -> Replanned:
    """Write one fleet, plan it in haste, change a little, plan that, and let the rivals try."""
    scratch = SCRATCH / f"replan-{gpus}-{given.seed}"
    shutil.rmtree(scratch, ignore_errors=True)
    before, after, file = scratch / "before", scratch / "after", scratch / "plan.yaml"
    write(fleet(gpus, given.seed, LOAD), before)
    limits = ["--work", str(HASTE), "--time-limit", f"{given.seconds}s"]
    first = dovetail("plan", before, *limits, "--out", scratch / "first.yaml", ceiling=PATIENCE + 4 * given.seconds)
    if not (scratch / "first.yaml").exists():
        raise SystemExit(first.err)
    write(later(before, scratch / "first.yaml", given.seed), after)
    planned = plan(after, file, given.seconds, given.fast, LOAD)
    found = Replanned(gpus, given.seed, plan=planned)
    if not planned.failed:
        done = read(file.read_text(encoding="utf-8"), file.name)
        counted = {name: done.summary.get(name, 0) for name in ("moves", "restarts", "evictedWorkloads")}
        found = Replanned(gpus, given.seed, len(done.placements), {n: int(v) for n, v in counted.items()}, planned)
    print(f"{gpus:,} GPUs: {planned.failed or [(t.name, t.value, t.bound) for t in planned.tiers]}", file=sys.stderr)
    for name in given.rivals:
        found.rivals.append(rivals.ask(after, name, given.seconds))
        print(f"{gpus:,} GPUs: {name}: {found.rivals[-1].failed or found.rivals[-1].values}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
