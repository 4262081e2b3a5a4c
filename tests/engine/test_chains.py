"""Parts about what waits hold nodes along which room is passed on, from one that could host it to one with room."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.support.specs import make_spec, node, place, workload

from dovetail.engine.parts.chains import Chains
from dovetail.model.state import Fill, State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.rules import context_of
from dovetail.spec import Workload

CARDS = "H100-80GB", "A100-40GB", "L4"


def handed_on(*, movable: bool = True) -> tuple[Problem, State, int]:
    """Return nodes of three cards, full but for one, with work for one card or the next, and the shape that waits."""
    nodes = [node(f"{card[0].lower()}{i}", 4, accelerator=card) for card in CARDS for i in range(3)]
    running: dict[str, Workload] = {
        "first": workload("first", 3, gpus=4, accelerators=CARDS[:2], movable=movable),
        "second": workload("second", 3, gpus=4, accelerators=CARDS[1:]),
        "third": workload("third", 2, gpus=4, accelerators=CARDS[2:]),
    }
    where = {
        f"{name}#{i}": place(f"{letter}{i}", 0, 1, 2, 3)
        for name, letter, many in (("first", "h", 3), ("second", "a", 3), ("third", "l", 2))
        for i in range(many)
    }
    waiting = workload("waiting", gpus=4, accelerators=CARDS[:1])
    problem = compile_problem(context_of(make_spec(nodes, [*running.values(), waiting], running=where)))
    return problem, today_state(problem), problem.shapes_of_role["waiting", ""]


def names(problem: Problem, nodes: list[int]) -> list[str]:
    return sorted(problem.nodes[index].name for index in nodes)


def test_a_part_holds_one_node_for_every_step_to_room() -> None:
    problem, state, waiting = handed_on()
    chains = Chains(problem, Random(1))
    for _ in range(20):
        between, host, room = names(problem, chains.draw(state, waiting, range(9), 3))
        assert (host[0], between[0], room) == ("h", "a", "l2")


def test_ways_are_drawn_beside_each_other_as_long_as_there_is_room_for_them() -> None:
    problem, state, waiting = handed_on()
    drawn = Chains(problem, Random(1)).draw(state, waiting, range(9), 6)
    assert 3 <= len(drawn) <= 6
    assert "l2" in names(problem, drawn)


def test_there_is_no_way_past_who_may_not_move_or_without_the_node_that_has_room() -> None:
    problem, state, waiting = handed_on(movable=False)
    assert Chains(problem, Random(1)).draw(state, waiting, range(9), 6) == []
    problem, state, waiting = handed_on()
    others = [index for index, made in enumerate(problem.nodes) if made.name != "l2"]
    assert Chains(problem, Random(1)).draw(state, waiting, others, 6) == []


def test_what_nodes_have_left_is_that_of_the_state_at_hand() -> None:
    """The node with room is taken in one state, and free again in the next."""
    problem, state, waiting = handed_on()
    chains = Chains(problem, Random(1))
    third = problem.shapes_of_role["third", ""]
    free = problem.node_index["l2"]
    (slot,) = (slot for slot in state.fill(problem.node_index["l1"]).slots if slot.shape == third)
    taken = state.with_fills({free: Fill(Counter({slot: 1}))})
    assert chains.draw(state, waiting, range(9), 3)
    assert chains.draw(taken, waiting, range(9), 3) == []
    assert chains.draw(state, waiting, range(9), 3)
