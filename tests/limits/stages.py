"""Runs what surrounds the search on a project, stage by stage, and prints seconds and peak memory as JSON.

    python -m tests.limits.stages PROJECT [--again]

`--again` plans once more from what was constructed, with more asked for by one workload in a hundred.
"""

from __future__ import annotations

import datetime as dt
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.engine.construction.construct import construct
from dovetail.model.legal import legalise
from dovetail.model.score import score, view_of
from dovetail.model.state import today_state
from dovetail.objectives import tiers_of
from dovetail.plan import Plan, TierResult, current_of, finish, read, write
from dovetail.plan.model import Outcome
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Spec
from dovetail.verify import verify

T = TypeVar("T")


class Clock:
    """Seconds of each stage, by the clock and of processors."""

    def __init__(self) -> None:
        self.stages: dict[str, tuple[float, float]] = {}

    def run(self, stage: str, what: Callable[[], T]) -> T:
        """Run a stage and note what it took."""
        start, work = time.monotonic(), time.process_time()
        found = what()
        self.stages[stage] = time.monotonic() - start, time.process_time() - work
        return found


def plan_without_search(clock: Clock, spec: Spec, *, again: str = "") -> Plan:
    """Run the stages from a Spec to a verified plan that no search has improved."""
    context = clock.run(f"judge{again}", lambda: context_of(spec))
    problem = clock.run(f"compile{again}", lambda: compile_problem(context))
    state = clock.run(f"construct{again}", lambda: construct(problem, today_state(problem), Stop()))
    state = clock.run(f"legalise{again}", lambda: legalise(problem, state))
    view = clock.run(f"expand{again}", lambda: view_of(problem, state))
    clock.run(f"score{again}", lambda: score(problem, state))
    tiers: list[TierResult] = []
    for tier in tiers_of(context):
        value, given = tier.measure(view, context), {earlier.name: earlier.value for earlier in tiers}
        tiers.append(TierResult(tier.name, value, tier.limit(context), tier.unit, tier.sense, "trivial", given))
    plan = clock.run(f"finish{again}", lambda: finish(context, view.places, tiers, Outcome("feasible", "work")))
    text = clock.run(f"write{again}", lambda: write(plan))
    plan = clock.run(f"read{again}", lambda: read(text, "plan.yaml"))
    found = clock.run(f"verify{again}", lambda: verify(spec, plan))
    assert found.ok, [(check.name, check.findings[:3]) for check in found.checks if check.findings]
    return plan


def main(project: Path, *, again: bool) -> None:
    """Run all stages and print what they took."""
    clock = Clock()
    documents = clock.run("load", lambda: load_project(project))
    spec = clock.run("build", lambda: build(documents, as_of=dt.date(2025, 1, 1)))
    plan = plan_without_search(clock, spec)
    if again:
        workloads = list(spec.workloads)
        for index in range(0, len(workloads), 100):
            role = workloads[index].roles[0]
            more = replace(role, replicas=role.replicas + 3)
            workloads[index] = replace(workloads[index], roles=(more, *workloads[index].roles[1:]))
        changed = replace(spec, workloads=tuple(workloads), current=current_of(plan))
        plan_without_search(clock, changed, again=" again")
    scale = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
    print(json.dumps({"stages": clock.stages, "replicas": len(plan.placements), "peak": peak}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), again="--again" in sys.argv)
