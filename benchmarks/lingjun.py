"""Ten gangs of mixed sizes on a real ragged topology, planned jointly and by a level-by-level greedy.

    DOVETAIL_DATA=DIR python -m benchmarks.lingjun [--busy 0 0.4] [--time-limit 60] [--out DIR] [--page docs]

reads `traces/lingjun2023_topology.csv` of the data directory (Alibaba Lingjun 2023, published with Crux, SIGCOMM
2024): 847 hosts of 8 GPUs under switches of three tiers, 119 groups of 2 to 8 hosts. A switch is known by its path,
as its name recurs under other parents. `--busy` makes a share of hosts, drawn evenly, unavailable. The greedy takes
gangs one by one: the smallest domain, innermost level first, that still holds the gang, and in it the fullest
switches. With `--page` the section of the page of measurements is written anew.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
for _source in (ROOT, ROOT / "solver"):
    if __name__ == "__main__" and str(_source) not in sys.path:  # run as a file
        sys.path.insert(0, str(_source))

from benchmarks import page  # noqa: E402
from benchmarks.measure import taken  # noqa: E402

from dovetail.build import build  # noqa: E402
from dovetail.documents import load_project  # noqa: E402
from dovetail.importers import emit  # noqa: E402
from dovetail.importers.project import ImportedProject, write_project  # noqa: E402
from dovetail.plan import Plan  # noqa: E402
from dovetail.spec import Spec  # noqa: E402

LEVELS = ("dsw", "psw", "asw")
GPUS = 8
GANGS = (928, 768, 640, 512, 384, 256, 128, 64, 32, 8)  # GPUs
FILE = "traces/lingjun2023_topology.csv"


@dataclass(frozen=True, slots=True)
class Host:
    """A host and the paths of its switches, outermost first."""

    name: str
    switches: tuple[str, ...]


def read_hosts(file: Path) -> list[Host]:
    """Return the hosts of the topology's table, in its order."""
    with file.open(encoding="utf-8", newline="") as stream:
        rows = [(row["host"], [row[level.upper()] for level in LEVELS]) for row in csv.DictReader(stream)]
    return [Host(name, tuple("/".join(parts[: depth + 1]) for depth in range(len(LEVELS)))) for name, parts in rows]


def free_hosts(hosts: Sequence[Host], busy: float, seed: int) -> list[Host]:
    """Return the hosts that are left where a share of all is busy."""
    taken = set(Random(f"lingjun {seed}").sample(range(len(hosts)), round(busy * len(hosts))))
    return [host for index, host in enumerate(hosts) if index not in taken]


# ---------------------------------------------------------------------- dovetail


def documents(hosts: Sequence[Host], free: Iterable[Host], gangs: Sequence[int]) -> ImportedProject:
    """Return the project: the whole cluster, busy hosts cordoned, and the gangs."""
    levels = ", ".join(f"{{name: {level}}}" for level in (*LEVELS, "node"))
    cluster = [f"  levels: [{levels}]", "  nodeGroups:", "  - name: lingjun", "    names:"]
    cluster += [f"    - {host.name}" for host in hosts]
    cluster += ["    accelerator: A100-80GB", f"    gpus: {GPUS}", "    cpu: 96", "    memory: 1Ti", "    domains:"]
    for depth, level in enumerate(LEVELS):
        cluster += [f"      {level}:", "        ranges:"]
        found: dict[str, list[str]] = {}
        for host in hosts:
            found.setdefault(host.switches[depth], []).append(host.name)
        cluster += [f"          {path}: {emit.inline(names)}" for path, names in sorted(found.items())]
    open_ = {host.name for host in free}
    busy = [f"    {host.name}: {{cordoned: true}}" for host in hosts if host.name not in open_]
    cluster += ["  nodes:", *busy] if busy else []
    work = [
        emit.document(
            "Workload",
            {"name": f"gang-{gpus:04}-{index}"},
            ["  type: gang", f"  replicas: {gpus // GPUS}", f"  request: {{gpus: {GPUS}, cpu: 64}}"],
        )
        for index, gpus in enumerate(gangs)
    ]
    objective = emit.document("Objective", {"name": "domains"}, ["  tiers: [admitted, topology]"])
    project = emit.document("Project", {"name": "lingjun"}, ['  documents: ["*.yaml"]', "  objective: domains"])
    files = {
        "dovetail.yaml": emit.file([], [project]),
        "cluster.yaml": emit.file([], [emit.document("Cluster", {"name": "lingjun"}, cluster)]),
        "gangs.yaml": emit.file([], work),
        "objective.yaml": emit.file([], [objective]),
    }
    return ImportedProject(files, frozenset(files))


def spans(spec: Spec, plan: Plan) -> tuple[int, Mapping[str, int]]:
    """Return how many gangs are admitted, and the domains they span by level, each gang's counted for itself."""
    nodes: dict[str, set[str]] = {}
    for replica, place in plan.placements.items():
        nodes.setdefault(replica.workload, set()).add(place.node)
    by_name = spec.cluster.by_name
    found = {
        level: sum(len({by_name[node].domain(level) for node in each}) for each in nodes.values()) for level in LEVELS
    }
    return len(nodes), found


# ---------------------------------------------------------------------- greedy


class Greedy:
    """Places gangs one by one, level by level."""

    def __init__(self, free: Iterable[Host]) -> None:
        self.left = Counter(host.switches[-1] for host in free)
        self.admitted = 0
        self.domains = dict.fromkeys(LEVELS, 0)

    def place(self, hosts: int) -> None:
        """Place a gang, if it fits at all, in the tightest domain of the innermost level that holds it."""
        for depth in reversed(range(len(LEVELS))):
            room = self._room(depth)
            good = [path for path in room if room[path] >= hosts]
            if good:
                self._into(min(good, key=lambda path: (room[path], path)), depth, hosts)
                self.admitted += 1
                return

    def _room(self, depth: int, inside: str = "") -> Counter[str]:
        room: Counter[str] = Counter()
        for path, count in self.left.items():
            if count and (not inside or path.startswith(f"{inside}/")):
                room["/".join(path.split("/")[: depth + 1])] += count
        return room

    def _into(self, path: str, depth: int, hosts: int) -> None:
        self.domains[LEVELS[depth]] += 1
        if depth + 1 == len(LEVELS):
            self.left[path] -= hosts
            return
        while hosts:
            room = self._room(depth + 1, path)
            enough = [child for child in room if room[child] >= hosts]
            child = min(enough, key=lambda c: (room[c], c)) if enough else max(room, key=lambda c: (room[c], c))
            self._into(child, depth + 1, min(hosts, room[child]))
            hosts -= min(hosts, room[child])

    def with_outer(self) -> Mapping[str, int]:
        """Return the domains of every level; a gang inside one domain spans one at each level outside it."""
        return {level: max(self.domains[level], self.admitted) for level in LEVELS}


def greedy(free: Sequence[Host], gangs: Iterable[int]) -> tuple[int, Mapping[str, int]]:
    """Return what the greedy admits and spans, gangs in the order given."""
    state = Greedy(free)
    for gpus in gangs:
        state.place(gpus // GPUS)
    return state.admitted, state.with_outer()


# ---------------------------------------------------------------------- the run


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan and compare."""
    given = _options(arguments)
    root = os.environ.get("DOVETAIL_DATA")
    if not root or not (Path(root) / FILE).is_file():
        print(f"set DOVETAIL_DATA to a directory with {FILE}", file=sys.stderr)
        return 64
    load = taken() if given.page else 0.0
    runs = [_run(read_hosts(Path(root) / FILE), busy, given) for busy in given.busy]
    if given.page:
        page.store(page.LINGJUN_RAW, {"load": load, "runs": runs})
        page.write_page(given.page, page.LINGJUN_RAW)
    return 0


def _run(hosts: Sequence[Host], busy: float, given: argparse.Namespace) -> dict[str, Any]:
    free = free_hosts(hosts, busy, given.seed)
    print(f"{len(hosts)} hosts, {len(free)} free; {len(given.gangs)} gangs of {sum(given.gangs)} GPUs in all")
    write_project(documents(hosts, free, given.gangs), given.out, overwrite=True)
    rows = []
    for words, order in (("as listed", given.gangs), ("smallest first", sorted(given.gangs))):
        rows.append(_told(f"greedy, {words}", *greedy(free, order)))
    rows.append(_plan(given.out, given.time_limit))
    return {"free": len(free), "rows": rows}


def _plan(project: Path, seconds: float) -> dict[str, Any]:
    from dovetail.engine import solve
    from dovetail.progress import Limits
    from dovetail.verify import verify

    spec = build(load_project(project), as_of=dt.datetime.now(dt.UTC).date())
    began = time.monotonic()
    plan = solve(spec, Limits(time=seconds))
    took = time.monotonic() - began
    told = _told("dovetail", *spans(spec, plan))
    for tier in plan.tiers:
        print(f"    {tier.name}: {tier.value}, bound {tier.bound}, {tier.proof}")
    print(f"    {plan.outcome.status}, {took:.1f} s, verified: {verify(spec, plan).ok}")
    return {**told, "seconds": took, "proof": plan.outcome.status}


def _told(who: str, admitted: int, domains: Mapping[str, int]) -> dict[str, Any]:
    print(f"{who:22} {admitted:3} gangs admitted, " + ", ".join(f"{n} {level}" for level, n in domains.items()))
    return {"who": who, "admitted": admitted, "domains": dict(domains)}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lingjun", description=__doc__.partition("\n")[0])
    parser.add_argument("--busy", type=float, nargs="+", default=[0.0], help="shares of hosts that are not available")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gangs", type=int, nargs="+", default=list(GANGS), help="GPUs of each gang")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("build/lingjun"), help="directory of the project")
    parser.add_argument("--page", type=Path, help="directory of the page of measurements")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
