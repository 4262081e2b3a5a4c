"""Projects of synthetic fleets, as large as wanted: equal arguments give equal bytes.

    python -m benchmarks.fleet --gpus 1000 --seed 1 --load 1.0 --out DIR

writes a project that `dovetail validate DIR` accepts: three GPU types in four unequal zones and racks of 8 to 32
nodes, residual nodes, ten tenants of whom some are kept apart, quotas, spreads, certified nodes, three priorities,
300 shapes of whole GPUs, 100 of parts of one and 24 without. The load is what is asked for, in milli-GPU, over what
is healthy.

    python -m benchmarks.fleet --gpus 1000 --also gangs slices --out DIR

lets gangs of 2 to 128 nodes on ragged racks, and services on MIG instances, take a part of that load. `single` makes
some A100 and H100 nodes offer MIG with `migStrategy: single`; `modes` has some L40S nodes shared by equal parts, by a
device plugin, and policies that say who may be on GPUs in which mode and how many. `survive` lets the services of the
highest priority survive the loss of any rack, for which work of lower ones goes. `spares` holds places free: whole
nodes, one in a hundred, four of one rack, and halves of GPUs. `elastic` lets gangs run from half to five quarters as
wide. `deadlines` gives half of the jobs of whole GPUs work to be done by a day, on faster and slower GPUs, and the
objective what is missing of that right after admission; plan such a fleet with `--as-of 2026-11-28`.

    python -m benchmarks.fleet --replan DIR [--plan PLAN] --seed 1 --out LATER

writes that project as it is some days later: 90 % of its GPUs at work as in the plan, one workload in a hundred
scaled, dropped, new or of another priority, and two nodes in a thousand failed. What runs is in LATER/today.yaml, a
part of the project.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__" and str(ROOT) not in sys.path:  # run as a file
    sys.path.insert(0, str(ROOT))

from benchmarks.synthetic import documents, gangs, slices  # noqa: E402
from benchmarks.synthetic.deadlines import AS_OF  # noqa: E402
from benchmarks.synthetic.hardware import hardware  # noqa: E402
from benchmarks.synthetic.work import replicas, shapes  # noqa: E402

LEAST = 100


ALSO = ("gangs", "elastic", "slices", "single", "modes", "survive", "spares", "deadlines")


def fleet(
    gpus: int,
    seed: int,
    load: float = 1.0,
    kinds: documents.Kinds = documents.ALL,
    also: Sequence[str] = (),
) -> Mapping[str, str]:
    """Return the text of every file of a project, by its path.

    Parameters
    ----------
    kinds : the kinds of rules that it has.
    also : out of `ALSO`, work that takes a part of the load, ways to cut and share GPUs, failures to survive, places
        to hold free, deadlines.
    """
    nodes = hardware(gpus, seed)
    found = shapes(nodes, seed)
    percent = round(100 * load)
    jobs = gangs.gangs(nodes, seed, percent) if "gangs" in also else ()
    services = slices.slices(nodes, seed, percent) if "slices" in also else ()
    taken = sum(one.milli for one in jobs) + sum(one.milli for one in services)
    rest = percent - round(100 * taken / nodes.milli)
    return documents.files(
        nodes,
        found,
        replicas(found, rest),
        kinds,
        (*gangs.documents(jobs, "elastic" in also), *slices.documents(services)),
        seed if "gangs" in also else None,
        also,
    )


def write(texts: Mapping[str, str], out: Path) -> None:
    """Write a project; workloads that a former one left in the directory go."""
    for stale in out.glob("workloads/*.yaml"):
        stale.unlink()
    for name, text in texts.items():
        file = out / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def later(project: Path, plan: Path | None, seed: int) -> Mapping[str, str]:
    """Return the files of a project some days later (`replan`); without a plan first fit decreasing gives one."""
    from benchmarks.baselines import first_fit_decreasing
    from benchmarks.specs import case_of
    from benchmarks.synthetic.replan import replan

    from dovetail.build import build
    from dovetail.documents import load_project
    from dovetail.plan import read

    spec = build(load_project(project), as_of=AS_OF)
    if plan is not None:
        found = read(plan.read_text(encoding="utf-8"), plan.name)
        return replan(project, spec, found.placements, seed, cut=found.gpus, shared=found.shared)
    case = case_of(spec, seed)
    return replan(project, spec, case.places(first_fit_decreasing(case.nodes, case.pods, case.gate())), seed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a fleet."""
    given = _options(arguments)
    if given.replan is None:
        texts = fleet(given.gpus, given.seed, given.load, also=given.also)
    else:
        texts = later(given.replan, given.plan, given.seed)
    write(texts, given.out)
    print(f"wrote {len(texts)} files, {sum(map(len, texts.values())) / 1e6:.1f} MB, to {given.out}")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__.partition("\n")[0])
    parser.add_argument("--gpus", type=int, default=0, help=f"GPUs in all, from {LEAST}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--load", type=float, default=1.0, help="what is asked for over what is healthy, such as 0.85"
    )
    told = "what else there is: work, ways to cut and share, failures, held places, deadlines"
    parser.add_argument("--also", nargs="*", choices=ALSO, default=(), help=told)
    parser.add_argument("--replan", type=Path, help="instead: a project of this command, as it is some days later")
    parser.add_argument("--plan", type=Path, help="the plan that runs there; first fit decreasing without")
    parser.add_argument("--out", type=Path, required=True, help="directory of the project")
    given = parser.parse_args(arguments)
    if given.replan is None and (given.gpus < LEAST or not 0 < given.load <= 10):
        parser.error(f"a fleet has {LEAST} GPUs or more (--gpus) and a load between 0 and 10")
    if given.plan is not None and given.replan is None:
        parser.error("--plan goes with --replan")
    if "elastic" in given.also and "gangs" not in given.also:
        parser.error("--also elastic goes with gangs")
    return given


if __name__ == "__main__":
    sys.exit(main())
