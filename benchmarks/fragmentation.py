"""How little idle GPU is left in pieces that nobody wants, beside the schedulers that place pod after pod.

    python -m benchmarks.fragmentation [--data DIR] [--seconds 60] [--arrived 5199 6799] [--next 20 200 1600]

The Alibaba GPU trace up to a pod of its list, so that part of the fleet stays idle. What is idle counts as fragmented
for each shape of pod that cannot use it (S5.1, the measure of the FGD paper over all shapes of the list with GPUs).
Two ways: all pods planned at once; and the next pods planned beside what FGD placed so far, where nothing moves. The
fragmentation of each is counted here, from who is where. DIR (or DOVETAIL_DATA) holds openb/nodes.csv and
openb/arrived/default.csv.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import baselines
from benchmarks.baselines import MILLI, Fleet, Node, Pod
from benchmarks.measure import PLENTY, dovetail, planned, taken
from benchmarks.page import FRAGMENTATION_RAW, SCRATCH, store, write_page
from benchmarks.synthetic.replan import today

from dovetail.importers.openb import NAMESPACE, PodShape
from dovetail.placement import Place, by_workload
from dovetail.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
ONLINE = {"best fit": baselines.best_fit, "FGD": baselines.fgd}
AT_ONCE = "[mend, admitted, fragmentation]"
BESIDE = "[mend, admitted, disruption, fragmentation]"
TIER = "fragmentation"


@dataclass(frozen=True, slots=True)
class Row:
    """What one planner leaves: `idle`, `fragmented` and `bound` in GPUs, `placed` pods of all that arrived."""

    planner: str
    placed: int
    idle: float
    fragmented: float
    seconds: float
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """The rows of one case: `arrived` pods in all, of which FGD placed the first `before`, where any."""

    arrived: int
    before: int
    rows: list[Row]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, then write section and raw figures."""
    given = _options(arguments)
    if given.data is None:
        print("benchmarks: name the directory of the traces with --data or DOVETAIL_DATA", file=sys.stderr)
        return 64
    load, trace = taken(), Trace(given.data)
    cases = [trace.at_once(count, given.seconds) for count in given.arrived]
    cases += [trace.beside(count, more, given.seconds) for count in given.arrived[:1] for more in given.next]
    store(FRAGMENTATION_RAW, {"load": load, "seconds": given.seconds, "cases": [asdict(case) for case in cases]})
    write_page(given.out, FRAGMENTATION_RAW)
    return 0


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fragmentation", description=__doc__)
    data = os.environ.get("DOVETAIL_DATA")
    parser.add_argument("--data", type=Path, default=Path(data) if data else None, help="directory of the traces")
    parser.add_argument("--seconds", type=int, default=60, help="time limit of dovetail")
    parser.add_argument("--arrived", type=int, nargs="+", default=[5199, 6799], help="pods, from the first")
    parser.add_argument("--next", type=int, nargs="*", default=[20, 200, 1600], help="pods that arrive after these")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    return parser.parse_args(arguments)


class Trace:
    """The nodes and the pods in order of arrival."""

    def __init__(self, data: Path) -> None:
        self.nodes_file, self.pods_file = data / "openb/nodes.csv", data / "openb/arrived/default.csv"
        self.nodes, self.pods = baselines.read_nodes(self.nodes_file), baselines.read_pods(self.pods_file)

    def at_once(self, count: int, seconds: int) -> Case:
        """Plan the first pods at once."""
        pods = self.pods[:count]
        rows = [self._online(name, pods) for name in ONLINE]
        return Case(count, 0, [*rows, self._planned(pods, AT_ONCE, seconds)])

    def beside(self, before: int, more: int, seconds: int) -> Case:
        """Plan the next pods beside what FGD placed, and let FGD go on instead."""
        pods = self.pods[: before + more]
        start = time.monotonic()
        fleet = baselines.fgd(self.nodes, pods)
        spent = time.monotonic() - start
        first = {pod.name for pod in pods[:before]}
        running = [each for each in fleet.placed if each[0].name in first]
        going_on = self._row("FGD goes on", pods, fleet, spent)
        return Case(before + more, before, [going_on, self._planned(pods, BESIDE, seconds, running)])

    def _online(self, name: str, pods: Sequence[Pod]) -> Row:
        start = time.monotonic()
        fleet = ONLINE[name](self.nodes, pods)
        return self._row(f"{name}, online", pods, fleet, time.monotonic() - start)

    def _row(self, name: str, pods: Sequence[Pod], fleet: Fleet, seconds: float, bound: float | None = None) -> Row:
        fleet.check(self.nodes)
        idle = float(np.maximum(fleet.gpus, 0).sum()) / MILLI
        row = Row(name, len(fleet.placed), idle, fragmented(self.nodes, pods, fleet), seconds, bound)
        print(f"{len(pods)} pods: {row}", file=sys.stderr)
        return row

    def _planned(
        self, pods: Sequence[Pod], tiers: str, seconds: int, running: Sequence[tuple[Pod, int, tuple[int, ...]]] = ()
    ) -> Row:
        """Plan and verify; so much work is allowed that the seconds end the search."""
        names = _names(pods)
        scratch = SCRATCH / "fragmentation"
        shutil.rmtree(scratch, ignore_errors=True)
        project = self._project(scratch, pods, tiers)
        limits: list[str | Path] = ["--fast", "--time-limit", f"{seconds}s", "--work", str(PLENTY * seconds)]
        if running:
            limits += ["--max-moves", "0", "--current", _today(scratch, names, running, self.nodes)]
        file = scratch / "plan.yaml"
        run, _, plan = planned(project, file, *limits)
        tier = next(each for each in plan.tiers if each.name == TIER)
        weight = sum(bool(pod.gpus) for pod in pods)
        bound = None if tier.bound is None else tier.bound / weight / MILLI
        fleet = _fleet(plan, self.nodes, pods, names)
        return self._row(f"dovetail, {seconds} s", pods, fleet, run.seconds, bound)

    def _project(self, scratch: Path, pods: Sequence[Pod], tiers: str) -> Path:
        """Import the first pods of the list, with an objective that counts fragmentation."""
        project, file = scratch / "project", scratch / "pods.csv"
        scratch.mkdir(parents=True)
        lines = self.pods_file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join(lines[: len(pods) + 1]), encoding="utf-8")
        imported = dovetail("import", "openb", "--nodes", self.nodes_file, "--pods", file, "--out", project)
        if imported.code:
            raise SystemExit(imported.err)
        objective = (
            f"apiVersion: dovetail/v1alpha1\nkind: Objective\nmetadata: {{name: idle}}\nspec: {{tiers: {tiers}}}\n"
        )
        (project / "objective.yaml").write_text(objective, encoding="utf-8")
        with (project / "dovetail.yaml").open("a", encoding="utf-8") as stream:
            stream.write("  objective: idle\n")
        return project


def fragmented(nodes: Sequence[Node], pods: Sequence[Pod], fleet: Fleet) -> float:
    """Return how many GPUs are idle and of no use, as a mean over the pods with GPUs.

    For one shape of pod a node's idle GPU is of no use where the node cannot take the pod; else what lies on GPUs
    too full for it is.
    """
    shapes = Counter((pod.cpu, pod.gpus, pod.milli, pod.models) for pod in pods if pod.gpus)
    free = np.maximum(fleet.gpus, 0)
    idle = free.sum(axis=1)
    models = np.array([node.model for node in nodes])
    total = 0
    for (cpu, gpus, milli, accepted), count in shapes.items():
        fitting = free >= milli
        takes = (fleet.cpu >= cpu) & (fitting.sum(axis=1) >= gpus)
        if accepted:
            takes &= np.isin(models, sorted(accepted))
        useful = np.where(takes, (free * fitting).sum(axis=1), 0)
        total += count * int((idle - useful).sum())
    return total / shapes.total() / MILLI


def _shape(pod: Pod) -> PodShape:
    return PodShape(pod.gpus, pod.milli if pod.gpus else 0, pod.cpu, pod.memory, tuple(sorted(pod.models)))


def _names(pods: Sequence[Pod]) -> Mapping[PodShape, str]:
    """Return the workload that `import openb` makes of each shape."""
    counts = Counter(map(_shape, pods))
    ordered = sorted(counts, key=lambda shape: (-counts[shape], shape))
    width = max(4, len(str(len(ordered))))
    return {shape: f"{NAMESPACE}/p-{number:0{width}}" for number, shape in enumerate(ordered, start=1)}


def _today(
    scratch: Path,
    names: Mapping[PodShape, str],
    running: Sequence[tuple[Pod, int, tuple[int, ...]]],
    nodes: Sequence[Node],
) -> Path:
    """Write what runs as a Placement document."""
    places = defaultdict[str, list[Place]](list)
    for pod, node, gpus in running:
        places[names[_shape(pod)]].append(Place(nodes[node].name, gpus))
    file = scratch / "today.yaml"
    file.write_text(today(places), encoding="utf-8")
    return file


def _fleet(plan: Plan, nodes: Sequence[Node], pods: Sequence[Pod], names: Mapping[PodShape, str]) -> Fleet:
    """Put the pods of a plan where it says."""
    index = {node.name: number for number, node in enumerate(nodes)}
    waiting = defaultdict[str, list[Pod]](list)
    for pod in pods:
        waiting[names[_shape(pod)]].append(pod)
    fleet = Fleet(nodes)
    for workload, places in by_workload(plan.placements).items():
        for place in places.values():
            fleet.put(waiting[workload].pop(), index[place.node], place.gpus)
    return fleet


if __name__ == "__main__":
    sys.exit(main())
