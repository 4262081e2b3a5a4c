"""What is tried first: the exact model where it is small, or where there is no plan so far."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.specs import make_spec, node, place, policy, workload

from dovetail.engine import ladder
from dovetail.engine.exact import Climb
from dovetail.engine.ladder import solve
from dovetail.engine.solvers.answer import Verdict
from dovetail.model.state import Fill, Slot, State
from dovetail.problem import compile_problem
from dovetail.progress import Limits, Reporter
from dovetail.rules import context_of
from dovetail.rules.admission import Admission
from dovetail.spec import Spec


class Phases(Reporter):
    """Keeps the phases of a search."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def phase(self, name: str, detail: str = "") -> None:
        self.names.append(name)


def spread_out(*, must: bool) -> Spec:
    """Return one of twelve nodes that are half full of what may move, and of a gang that needs six of them whole."""
    nodes = [node(f"n{i:02}", 4) for i in range(12)]
    runs = [workload(f"r{i:02}", 1, gpus=1 + i % 2, movable=True, value=0) for i in range(12)]
    where = {f"r{i:02}#0": place(f"n{i:02}", *range(1 + i % 2)) for i in range(12)}
    rules = [policy("whole", Admission(at_least="minimum"))] if must else []
    return make_spec(nodes, [workload("new", 6, type="gang", gpus=4), *runs], rules, running=where)


@pytest.mark.parametrize("must", [True, False])
def test_a_larger_model_is_tried_first_where_there_is_no_plan(monkeypatch: pytest.MonkeyPatch, *, must: bool) -> None:
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    told = Phases()
    plan = solve(spread_out(must=must), Limits(work=20.0), reporter=told)
    assert plan.outcome.status in ("optimal", "feasible")
    before = told.names[: told.names.index("generate")] if "generate" in told.names else told.names
    assert ("exact" in before) == must


def test_what_the_exact_model_leaves_of_later_tiers_is_looked_at_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends where its work does, mostly long before the last tier: who waits had no turn."""
    work = [workload("high", 4, gpus=1, priority=9), workload("low", 8, gpus=1)]
    spec = make_spec([node("a", 4), node("b", 4)], work)
    low = next(shape.index for shape in compile_problem(context_of(spec)).shapes if shape.workload.id == "low")
    found = State({n: Fill(Counter({Slot(low): 4})) for n in range(2)})
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder._Search, "_parts", lambda self, budget: Verdict.FEASIBLE)
    monkeypatch.setattr(ladder, "climb_named", lambda *args: Climb(Verdict.FEASIBLE, found, (), 1.0))
    plan = solve(spec, Limits(work=20.0))
    assert plan.tiers[0].value == 4_000
