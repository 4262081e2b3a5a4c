"""What is tried first: the exact model where it is small, or where there is no plan so far."""

from __future__ import annotations

import pytest
from tests.support.specs import make_spec, node, place, policy, workload

from dovetail.engine import ladder
from dovetail.engine.ladder import solve
from dovetail.progress import Limits, Reporter
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
