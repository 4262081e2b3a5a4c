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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import rivals, serving_page
from benchmarks.fleet import LEAST, write
from benchmarks.fleets import Planned, plan
from benchmarks.measure import taken
from benchmarks.page import CHANGED_RAW, SCRATCH, SERVING_RAW, store, write_page
from benchmarks.synthetic.deadlines import AS_OF
from benchmarks.synthetic.replan import today
from benchmarks.synthetic.serving import a_day_later, serving

from dovetail.placement import by_workload
from dovetail.plan import read

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
    raw = CHANGED_RAW if given.changed else SERVING_RAW
    store(raw, {"load": busy, "fleets": fleets})
    write_page(given.out, raw)
    print("\n".join(serving_page.table(fleets)))
    return 0


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__.partition("\n")[0])
    parser.add_argument("--gpus", type=int, nargs="+", default=[1000, 10_000], help=f"sizes of fleets, from {LEAST}")
    parser.add_argument("--loads", type=float, nargs="+", default=[1.0], help="what is asked for over what there is")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60, help="time limit of dovetail and of the autoscaler")
    parser.add_argument("--fast", action="store_true", help="let dovetail search in parallel")
    parser.add_argument(
        "--changed", action="store_true", help="plan each fleet once more, after some rates have changed"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    given = parser.parse_args(arguments)
    if min(given.gpus) < LEAST:
        parser.error(f"a fleet has {LEAST} GPUs or more")
    return given


def measure(gpus: int, load: float, given: Any) -> Served:
    """Write one fleet, plan it, and let the autoscaler try; both a day later, if that is asked for."""
    texts = serving(gpus, given.seed, load)
    project = _written(f"serving-{gpus}-{load:g}-{given.seed}", texts)
    done = _planned(project, load, given)
    if given.changed and not done.failed:
        text = _plan_of(project).read_text(encoding="utf-8")
        running = by_workload(read(text, project.name).placements)
        texts = a_day_later(texts, given.seed, today({name: list(own.values()) for name, own in running.items()}))
        project = _written(f"{project.name}-changed", texts)
        done = _planned(project, load, given)
    workloads = texts["workloads.yaml"].count("kind: Workload\n")
    found = Served(gpus, load, given.seed, workloads, done, [])
    for name in rivals.SERVERS:
        found.rivals.append(rivals.ask(project, name, given.seconds, AS_OF))
        print(f"{gpus:,} GPUs: {name}: {found.rivals[-1].failed or found.rivals[-1].values}", file=sys.stderr)
    return found


def _written(name: str, texts: Mapping[str, str]) -> Path:
    project = SCRATCH / name
    shutil.rmtree(project, ignore_errors=True)
    write(texts, project)
    return project


def _plan_of(project: Path) -> Path:
    return SCRATCH / f"{project.name}.plan.yaml"


def _planned(project: Path, load: float, given: Any) -> Planned:
    done = plan(project, _plan_of(project), given.seconds, given.fast, load)
    print(f"{project.name}: {done.failed or [(t.name, t.value, t.bound) for t in done.tiers]}", file=sys.stderr)
    return done


if __name__ == "__main__":
    sys.exit(main())
