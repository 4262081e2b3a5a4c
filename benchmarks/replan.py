"""Plans of fleets that run 90 % full and change a little, beside rivals: what is admitted, and what moves for it.

    python -m benchmarks.replan [--gpus 1000 10000 100000] [--seconds 60] [--fast]

writes its part of docs/benchmarks.md and the raw figures to build/bench/replan.json. Each fleet is planned in haste,
that plan made the present state of a project in which one workload in a hundred and two nodes in a thousand have
changed (`python -m benchmarks.fleet --replan`), and this is planned within the seconds given.

    python -m benchmarks.replan --also gangs slices [--gpus ...] [--seconds 60] [--fast]

does so for fleets with other work in a part of the load: a node that a gang is on is among those that failed.

    python -m benchmarks.replan --policies [even few apart off] [--gpus ...] [--seconds 60] [--fast]

does so for the same fleets with one new policy at a time that what runs breaks (`benchmarks.synthetic.policies`).

    python -m benchmarks.replan --zones [zd ...] [--gpus ...] [--seconds 60] [--fast]

does so for the same fleets, each after the loss of one whole zone.

    python -m benchmarks.replan --ended [--gpus ...] [--seconds 60] [--fast]

does so for the same fleets once a third of the workloads has ended, with cost before disruption
(`benchmarks.synthetic.ended`).

    python -m benchmarks.replan --shares [--gpus ...] [--seconds 60] [--fast]

does so for fleets full of small shares that get work for whole and half nodes (`benchmarks.synthetic.shares`).

    python -m benchmarks.replan --instances [--gpus ...] [--seconds 60] [--fast]

does so for fleets full of MIG instances that get work for larger ones and whole GPUs
(`benchmarks.synthetic.instances`).

    python -m benchmarks.replan --batch [--gpus ...] [--seconds 60] [--fast]

does so for fleets full of preemptible gangs and jobs that get a surge of work of the highest band
(`benchmarks.synthetic.batch`).
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import rivals
from benchmarks.fleet import ALSO, fleet, later, write
from benchmarks.fleets import DATED, PATIENCE, Planned, plan
from benchmarks.measure import dovetail, taken
from benchmarks.page import (
    BATCH_RAW,
    ENDED_RAW,
    INSTANCES_RAW,
    POLICIES_RAW,
    REPLAN_JOINT_RAW,
    REPLAN_RAW,
    SCRATCH,
    SHARES_RAW,
    ZONES_RAW,
    store,
    write_page,
)
from benchmarks.synthetic.batch import batch
from benchmarks.synthetic.ended import ended
from benchmarks.synthetic.hardware import ZONES
from benchmarks.synthetic.instances import instances
from benchmarks.synthetic.losses import without_zone
from benchmarks.synthetic.policies import NEW, with_policy
from benchmarks.synthetic.shares import shares

from dovetail.plan import read

ROOT = Path(__file__).resolve().parent.parent
LOAD = 1.0  # of the fleet that was planned first; 90 % of its GPUs go on
HASTE = 0.5  # units of work for that plan
FULL = {  # fleets of their own
    "shares": (shares, SHARES_RAW),
    "instances": (instances, INSTANCES_RAW),
    "batch": (batch, BATCH_RAW),
}
NO_RIVALS = frozenset({"instances", "batch"})  # they know no gangs and no MIG


@dataclass(frozen=True, slots=True)
class Replanned:
    """All that was measured on one fleet, with other work `also`, and a new `policy` or a `zone` lost perhaps.

    `summary` counts moves, restarts and evictions of the plan.
    """

    gpus: int
    seed: int
    policy: str = ""
    zone: str = ""
    also: tuple[str, ...] = ()
    replicas: int = 0
    summary: dict[str, int] = field(default_factory=dict)
    plan: Planned | None = None
    rivals: list[rivals.Result] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every fleet, then write the page."""
    given = _options(arguments)
    load = taken()
    measured = measure_full if given.full else measure
    found = [asdict(each) for gpus in given.gpus for each in measured(gpus, given)]
    raw = REPLAN_JOINT_RAW if given.also else REPLAN_RAW
    raw = ENDED_RAW if given.ended else raw
    raw = POLICIES_RAW if given.policies else ZONES_RAW if given.zones else FULL[given.full][1] if given.full else raw
    store(raw, {"load": load, "fleets": found})
    write_page(given.out, raw)
    return 0


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replan", description=__doc__.partition("\n")[0])
    parser.add_argument("--gpus", type=int, nargs="+", default=[1000, 10_000, 100_000], help="sizes of fleets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60, help="time limit of dovetail and of each rival")
    parser.add_argument("--fast", action="store_true", help="let dovetail search in parallel")
    parser.add_argument(
        "--policies", nargs="*", choices=NEW, help="new policies, one at a time; all where none is named"
    )
    parser.add_argument(
        "--zones", nargs="*", choices=ZONES, help="zones lost, one at a time; all where none is named"
    )
    full = parser.add_mutually_exclusive_group()
    full.add_argument("--ended", action="store_true", help="a third of the work has ended, and cost comes first")
    for name in FULL:
        text = f"fleets full of {name} that get other work"
        full.add_argument(f"--{name}", dest="full", action="store_const", const=name, help=text)
    parser.add_argument("--also", nargs="*", choices=ALSO, default=(), help="what else takes a part of the load")
    parser.add_argument(
        "--rivals",
        nargs="*",
        choices=rivals.REPLANNERS,
        help="all; with --policies, --zones or --shares the first; with --also, --instances or --batch none",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    given = parser.parse_args(arguments)
    if given.full and (given.also or given.policies is not None or given.zones is not None):
        parser.error(f"--{given.full} has a fleet of its own: without --also, --policies and --zones")
    if given.ended and (given.also or given.policies is not None or given.zones is not None):
        parser.error("--ended goes without --also, --policies and --zones")
    given.policies = list(NEW) if given.policies == [] else given.policies or []
    given.zones = list(ZONES) if given.zones == [] else given.zones or []
    if given.rivals is None:
        one = given.policies or given.zones or given.full
        none = given.also or given.full in NO_RIVALS
        given.rivals = [] if none else list(rivals.REPLANNERS)[: 1 if one else None]
    return given


def measure(gpus: int, given: Any) -> Iterator[Replanned]:
    """Write one fleet, plan it in haste, change a little, and plan that.

    With each new policy, and after the loss of each zone, if any are given.
    """
    also = tuple(sorted(given.also))
    scratch = SCRATCH / "-".join(["replan", str(gpus), str(given.seed), *also])
    shutil.rmtree(scratch, ignore_errors=True)
    before = scratch / "before"
    write(fleet(gpus, given.seed, LOAD, also=also), before)
    limits = ["--work", str(HASTE), "--time-limit", f"{given.seconds}s", *DATED]
    first = dovetail("plan", before, *limits, "--out", scratch / "first.yaml", ceiling=PATIENCE + 4 * given.seconds)
    if not (scratch / "first.yaml").exists():
        raise SystemExit(first.err)
    after = later(before, scratch / "first.yaml", given.seed)
    cases = {name: (with_policy(after, name), {"policy": name}) for name in given.policies}
    cases |= {name: (without_zone(after, name), {"zone": name}) for name in given.zones}
    cases |= {"ended": (ended(after), {})} if given.ended else {}
    for name, (texts, case) in (cases or {"after": (after, {})}).items():
        write(texts, scratch / name)
        yield _planned(Replanned(gpus, given.seed, also=also, **case), scratch / name, given)


def measure_full(gpus: int, given: Any) -> Iterator[Replanned]:
    """Write one fleet that is full of one kind of work, and plan it."""
    project = SCRATCH / f"{given.full}-{gpus}-{given.seed}"
    shutil.rmtree(project, ignore_errors=True)
    made, _ = FULL[given.full]
    write(made(gpus, given.seed), project)
    yield _planned(Replanned(gpus, given.seed), project, given)


def _planned(fleet: Replanned, project: Path, given: Any) -> Replanned:
    """Plan a fleet that has changed, and let the rivals try."""
    file = project.with_suffix(".plan.yaml")
    planned = plan(project, file, given.seconds, given.fast, LOAD)
    found = replace(fleet, plan=planned)
    if not planned.failed:
        done = read(file.read_text(encoding="utf-8"), file.name)
        counted = {name: int(done.summary.get(name, 0)) for name in ("moves", "restarts", "evictedWorkloads")}
        found = replace(found, replicas=len(done.placements), summary=counted)
    told = planned.failed or [(t.name, t.value, t.bound) for t in planned.tiers]
    print(f"{fleet.gpus:,} GPUs, {project.name}: {told}", file=sys.stderr)
    for name in given.rivals:
        found.rivals.append(rivals.ask(project, name, given.seconds))
        print(f"{fleet.gpus:,} GPUs: {name}: {found.rivals[-1].failed or found.rivals[-1].values}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
