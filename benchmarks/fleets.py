"""Plans of synthetic fleets beside the rivals, with the time of every phase.

    python -m benchmarks.fleets [--gpus 1000 10000 100000] [--loads 0.85 1.0 1.15] [--seconds 60 300] [--fast]

writes its part of docs/benchmarks.md, two plots beside it and the raw figures to build/bench/fleets.json. Each case
takes about the seconds given for dovetail, once for each limit, and the least of them for each rival.

    python -m benchmarks.fleets --also gangs slices [--gpus ...] [--loads ...] [--seconds ...]

does so for fleets with gangs and MIG services (`benchmarks.fleet`), without rivals: none of them places gangs.

Raw figures are kept fleet by fleet, in place of earlier ones of the same fleet: a run that breaks off loses one, and
large sizes can be measured another day. Figures of one page should be of one version: begin without build/bench/.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import rivals
from benchmarks.fleet import ALSO, fleet, write
from benchmarks.measure import PLENTY, Run, dovetail, taken
from benchmarks.page import FLEETS_RAW, JOINT_RAW, SCRATCH, raw, store, write_page
from benchmarks.synthetic.deadlines import AS_OF

from dovetail.plan import read, relative_gap

ROOT = Path(__file__).resolve().parent.parent
PROJECT = "project"  # of a fleet, in its directory
DATED = ("--as-of", str(AS_OF))
PATIENCE = 600  # seconds of processor time on top of the limits, after which a run is ended


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier of a plan."""

    name: str
    value: int
    bound: int | None
    gap: float | None
    proof: str
    relaxed: list[str]


@dataclass(frozen=True, slots=True)
class Planned:
    """One run of dovetail: `phases` in seconds as the run tells them, `history` pairs seconds with a widest gap.

    `seconds` are None where work ends it. `first` is when the first plan was there, in seconds from the start of
    solving; `gangs` are those admitted.
    """

    seconds: int | None
    fast: bool
    took: float
    peak: int
    failed: str = ""
    stopped_by: str = ""
    first: float | None = None
    phases: dict[str, float] = field(default_factory=dict)
    tiers: list[Tier] = field(default_factory=list)
    history: list[tuple[float, float]] = field(default_factory=list)
    verify: float = 0.0
    verified: bool = False
    gangs: int = 0


@dataclass(frozen=True, slots=True)
class Fleet:
    """All that was measured on one fleet; `gangs` are those that ask."""

    gpus: int
    load: float
    seed: int
    validate: float
    also: tuple[str, ...] = ()
    gangs: int = 0
    plans: list[Planned] = field(default_factory=list)
    rivals: list[rivals.Result] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every case, then write the page."""
    given = _options(arguments)
    load, name = taken(), JOINT_RAW if given.also else FLEETS_RAW
    for gpus in given.gpus:
        for share in given.loads:
            keep(name, load, asdict(_tell(measure(gpus, share, given))))
    write_page(given.out, name)
    return 0


def keep(name: str, load: float, found: Mapping[str, Any]) -> None:
    """Keep one fleet's raw figures beside those of others; `load` is that of the machine at the start."""
    before = (raw(name) or {"fleets": []})["fleets"]
    store(name, {"load": load, "fleets": joined(before, found)})


def joined(before: Sequence[Mapping[str, Any]], found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the figures of fleets in the order of a page, one fleet's in place of earlier ones of it."""

    def fleet_of(figures: Mapping[str, Any]) -> tuple[list[str], int, float, int]:
        return list(figures["also"]), figures["gpus"], figures["load"], figures["seed"]

    return sorted([*(each for each in before if fleet_of(each) != fleet_of(found)), found], key=fleet_of)


def parser_of(runner: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that say which fleets to measure."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{runner}", description=description.partition("\n")[0]
    )
    parser.add_argument("--gpus", type=int, nargs="+", default=[1000, 10_000, 100_000], help="sizes of fleets")
    parser.add_argument("--loads", type=float, nargs="+", default=[0.85, 1.0, 1.15])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--also", nargs="*", choices=ALSO, default=(), help="what else takes a part of the load")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where page and plots go")
    return parser


def _options(arguments: Sequence[str] | None) -> Any:
    parser = parser_of("fleets", __doc__)
    parser.add_argument("--seconds", type=int, nargs="+", default=[60, 300], help="time limits of dovetail")
    parser.add_argument("--fast", action="store_true", help="let dovetail search in parallel")
    parser.add_argument("--rivals", nargs="*", choices=rivals.RIVALS, metavar="RIVAL", help="all; with --also none")
    given = parser.parse_args(arguments)
    if given.rivals is None:
        given.rivals = [] if given.also else list(rivals.RIVALS)
    return given


def measure(gpus: int, load: float, given: Any) -> Fleet:
    """Write one fleet, plan it within each limit, and let the rivals try."""
    found, scratch = begun(gpus, load, given.seed, sorted(given.also))
    project = scratch / PROJECT
    for seconds in given.seconds:
        found.plans.append(plan(project, scratch / f"plan-{seconds}.yaml", seconds, given.fast, load))
    for name in given.rivals:
        result = rivals.ask(project, name, min(given.seconds))
        print(f"{gpus:,} GPUs at {load:g}: {name}: {result.failed or result.values}", file=sys.stderr)
        found.rivals.append(result)
    return found


def begun(gpus: int, load: float, seed: int, also: Sequence[str]) -> tuple[Fleet, Path]:
    """Write one fleet into a directory of its own; return it, validated, and that directory."""
    scratch = SCRATCH / "-".join(["fleet", str(gpus), f"{load:g}", str(seed), *also])
    shutil.rmtree(scratch, ignore_errors=True)
    texts = fleet(gpus, seed, load, also=also)
    write(texts, scratch / PROJECT)
    gangs = sum(text.count("type: gang\n") for text in texts.values())
    validated = dovetail("validate", scratch / PROJECT, *DATED)
    if validated.code:
        raise SystemExit(validated.err)
    return Fleet(gpus, load, seed, validated.seconds, tuple(also), gangs), scratch


def plan(project: Path, file: Path, seconds: int | None, fast: bool, load: float) -> Planned:
    """Plan, for the day that deadlines are counted from, and verify.

    So much work is allowed that the seconds end the search, where there are any.
    """
    limits = [] if seconds is None else ["--time-limit", f"{seconds}s", "--work", str(PLENTY * seconds)]
    limits += ["--fast"] if fast else []
    run = dovetail("plan", project, *limits, *DATED, "--out", file, ceiling=PATIENCE + 4 * (seconds or 0))
    if not file.exists():
        return Planned(seconds, fast, run.seconds, run.peak, failed=_why(run))
    verified = dovetail("verify", file, project, *DATED)
    done = read(file.read_text(encoding="utf-8"), file.name)
    if done.outcome.stopped_by == "crash":
        print(run.err, file=sys.stderr)  # the search's last words
    log = json.loads(file.with_suffix(".run.json").read_text(encoding="utf-8"))
    tiers = [
        Tier(
            tier.name,
            tier.value,
            tier.bound,
            float(tier.gap) if tier.gap is not None else None,
            tier.proof,
            list(tier.relaxed),
        )
        for tier in done.tiers
    ]
    return Planned(
        seconds,
        fast,
        run.seconds,
        run.peak,
        stopped_by=done.outcome.stopped_by or done.outcome.status,
        first=first_of(log),
        phases={phase["name"]: phase["seconds"] for phase in log["phases"]},
        tiers=tiers,
        history=[*worst(log["history"], load), *_end(tiers, load, run.seconds)],
        verify=verified.seconds,
        verified=verified.code == 0,
        gangs=len({replica.workload for replica in done.placements if "/pretrain-" in replica.workload}),
    )


def _why(run: Run) -> str:
    lines = run.err.strip().splitlines()
    return f"exit {run.code}: {lines[-1][:120]}" if lines else f"ended by force (exit {run.code})"


def first_of(log: Mapping[str, Any]) -> float | None:
    """Return when a run had its first plan, from the start of solving."""
    phases = {phase["name"]: float(phase["seconds"]) for phase in log["phases"]}
    told = [float(entry["at"]) - phases.get("load", 0.0) for entry in log["history"] if entry["value"] is not None]
    built = [phases.get("compile", 0.0) + phases["construct"]] if "construct" in phases else []
    return min([*told, *built], default=None)


def _end(tiers: Sequence[Tier], load: float, seconds: float) -> list[tuple[float, float]]:
    """Return the widest gap that a finished plan tells."""
    gaps = [100 * tier.gap for tier in tiers if counts(tier.name, load) and tier.gap is not None]
    return [(seconds, max(gaps))] if gaps else []


def counts(tier: str, load: float) -> bool:
    """Tell whether a tier is in question: cost where all that asks can run, admission elsewhere."""
    return tier == "cost" if load < 1 else tier.startswith("admitted")


def worst(history: Sequence[Mapping[str, Any]], load: float) -> list[tuple[float, float]]:
    """Return the widest gap in per cent of the tiers in question over time."""
    latest: dict[str, float] = {}
    found: list[tuple[float, float]] = []
    for entry in history:
        value, bound = entry["value"], entry["bound"]
        if not counts(entry["tier"], load) or value is None or bound is None:
            continue
        latest[entry["tier"]] = 100 * relative_gap(value, bound)
        gap = max(latest.values())
        if not found or found[-1][1] != gap:
            found.append((float(entry["at"]), gap))
    return found


def _tell(found: Fleet) -> Fleet:
    for each in found.plans:
        gaps = {tier.name: tier.gap for tier in each.tiers if counts(tier.name, found.load)}
        print(f"{found.gpus:,} GPUs at {found.load:g}: {each.seconds} s: {each.failed or gaps}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
