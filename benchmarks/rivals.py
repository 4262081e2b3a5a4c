"""What plans are measured against on any project, each in a process of its own, within the same seconds.

    python -m benchmarks.rivals PROJECT --rival NAME --seconds 60 [--as-of DATE]

prints a line of JSON: what was placed, per tier, whether `verify` passes it, or why there is nothing.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from benchmarks import autoscaler, baselines, plain, solvers
from benchmarks.measure import measured
from benchmarks.plain import Rows, Scope, Slot, TooLarge, Unit
from benchmarks.specs import Case, case_of, values

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.placement import Place
from dovetail.spec import ReplicaId
from dovetail.verify import verify

GIB = 2**30
MEMORY = 8 * GIB  # of a rival's process
MOST_VARIABLES = 3_000_000  # above, a plain model does not fit into that memory
PART_GPUS = 120  # of a random part

Places = dict[ReplicaId, Place]


@dataclass(frozen=True, slots=True)
class Result:
    """What a rival did: values per tier, or `failed`, why it has none; `note` on what it left undone."""

    rival: str
    seconds: float = 0.0
    values: dict[str, int] = field(default_factory=dict)
    failed: str = ""
    note: str = ""
    verified: bool = False
    cpu_only: int = 0
    peak: int = 0


def greedy(policy: Callable[..., baselines.Fleet]) -> Callable[[Case, float], tuple[Places, str]]:
    """Return a rival that places replica by replica."""

    def place(case: Case, seconds: float) -> tuple[Places, str]:
        fleet = policy(case.nodes, case.pods, case.gate(), seconds)
        note = f"time up with {fleet.untried:,} of {len(case.pods):,} replicas not looked at" if fleet.untried else ""
        return case.places(fleet), note

    return place


def beside(case: Case, seconds: float) -> tuple[Places, str]:
    """Leave what runs where it is, and place the rest replica by replica."""
    places = case.context.today.places
    index = case.problem.node_index
    running = {str(replica): (index[place.node], place.gpus) for replica, place in places.items()}
    fleet = baselines.first_fit_beside(case.nodes, case.pods, running, case.gate(), seconds)
    note = f"time up with {fleet.untried:,} of {len(case.pods):,} replicas not looked at" if fleet.untried else ""
    return case.places(fleet), note


def model(
    solve: Callable[..., solvers.Solution | None], *, single: bool
) -> Callable[[Case, float], tuple[Places, str]]:
    """Return a rival that solves a plain model of the whole."""

    def place(case: Case, seconds: float) -> tuple[Places, str]:
        began = time.monotonic()
        scope = plain.whole(case, single=single)
        rows = plain.build(scope, MOST_VARIABLES)
        left = seconds - (time.monotonic() - began)
        note = f"{len(rows.upper):,} variables"
        solution = solvers.by_tiers(rows, left, solve) if left > 0 else None
        if solution is None:
            raise Failure(f"no solution in time, {note}")
        return named(case, slots_of(scope, rows, solution)), note

    return place


def parts(case: Case, seconds: float, seed: int = 1) -> tuple[Places, str]:
    """Split nodes and replicas at random into equal parts and solve each by itself (POP, SOSP 2021).

    Limits of rules over the whole are split alike; HiGHS solves the counts of each part. What parts break together
    (an evenness that holds in each) is taken off afterwards, replica by replica, by the guards of the rules.
    """
    gpus = sum(len(node.healthy_gpus()) for node in case.problem.nodes)
    many = max(2, round(gpus / PART_GPUS))
    ends, rng = time.monotonic() + seconds, Random(seed)
    found: dict[Slot, int] = defaultdict(int)
    done = 0
    for number, scope in enumerate(_split(case, many, rng)):
        if time.monotonic() >= ends:
            break
        rows = plain.build(scope, MOST_VARIABLES)
        left = (ends - time.monotonic()) / (many - number)
        solution = solvers.by_tiers(rows, left, solvers.highs) if left > 0 else None
        done += solution is not None
        for slot, count in slots_of(scope, rows, solution).items() if solution else ():
            found[slot] += count
    return named(case, _kept(case, found)), f"{many} parts" + (
        f", {many - done} of them without solution" if done < many else ""
    )


def _split(case: Case, many: int, rng: Random) -> Iterator[Scope]:
    nodes = rng.sample(range(len(case.nodes)), len(case.nodes))
    offsets = [rng.randrange(many) for _ in case.problem.shapes]
    for part in range(many):
        units = []
        for shape, offset in zip(case.problem.shapes, offsets, strict=True):
            demand = shape.demand // many + ((part + offset) % many < shape.demand % many)
            if demand:
                units.append(Unit(shape.index, demand))
        yield Scope(case, units, sorted(nodes[part::many]), (1, many))


def slots_of(scope: Scope, rows: Rows, solution: Sequence[int]) -> dict[Slot, int]:
    """Return how many replicas of each shape are where."""
    found: dict[Slot, int] = defaultdict(int)
    for (unit, node, gpu), count in plain.placed(rows, solution).items():
        found[scope.units[unit].shape, node, gpu] += count
    return found


def _kept(case: Case, found: dict[Slot, int]) -> dict[Slot, int]:
    """Return what of a union of parts no rule objects to, added in turns until nothing more can be."""
    gate, pods = case.gate(), {pod.kind: pod for pod in case.pods}
    waiting = [(shape, node, gpu) for (shape, node, gpu), count in sorted(found.items()) for _ in range(count)]
    kept: dict[Slot, int] = defaultdict(int)
    progress = True
    while waiting and progress:
        left = []
        for shape, node, gpu in waiting:
            at = gpu if gpu >= 0 else None
            if gate.bars(shape) or gate.blocks(shape, node, at):
                left.append((shape, node, gpu))
            else:
                gate.add(pods[shape], node, at)
                kept[shape, node, gpu] += 1
        progress, waiting = len(left) < len(waiting), left
    return kept


def named(case: Case, counts: dict[Slot, int]) -> Places:
    """Give counts the names of replicas, and whole GPUs the indices that shares leave."""
    shapes, shared = case.problem.shapes, defaultdict(set)
    for _, node, gpu in counts:
        if gpu >= 0:
            shared[node].add(gpu)
    free = {
        index: [gpu for gpu in node.healthy_gpus() if gpu not in shared[index]]
        for index, node in enumerate(case.problem.nodes)
    }
    waiting = {
        shape.index: (ReplicaId(m.workload.id, m.role.name, n) for m in shape.members for n in range(m.role.replicas))
        for shape in shapes
    }
    places: Places = {}
    for (shape, node, gpu), count in sorted(counts.items()):
        for _ in range(count):
            taken = (gpu,) if gpu >= 0 else tuple(free[node][: shapes[shape].request.gpus])
            free[node] = free[node] if gpu >= 0 else free[node][len(taken) :]
            places[next(waiting[shape])] = Place(case.problem.nodes[node].name, taken)
    return places


class Failure(Exception):
    """A rival that found nothing, and why."""


RIVALS: dict[str, Callable[[Case, float], tuple[Places, str]]] = {
    "first fit decreasing": greedy(baselines.first_fit_decreasing),
    "best fit": greedy(baselines.best_fit),
    "FGD": greedy(baselines.fgd),
    "CP-SAT per replica and node": model(solvers.cp_sat, single=True),
    "HiGHS per shape and node": model(solvers.highs, single=False),
    "random parts": parts,
}


REPLANNERS: dict[str, Callable[[Case, float], tuple[Places, str]]] = {
    "first fit, nothing moved": beside,
    "first fit decreasing, anew": RIVALS["first fit decreasing"],
}
"""Rivals for projects where something runs."""


SERVERS: dict[str, Callable[[Case, float], tuple[Places, str]]] = {"greedy autoscaler": autoscaler.place}
"""Rivals that know rates and MIG."""


def run(project: Path, rival: str, seconds: float, day: dt.date | None = None) -> Result:
    """Let a rival place the replicas of a project in this process; times are without reading the project."""
    spec = build(load_project(project), as_of=day or dt.datetime.now(dt.UTC).date())
    case = case_of(spec)
    began = time.monotonic()
    try:
        places, note = {**RIVALS, **REPLANNERS, **SERVERS}[rival](case, seconds)
    except TooLarge as error:
        return Result(rival, failed=f"not built: {error.variables:,} variables")
    except Failure as error:
        return Result(rival, time.monotonic() - began, failed=str(error))
    except MemoryError:
        return Result(rival, time.monotonic() - began, failed=f"not built: more than {MEMORY // GIB} GiB")
    took = time.monotonic() - began
    plan = case.plan(places)
    cpu_only = int(plan.summary["cpuOnlyReplicas"])
    return Result(rival, took, values(plan), note=note, verified=verify(spec, plan).ok, cpu_only=cpu_only)


def ask(project: Path, rival: str, seconds: float, day: dt.date | None = None) -> Result:
    """Run a rival in a process of its own, which is ended where it does not end by itself."""
    command = [sys.executable, "-m", "benchmarks.rivals", str(project), "--rival", rival, "--seconds", str(seconds)]
    command += ["--as-of", str(day)] if day is not None else []
    done = measured(command, cwd=Path(__file__).resolve().parent.parent, ceiling=int(4 * seconds) + 240)
    if done.code:
        why = "out of memory" if "MemoryError" in done.err or "bad_alloc" in done.err else "ended by force"
        return Result(rival, done.seconds, failed=why, peak=done.peak)
    return Result(**{**json.loads(done.out), "peak": done.peak})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one rival and print its result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description=__doc__.partition("\n")[0])
    parser.add_argument("project", type=Path)
    parser.add_argument("--rival", choices=[*RIVALS, *REPLANNERS, *SERVERS], required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--as-of", type=dt.date.fromisoformat, help="the day of deadlines; default today, UTC")
    given = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    print(json.dumps(asdict(run(given.project, given.rival, given.seconds, given.as_of))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
