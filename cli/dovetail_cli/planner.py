"""Plans of several Specs within the same limits, one after the other, each of them verified."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dovetail.placement import Place, Places
from dovetail.plan import Plan
from dovetail.progress import Limits, Stop
from dovetail.spec import Spec
from dovetail_cli import interrupts, library, streams
from dovetail_cli.progress import Display, Timeline

if TYPE_CHECKING:
    from dovetail.engine.guarded.guard import SolverProcess
    from dovetail.verify import Verification


@dataclass(slots=True)
class Planner:
    """Plans one side after the other within the same limits, and verifies each plan; `broken` holds what fails."""

    limits: Limits
    timeline: Timeline
    stop: Stop
    display: Display
    solver: SolverProcess
    broken: list[Verification] = field(default_factory=list)

    def __call__(self, spec: Spec, hint: Places | None = None) -> Plan:
        """Return a plan; the search starts from `hint`, else from what runs today."""
        today = {each.replica: Place(each.node, each.gpus, each.instance) for each in spec.current.replicas}
        reporter, stop, solver = self.timeline, self.stop, self.solver
        given = hint or today or None
        plan = library.solve(spec, self.limits, hint=given, reporter=reporter, stop=stop, solver=solver)
        plan = library.without_certificate(plan)
        if plan.outcome.status in ("optimal", "feasible"):
            self.timeline.phase("verify")
            check = functools.partial(library.verify, spec, plan)
            verification = interrupts.in_background(check, self.display.tick)
            if not verification.ok:
                self.broken.append(verification)
        return plan

    def complain(self) -> None:
        """Say on stderr which plans do not verify."""
        from dovetail.verify import lines

        for verification in self.broken:
            streams.say("dovetail: a plan does not verify; this is a defect of dovetail")
            streams.say("\n".join(lines(verification)))


@contextmanager
def running(limits: Limits) -> Iterator[Planner]:
    """Yield a planner whose process starts when it is first needed, with progress on stderr all the while."""
    timeline, stop = Timeline(), Stop()
    display = Display(timeline)
    try:
        with interrupts.guarded(stop), library.solver_process(limits, display.tick) as solver:
            yield Planner(limits, timeline, stop, display, solver)
    finally:
        display.close()
