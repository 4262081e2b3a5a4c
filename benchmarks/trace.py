"""Plans of the Alibaba GPU trace beside the schedulers of `baselines`, all measured in one run.

    python -m benchmarks.trace [--data DIR] [--seconds 60 300] [--arrived default ...]

writes docs/benchmarks.md, a plot beside it and the raw figures to build/bench/. DIR (or DOVETAIL_DATA) holds
openb/nodes.csv and openb/arrived/*.csv. With 60 and 300 seconds it takes about 35 minutes, on a machine that should
have nothing else to do: what others take at the start is noted in the page.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import baselines, rivals
from benchmarks.measure import PLENTY, dovetail, planned, taken
from benchmarks.page import SCRATCH, TRACE_RAW, store, write_page
from benchmarks.trace_page import Measured, Row

ROOT = Path(__file__).resolve().parent.parent
BASELINES: dict[str, Callable[[Sequence[baselines.Node], Sequence[baselines.Pod]], baselines.Fleet]] = {
    "first fit decreasing, offline": baselines.first_fit_decreasing,
    "best fit, online": baselines.best_fit,
    "FGD, online": baselines.fgd,
}
MODELS = ("CP-SAT per replica and node", "HiGHS per shape and node", "random parts")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, then write page, plot and raw figures."""
    given = _options(arguments)
    if given.data is None:
        print("benchmarks: name the directory of the traces with --data or DOVETAIL_DATA", file=sys.stderr)
        return 64
    there = lists(given.data)
    if unknown := sorted({*given.arrived} - {*there}):
        print(f"benchmarks: no list {', '.join(unknown)}; there are {', '.join(there) or 'none'}", file=sys.stderr)
        return 64
    load = taken()
    found = [measure(given.data, arrived, given.seconds, given.models) for arrived in given.arrived or there]
    store(TRACE_RAW, {"load": load, "lists": [asdict(each) for each in found]})
    write_page(given.out, TRACE_RAW)
    return 0


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trace", description=__doc__)
    data = os.environ.get("DOVETAIL_DATA")
    parser.add_argument("--data", type=Path, default=Path(data) if data else None, help="directory of the traces")
    parser.add_argument("--seconds", type=int, nargs="+", default=[60, 300], help="time limits of dovetail")
    parser.add_argument("--arrived", nargs="+", default=(), help="lists of arrived pods (all)")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS, help="plain models and random parts")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where page and plot go")
    return parser.parse_args(arguments)


def lists(data: Path) -> tuple[str, ...]:
    """The names of the lists of arrived pods in `data`, the default one first."""
    found = (file.stem for file in (data / "openb/arrived").glob("*.csv"))
    return tuple(sorted(found, key=lambda name: (name != "default", name)))


def measure(data: Path, arrived: str, limits: Sequence[int], models: Sequence[str] = MODELS) -> Measured:
    """Run every planner on one list of arrived pods."""
    nodes_file, pods_file = data / "openb/nodes.csv", data / f"openb/arrived/{arrived}.csv"
    nodes, pods = baselines.read_nodes(nodes_file), baselines.read_pods(pods_file)
    rows = [_tell(arrived, _baseline(name, nodes, pods)) for name in BASELINES]
    scratch = SCRATCH / arrived
    shutil.rmtree(scratch, ignore_errors=True)
    imported = dovetail("import", "openb", "--nodes", nodes_file, "--pods", pods_file, "--out", scratch / "project")
    if imported.code:
        raise SystemExit(imported.err)
    rows += [_tell(arrived, _rival(name, scratch / "project", min(limits))) for name in models]
    rows += [_tell(arrived, _plan(scratch, seconds)) for seconds in limits]
    cpu_only = sum(not pod.gpus for pod in pods)
    return Measured(arrived, len(pods), cpu_only, sum(pod.total for pod in pods), rows)


def _baseline(name: str, nodes: Sequence[baselines.Node], pods: Sequence[baselines.Pod]) -> Row:
    start = time.monotonic()
    fleet = BASELINES[name](nodes, pods)
    seconds = time.monotonic() - start
    fleet.check(nodes)
    outcome = fleet.outcome()
    return Row(name, outcome.milli, outcome.cpu_only, seconds)


def _rival(name: str, project: Path, seconds: int) -> Row:
    """Let a plain model or random parts try, for as long as dovetail has at the least."""
    result = rivals.ask(project, name, seconds)
    placed = {tier.partition("[")[0]: value for tier, value in result.values.items()}
    milli, cpu_only = placed.get("admitted", 0), result.cpu_only
    return Row(name, milli, cpu_only, result.seconds, stopped_by=result.failed or result.note, peak=result.peak)


def _plan(scratch: Path, seconds: int) -> Row:
    """Plan and verify; so much work is allowed that the seconds end the search."""
    project, file = scratch / "project", scratch / f"plan-{seconds}.yaml"
    limits = ("--time-limit", f"{seconds}s", "--work", str(PLENTY * seconds))
    run, verified, plan = planned(project, file, *limits)
    log = json.loads(file.with_suffix(".run.json").read_text(encoding="utf-8"))
    tier = plan.tiers[0]
    history = [
        (float(entry["at"]), entry["value"], entry["bound"])
        for entry in log["history"]
        if entry["tier"] == tier.name and entry["value"] is not None and entry["bound"] is not None
    ]
    return Row(
        f"dovetail, {seconds} s",
        tier.value,
        int(plan.summary["cpuOnlyReplicas"]),
        run.seconds,
        tier.bound,
        plan.outcome.stopped_by or plan.outcome.status,
        run.peak,
        verified.seconds,
        history,
    )


def _tell(arrived: str, row: Row) -> Row:
    print(f"{arrived}: {row.planner}: {row.milli / 1000:,.1f} GPUs in {row.seconds:,.1f} s", file=sys.stderr)
    return row


if __name__ == "__main__":
    sys.exit(main())
