"""Which parts of a cluster are planned anew: every state can be drawn from, and nodes with idle GPU come first."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.support.mig_specs import card, mig_request
from tests.support.specs import make_spec, node, request, role, workload

from dovetail.engine.parts.lns import Idle, Neighbourhoods, at_least, idle_milli
from dovetail.model.state import Fill, Slot, State
from dovetail.problem import Problem, compile_problem
from dovetail.rules import context_of

PRODUCT = "A100-80GB"
SHARE = 996


def _problem(nodes_in_all: int = 9) -> Problem:
    """Return nodes of three GPUs each, of which shares or instances take parts."""
    nodes = [node(f"n{i}", 3, accelerator=PRODUCT) for i in range(nodes_in_all)]
    asked = {
        "t/two": mig_request(PRODUCT, "2g.20gb"),
        "t/one": mig_request(PRODUCT, "1g.20gb"),
        "t/share": request(share=SHARE),
    }
    workloads = [workload(name, roles=[role("", 9, each)]) for name, each in asked.items()]
    return compile_problem(context_of(replace(make_spec(nodes, workloads), accelerators={PRODUCT: card(PRODUCT)})))


def _full(problem: Problem) -> Fill:
    """Return two GPUs full of instances, which count for more than two GPUs, and a share on the third.

    An instance counts for its part of the compute slices or of the memory slices, whichever is more (S2.9).
    """
    two, one, share = (problem.shapes_of_role[f"t/{name}", ""] for name in ("two", "one", "share"))
    cut = {Slot(two, gpu, "2g.20gb"): 3 for gpu in (0, 1)} | {Slot(one, gpu, "1g.20gb"): 1 for gpu in (0, 1)}
    return Fill(Counter({**cut, Slot(share, 2): 1}))


def test_no_gpu_is_less_than_idle_where_instances_count_for_more_than_it_has() -> None:
    problem = _problem()
    requests = {m.workload.id: shape.request for shape in problem.shapes for m in shape.members}
    cut = 3 * requests["t/two"].gpu_milli + requests["t/one"].gpu_milli
    assert cut > 1000
    state = State({0: _full(problem)})
    assert idle_milli(problem, state, 0) == 0
    assert idle_milli(problem, state, 1) == 3000


def test_parts_are_drawn_where_nothing_is_idle() -> None:
    problem = _problem()
    state = State({number: _full(problem) for number in range(len(problem.nodes))})
    neighbourhoods = Neighbourhoods(problem, size=3)
    for _ in range(20):
        parts = neighbourhoods.draw(state, 3)
        drawn = [number for part in parts for number in part]
        assert sorted(drawn) == list(range(len(problem.nodes)))


def test_nodes_with_idle_gpu_are_drawn_more_often_than_full_ones() -> None:
    problem = _problem()
    state = State({number: _full(problem) for number in range(1, len(problem.nodes))})
    neighbourhoods, often = Neighbourhoods(problem, size=3), Counter[int]()
    for _ in range(60):
        (part,) = neighbourhoods.draw(state)
        often.update(part)
    assert all(often[0] > often[number] for number in range(1, len(problem.nodes)))


class Told:
    """A lead that says that the first node loses, and that a shape is wanted, by two sets of hosts."""

    def __init__(self, shape: int, hosts: list[list[int]], losing: int = 0) -> None:
        self._shape, self._hosts, self._losing = shape, hosts, losing

    def of(self, state: State) -> dict[int, float]:
        return {self._losing: 1000.0}

    def wanted(self, state: State) -> dict[int, float]:
        return {self._shape: 5.0}

    def hosts(self, shape: int) -> list[list[int]]:
        assert shape == self._shape
        return self._hosts


def test_nodes_that_lose_by_a_proof_are_drawn_more_often() -> None:
    problem = _problem()
    state = State({number: _full(problem) for number in range(len(problem.nodes))})
    neighbourhoods, often = Neighbourhoods(problem, size=3), Counter[int]()
    lead = Told(0, [list(range(len(problem.nodes)))], losing=4)
    for _ in range(80):
        (part,) = neighbourhoods.draw(state, 1, lead)
        assert part == sorted(set(part))
        often.update(part)
    assert all(often[4] > often[number] for number in range(len(problem.nodes)) if number != 4)


def test_of_many_nodes_the_one_that_loses_is_still_in_half_of_the_parts_about_losses() -> None:
    weights = at_least({0: 1000.0} | dict.fromkeys(range(1, 10_000), 0.0), 0.02)
    assert weights[0] == 1000.0
    assert sum(weights.values()) <= 2 * weights[0]


def test_idle_gpu_is_told_anew_where_contents_change() -> None:
    problem = _problem()
    idle, full = Idle(problem), State({0: _full(problem)})
    one = full.with_fills({0: Fill(Counter({Slot(problem.shapes_of_role["t/share", ""], 2): 1}))})
    told = [idle.of(state, 0) for state in (full, full, one, State(), full)]
    assert told == [0, 0, 3000 - SHARE, 3000, 0]


def test_parts_about_a_shape_that_is_wanted_have_hosts_of_every_kind_that_rules_tell_apart() -> None:
    problem = _problem()
    state = State({number: _full(problem) for number in range(len(problem.nodes))})
    neighbourhoods = Neighbourhoods(problem, size=5)
    both = 0
    for _ in range(80):
        (part,) = neighbourhoods.draw(state, 1, Told(0, [[1], [2, 3]]))
        both += 1 in part and bool({2, 3} & set(part))
    assert both >= 80 * 3 / 8  # what led parts are about three times in eight


def test_a_part_stays_small_where_rules_tell_every_host_apart() -> None:
    problem = _problem(60)
    neighbourhoods, lead = Neighbourhoods(problem, size=3), Told(0, [[number] for number in range(60)])
    sizes = {len(part) for _ in range(40) for part in neighbourhoods.draw(State(), 1, lead)}
    assert 3 < max(sizes) < 30


def test_led_parts_of_a_round_have_no_node_in_common() -> None:
    problem = _problem()
    state = State({number: _full(problem) for number in range(2, len(problem.nodes))})
    neighbourhoods = Neighbourhoods(problem, size=3)
    for _ in range(30):
        drawn = [node for part in neighbourhoods.draw(state, 4, Told(0, [[1], [2, 3]])) for node in part]
        assert len(drawn) == len(set(drawn))
        assert set(drawn) == set(range(len(problem.nodes)))


def test_half_of_a_part_is_of_nodes_that_lose_and_parts_are_disjoint() -> None:
    problem = _problem()
    neighbourhoods = Neighbourhoods(problem, size=4)
    state = State({number: _full(problem) for number in range(len(problem.nodes))})
    for _ in range(20):
        first, second = neighbourhoods.draw_losing(state, 2, Told(0, [], losing=5))
        assert 5 in first
        assert len(first) == len(second) == 4
        assert not set(first) & set(second)


def test_parts_are_drawn_where_no_proof_says_that_a_node_loses() -> None:
    problem = _problem()
    parts = Neighbourhoods(problem, size=4).draw_losing(State(), 9, None)
    assert sorted(number for part in parts for number in part) == list(range(len(problem.nodes)))
