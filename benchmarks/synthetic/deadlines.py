"""Deadlines in a synthetic fleet: jobs of whole GPUs have work to be done by a day, on faster and slower GPUs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from random import Random
from typing import Final

from benchmarks.synthetic.hardware import MILLI
from benchmarks.synthetic.work import A100, H100, L40S, Shape

AS_OF: Final = dt.date(2026, 11, 28)
"""The day for which fleets with deadlines are planned (`--as-of`)."""

ASKED = 0.5  # of the jobs of whole GPUs
SPEED = {H100: 1.0, A100: 0.5, L40S: 0.35}  # of what an H100 does
DAYS = (1, 2, 3)
PARTS = (0.3, 0.5, 0.7, 0.95)  # of what all replicas do until then on the fastest GPUs that they accept


def has_deadline(shape: Shape, name: str) -> bool:
    """Tell whether a workload of this shape has a deadline."""
    return not shape.single and shape.milli >= MILLI and Random(f"has {name}").random() < ASKED


def deadline(shape: Shape, name: str, count: int) -> Iterator[str]:
    """Yield the lines of `spec` for such a workload: accelerators with their speed, work, deadline."""
    rng = Random(f"deadline {name}")
    accepted = shape.accelerators or tuple(SPEED)
    fastest = max(SPEED[each] for each in accepted)
    days = rng.choice(DAYS)
    hours = max(1, int(shape.milli // MILLI * count * 24 * days * rng.choice(PARTS)))
    told = (f"{{name: {each}, throughput: {SPEED[each] / fastest:g}}}" for each in accepted)
    yield f"  accelerators: [{', '.join(told)}]"
    yield f"  slo: {{work: {hours}h, deadline: {AS_OF + dt.timedelta(days)}}}"
