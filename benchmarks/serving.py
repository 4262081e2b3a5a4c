"""Plans of inference fleets beside a greedy autoscaler: what is admitted, what is missing of rates, what it costs.

    python -m benchmarks.serving [--gpus 1000 10000] [--loads 1.0] [--seed 1] [--seconds 60] [--fast]

writes its part of docs/benchmarks.md and the raw figures to build/bench/serving.json, and prints the table. Fleets
are those of `benchmarks.synthetic.serving`; the autoscaler (`benchmarks.autoscaler`) places the same documents within
the same seconds, and its places are measured by the tiers of the plan and checked like it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import rivals, serving_page
from benchmarks.fleet import LEAST, write
from benchmarks.fleets import Planned, plan
from benchmarks.measure import taken
from benchmarks.page import SCRATCH, SERVING_RAW, store, write_page
from benchmarks.synthetic.serving import AS_OF, serving

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Served:
    """All that was measured on one fleet."""

    gpus: int
    load: float
    seed: int
    workloads: int
    plan: Planned
    rivals: list[rivals.Result]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every fleet, then write the page."""
    given = _options(arguments)
    busy = taken()
    fleets = [asdict(measure(gpus, load, given)) for gpus in given.gpus for load in given.loads]
    store(SERVING_RAW, {"load": busy, "fleets": fleets})
    write_page(given.out, SERVING_RAW)
    print("\n".join(serving_page.table(fleets)))
    return 0


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__.partition("\n")[0])
    parser.add_argument("--gpus", type=int, nargs="+", default=[1000, 10_000], help=f"sizes of fleets, from {LEAST}")
    parser.add_argument("--loads", type=float, nargs="+", default=[1.0], help="what is asked for over what there is")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60, help="time limit of dovetail and of the autoscaler")
    parser.add_argument("--fast", action="store_true", help="let dovetail search in parallel")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    given = parser.parse_args(arguments)
    if min(given.gpus) < LEAST:
        parser.error(f"a fleet has {LEAST} GPUs or more")
    return given


def measure(gpus: int, load: float, given: Any) -> Served:
    """Write one fleet, plan it, and let the autoscaler try."""
    project = SCRATCH / f"serving-{gpus}-{load:g}-{given.seed}"
    shutil.rmtree(project, ignore_errors=True)
    texts = serving(gpus, given.seed, load)
    write(texts, project)
    workloads = texts["workloads.yaml"].count("kind: Workload\n")
    done = plan(project, SCRATCH / f"{project.name}.plan.yaml", given.seconds, given.fast, load, AS_OF)
    told = done.failed or [(tier.name, tier.value, tier.bound) for tier in done.tiers]
    print(f"{gpus:,} GPUs at {load:g}: {told}", file=sys.stderr)
    found = Served(gpus, load, given.seed, workloads, done, [])
    for name in rivals.SERVERS:
        found.rivals.append(rivals.ask(project, name, given.seconds, AS_OF))
        print(f"{gpus:,} GPUs: {name}: {found.rivals[-1].failed or found.rivals[-1].values}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
