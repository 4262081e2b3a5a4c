"""What today's state is worth, workload by workload."""

from __future__ import annotations

import pytest
from tests.support.specs import make_spec, node, place, replica, workload

from dovetail.placement import Places, by_workload, judge, today
from dovetail.spec import Spec, Workload


def test_places_are_sorted_by_workload_and_keep_their_order() -> None:
    rows = {replica("b#1"): place("n", 1), replica("a#0"): place("n", 2), replica("b#0"): place("n", 3)}
    assert by_workload(rows) == {
        "b": {replica("b#1"): place("n", 1), replica("b#0"): place("n", 3)},
        "a": {replica("a#0"): place("n", 2)},
    }
    assert list(by_workload(rows)["b"]) == [replica("b#1"), replica("b#0")]


def test_a_workload_is_judged_by_its_own_replicas_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, int] = {}

    def mix_holds(spec: Spec, workload: Workload, places: Places) -> bool:
        seen[workload.id] = len(places)
        return True

    monkeypatch.setattr(today, "mix_holds", mix_holds)
    running = {f"w{w}#{r}": place(f"n{w}", r) for w in range(3) for r in range(w + 1)}
    judge(
        make_spec(
            [node(f"n{i}", 4) for i in range(3)], [workload(f"w{i}", 4, gpus=1) for i in range(4)], running=running
        )
    )
    assert seen == {"w0": 1, "w1": 2, "w2": 3}


def test_what_runs_with_too_few_replicas_is_neither_protected_nor_preemptible() -> None:
    spec = make_spec(
        [node("a", 4)],
        [workload("few", 3, gpus=1, min_replicas=2), workload("fine", 1, gpus=1), workload("none", 1, gpus=1)],
        running={"few#0": place("a", 0), "fine#0": place("a", 1)},
    )
    judged = judge(spec)
    assert set(judged.places) == {replica("few#0"), replica("fine#0")}
    assert judged.protected == {replica("fine#0")}
    assert judged.preemptible == frozenset()
