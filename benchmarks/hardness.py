"""What each kind of rule costs a synthetic fleet: plans with all rules, and with a kind of them left out.

    python -m benchmarks.hardness [--gpus 1000] [--loads 1.0 1.15] [--seconds 60] [--seed 1]

A kind that costs nothing does not make a fleet hard. Values are those of plans, so they lie within the plans' gaps.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fleet import fleet, write
from benchmarks.fleets import plan
from benchmarks.measure import taken
from benchmarks.page import HARDNESS_RAW, SCRATCH, store, write_page
from benchmarks.synthetic.documents import ALL
from benchmarks.tiers import GPU_WORK

ROOT = Path(__file__).resolve().parent.parent
KINDS = {
    "nothing": (),
    "quota": ("quota",),
    "separate and exclusive": ("separate", "exclusive"),
    "spread": ("spread",),
    "require and forbid": ("require", "forbid"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every kind, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hardness", description=__doc__.partition("\n")[0])
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument("--loads", type=float, nargs="+", default=[1.0, 1.15])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fast", action="store_true", help="let dovetail search in parallel")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    given = parser.parse_args(arguments)
    rows, busy = [], taken()
    for load in given.loads:
        base: dict[str, int] = {}
        for name, kinds in KINDS.items():
            found = admitted(given.gpus, given.seed, load, kinds, given.seconds, given.fast)
            base = base or found
            rows.append({"load": load, "kind": name, "value": sum(found.values()), **gains(base, found)})
            print(f"{load:g}: without {name}: {found}: {rows[-1]['gain']:.2f} %", file=sys.stderr)
    told = {"gpus": given.gpus, "seed": given.seed, "seconds": given.seconds, "load": busy}
    store(HARDNESS_RAW, {**told, "rows": rows})
    write_page(given.out, HARDNESS_RAW)
    return 0


def admitted(gpus: int, seed: int, load: float, without: Sequence[str], seconds: int, fast: bool) -> dict[str, int]:
    """Return the admitted value per band of GPU work in a plan without some kinds of rules."""
    scratch = SCRATCH / f"hardness-{load:g}-{'-'.join(without) or 'all'}"
    write(fleet(gpus, seed, load, ALL - set(without)), scratch / "project")
    done = plan(scratch / "project", scratch / "plan.yaml", seconds, fast, load)
    if done.failed:
        raise SystemExit(done.failed)
    return {tier.name: tier.value for tier in done.tiers if tier.name.startswith(GPU_WORK)}


def gains(base: dict[str, int], found: dict[str, int]) -> dict[str, float]:
    """Return the gain over a base in per cent: of the sum, and of the band that gains most."""
    whole = sum(base.values())
    return {
        "gain": 100 * (sum(found.values()) - whole) / whole,
        "band": max(100 * (found[name] - base[name]) / max(base[name], 1) for name in base),
    }


if __name__ == "__main__":
    sys.exit(main())
