"""The benchmark of idle GPU: what it counts from who is where, and what its page says."""

from __future__ import annotations

from benchmarks import fragmentation_page
from benchmarks.baselines import Fleet, Node, Pod
from benchmarks.fragmentation import fragmented

NODES = [Node("a", 8000, 100, 2, "G2"), Node("b", 1000, 100, 2, "T4")]
HALF = Pod("half", 1000, 1, 1, 500, frozenset())
BOTH = Pod("both", 4000, 1, 2, 1000, frozenset({"G2"}))


def test_a_shape_is_denied_what_lies_where_it_does_not_fit() -> None:
    fleet = Fleet(NODES)
    assert fragmented(NODES, [HALF, BOTH], fleet) == (0 + 2) / 2  # for both GPUs at once, the second node is no use
    fleet.put(HALF, 0, (0,))
    assert fragmented(NODES, [HALF, BOTH], fleet) == (0 + 1.5 + 2) / 2
    fleet.put(HALF, 1, (1,))  # the CPU of the second node is gone
    assert fragmented(NODES, [HALF, BOTH], fleet) == (1.5 + 1.5 + 1.5) / 2


def test_the_page_tells_every_planner_beside_the_bound() -> None:
    row = {"planner": "FGD goes on", "placed": 120, "idle": 50.0, "fragmented": 8.0, "seconds": 0.4, "bound": None}
    own = row | {"planner": "dovetail, 60 s", "fragmented": 5.0, "seconds": 60.0, "bound": 4.0}
    text = "\n".join(fragmentation_page.section({"cases": [{"arrived": 120, "before": 100, "rows": [row, own]}]}))
    assert "The first 100 and more" in text
    assert "| 100 + 20 | FGD goes on | 120 | 50.0 | 8.00 |  |  | 0.4 |" in text
    assert "| 100 + 20 | dovetail, 60 s | 120 | 50.0 | 5.00 | 4.00 | 20.00 % | 60.0 |" in text
