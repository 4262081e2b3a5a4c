"""The promises that a plan does not keep, as people read them."""

from __future__ import annotations

from dovetail.diff import of_rate
from dovetail.plan import BrokenPromise
from dovetail_cli.render.review import Review
from dovetail_cli.render.words import amount


def broken(review: Review) -> list[tuple[str, str]]:
    """Return the promises that are not kept: workload, and how much of it is."""
    return [(name, _kept(promise)) for name, promise in sorted(review.plan.promises.items())]


def _kept(promise: BrokenPromise) -> str:
    """Return how much of a promise is kept."""
    missing = f"{amount(promise.missing)} thousandths of what was promised are missing"
    served = of_rate(promise)
    return f"serves {served}: {missing}" if served else missing
