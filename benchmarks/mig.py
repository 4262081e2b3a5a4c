"""A thousand random MIG requests on A100-80GB: how many GPUs they take, beside what schedulers and templates do.

    python -m benchmarks.mig [--requests 1000] [--seeds 5] [--out docs]

Every stream draws its mixture of profiles anew. The baselines are written here, from how such schedulers work; they
see one request after the other. Streams are synthetic: gains on others differ.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__" and str(ROOT) not in sys.path:  # run as a file
    sys.path.insert(0, str(ROOT))

from dovetail.catalogue import load  # noqa: E402
from dovetail.engine import solve  # noqa: E402
from dovetail.mig import Geometry  # noqa: E402
from dovetail.spec import Accelerator, Cluster, Node, Request, Role, Spec, Workload  # noqa: E402
from dovetail.verify import verify  # noqa: E402

PRODUCT = "A100-80GB"
PER_NODE = 8
PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stream took: GPUs, seconds; for a plan also the proved bound, what it rests on, and `verify`'s word."""

    gpus: int
    seconds: float
    bound: int | None = None
    proof: str = ""
    sound: bool = True


def stream(requests: int, seed: int) -> list[str]:
    """Return profiles in the order in which they are asked for, smaller ones more often in most mixtures."""
    draw = Random(seed)
    weights = [draw.random() * (7 - min(6, index)) for index in range(len(PROFILES))]
    return draw.choices(PROFILES, weights, k=requests)


@cache
def geometry() -> Geometry:
    """Return how the product is cut."""
    found = load()[PRODUCT].mig
    assert found is not None
    return found


# ---------------------------------------------------------------------- baselines


def first_fit(wanted: Sequence[str]) -> int:
    """Put each request on the first GPU, at its first free start."""
    return _one_by_one(wanted, lambda used, taken: range(len(used)))


def first_fit_decreasing(wanted: Sequence[str]) -> int:
    """Do so with the largest requests first, which nobody can who sees one request at a time."""
    return first_fit(sorted(wanted, key=_size))


def best_fit(wanted: Sequence[str]) -> int:
    """Put each request on the fullest GPU that has a start for it."""
    return _one_by_one(wanted, lambda used, taken: sorted(range(len(used)), key=lambda gpu: -used[gpu]))


def one_profile_per_gpu(wanted: Sequence[str]) -> int:
    """Cut every GPU into instances of one profile."""
    return sum(math.ceil(n / geometry().by_name[name].maximum) for name, n in Counter(wanted).items())


def one_label_per_node(wanted: Sequence[str]) -> int:
    """Cut every GPU of a node alike, as the labels `all-*` do; a node's other GPUs are taken with it."""
    most = {name: PER_NODE * geometry().by_name[name].maximum for name in PROFILES}
    return sum(PER_NODE * math.ceil(n / most[name]) for name, n in Counter(wanted).items())


def _size(name: str) -> tuple[int, int]:
    profile = geometry().by_name[name]
    return -profile.size, -profile.compute


def _one_by_one(wanted: Sequence[str], order: Callable[[list[int], list[int]], Sequence[int]]) -> int:
    """Return how many GPUs requests take one by one; `order` ranks those in use."""
    taken: list[int] = []  # memory slices in use per GPU, as bits
    used: list[int] = []  # compute slices in use per GPU
    for name in wanted:
        for gpu in order(used, taken):
            if _placed(taken, used, gpu, name):
                break
        else:
            taken.append(0)
            used.append(0)
            _placed(taken, used, len(taken) - 1, name)
    return len(taken)


def _placed(taken: list[int], used: list[int], gpu: int, name: str) -> bool:
    profile = geometry().by_name[name]
    if used[gpu] + profile.compute > geometry().compute:
        return False
    for start in profile.starts:
        slices = ((1 << profile.size) - 1) << start
        if not taken[gpu] & slices:
            taken[gpu] |= slices
            used[gpu] += profile.compute
            return True
    return False


BASELINES: Mapping[str, Callable[[Sequence[str]], int]] = {
    "first fit": first_fit,
    "best fit": best_fit,
    "first fit decreasing": first_fit_decreasing,
    "one profile per GPU": one_profile_per_gpu,
    "one label per node": one_label_per_node,
}


# ---------------------------------------------------------------------- dovetail


def spec_of(wanted: Sequence[str], gpus: int) -> Spec:
    """Return a stream as a Spec, every GPU in use at a price of one millionth."""
    entry, cut = load()[PRODUCT], geometry()
    counts = Counter(wanted)
    works = tuple(_work(cut, name, counts[name]) for name in sorted(counts))
    nodes = tuple(
        Node(f"n{i:04d}", "n", 10**6, 10**6, PER_NODE, PRODUCT, gpu_price=1) for i in range(-(-gpus // PER_NODE))
    )
    cluster = Cluster("mig", ("node",), nodes)
    return Spec("mig", cluster, {PRODUCT: Accelerator(PRODUCT, entry.memory_mib, mig=cut)}, works)


def _work(cut: Geometry, name: str, replicas: int) -> Workload:
    profile = cut.by_name[name]
    request = Request(mig=name, mig_milli=max(profile.milli, 1000 * profile.size // cut.axis))
    identity = name.replace(".", "-")
    return Workload(identity, "", identity, "job", (Role("", replicas, request, request.gpu_milli),))


def dovetail(wanted: Sequence[str]) -> Outcome:
    """Plan a stream on as many GPUs as first fit takes, with the fewest in use."""
    spec = spec_of(wanted, first_fit(wanted))
    began = time.perf_counter()
    plan = solve(spec)
    seconds = time.perf_counter() - began
    cost = plan.tiers[-1]
    everything = len(plan.placements) == len(wanted)
    sound = everything and verify(spec, plan).ok
    return Outcome(cost.value, seconds, cost.bound, cost.proof, sound)


def measured(requests: int, seed: int) -> dict[str, Outcome]:
    """Return what every rival and dovetail make of one stream."""
    wanted = stream(requests, seed)
    found = {}
    for name, baseline in BASELINES.items():
        began = time.perf_counter()
        gpus = baseline(wanted)
        found[name] = Outcome(gpus, time.perf_counter() - began)
    return {**found, "dovetail": dovetail(wanted)}


def lines(requests: int, rows: Sequence[dict[str, Outcome]]) -> Iterator[str]:
    """Yield a page of the results."""
    names = list(rows[0])
    yield "# MIG requests"
    yield ""
    yield f"Written by `python -m benchmarks.mig`: {requests:,} requests per stream on {PRODUCT}, GPUs in use."
    yield "Every stream draws its own mixture of profiles. *dovetail* is proved to need that many, with a certificate"
    yield "that `verify` checks; seconds are those of planning. The last row adds up how much more the others take."
    yield ""
    yield f"| stream | {' | '.join(names)} | bound | proof | seconds |"
    yield f"|---|{'---|' * (len(names) + 3)}"
    for seed, row in enumerate(rows, start=1):
        own = row["dovetail"]
        cells = " | ".join(str(row[name].gpus) for name in names)
        yield f"| {seed} | {cells} | {own.bound} | {own.proof} | {own.seconds:.1f} |"
    least = sum(row["dovetail"].gpus for row in rows)
    more = [f"+{100 * (sum(row[name].gpus for row in rows) - least) / least:.1f} %" for name in names[:-1]]
    yield f"| all | {' | '.join(more)} | {least} | {sum(row['dovetail'].bound or 0 for row in rows)} | | |"
    yield ""
    yield "First fit decreasing sees all requests at once and cuts all GPUs anew, and comes close; templates do not."


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mig", description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    given = parser.parse_args(arguments)
    rows = []
    for seed in range(1, given.seeds + 1):
        rows.append(measured(given.requests, seed))
        print(f"{seed}: " + ", ".join(f"{name} {row.gpus}" for name, row in rows[-1].items()), file=sys.stderr)
    text = "\n".join(lines(given.requests, rows)) + "\n"
    (given.out / "benchmarks-mig.md").write_text(text, encoding="utf-8")
    print(text, end="")
    return 0 if all(row["dovetail"].sound for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
