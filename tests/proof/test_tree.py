"""Trees of multipliers on models small enough to see by eye what they prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from dovetail.linear import Linear
from dovetail.proof import tree
from dovetail.proof.certificate import Branch, Cut, Leaf, Prices
from dovetail.proof.lagrangian import PlainRow
from dovetail.proof.tree import Question, Unproved, check_tree, next_value


def knapsack(target: int, bound: int = 3) -> Question:
    """Return the question whether x + y reaches a target under 2x + 2y <= bound, both from 0 to 3."""
    return Question(Linear({0: 1, 1: 1}), target, (0, 0), (3, 3), (PlainRow((0, 1), (2, 2), bound),))


def test_a_leaf_proves_what_its_multipliers_say() -> None:
    check_tree(knapsack(2), (Leaf({0: 1}, denominator=2),))
    with pytest.raises(Unproved, match="node 1 shows 1 at most, and 0 is needed"):
        check_tree(knapsack(1), (Leaf({0: 1}, denominator=2),))


def test_multipliers_count_by_their_denominator() -> None:
    with pytest.raises(Unproved, match="shows 3 at most"):
        check_tree(knapsack(2), (Leaf({0: 1}, denominator=3),))


def test_branches_prove_what_no_leaf_alone_can() -> None:
    question = Question(Linear({0: 2, 1: 2}), 3, (0, 0), (1, 1), (PlainRow((0, 1), (3, 3), 5),))
    check_tree(question, (Branch(0, 0), Leaf({}), Branch(1, 0), Leaf({}), Leaf({0: 2})))
    with pytest.raises(Unproved, match="node 1 shows 3 at most"):
        check_tree(question, (Leaf({0: 2}, denominator=3),))
    with pytest.raises(Unproved, match="node 3"):
        check_tree(question, (Branch(0, 0), Leaf({}), Leaf({0: 2})))


def test_a_cut_proves_without_branches() -> None:
    question = Question(Linear({0: 2, 1: 2}), 3, (0, 0), (1, 1), (PlainRow((0, 1), (3, 3), 5),))
    check_tree(question, (Leaf({2: 2}),), (Cut({0: 1}, denominator=3),))


def test_the_row_of_the_target_may_be_used() -> None:
    # 3x + 3y <= 5 and x + y >= 2: the target's row is -x - y <= -2.
    question = Question(Linear({0: 1, 1: 1}), 2, (0, 0), (3, 3), (PlainRow((0, 1), (3, 3), 5),))
    check_tree(question, (Leaf({0: 1, 1: 2}),))


def test_infeasibility_is_a_tree_over_the_objective_zero() -> None:
    odd = (PlainRow((0, 1), (2, 2), 3), PlainRow((0, 1), (-2, -2), -3))
    nothing = Question(Linear(), 0, (0, 0), (3, 3), odd)
    check_tree(nothing, (Leaf({3: 2, 1: 1}),), (Cut({0: 1}, denominator=2),))
    with pytest.raises(Unproved):
        check_tree(nothing, (Leaf({0: 1, 1: 1}),))


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ((), "ends early"),
        ((Branch(0, 1), Leaf({0: 1}, 2)), "ends early"),
        ((Leaf({0: 1}, 2), Leaf({0: 1}, 2)), "beyond its end"),
        ((Branch(9, 1), Leaf({}), Leaf({})), "variable that does not exist"),
        ((Branch(-1, 1), Leaf({}), Leaf({})), "variable that does not exist"),
        ((Leaf({7: 1}),), "row that does not exist"),
        ((Leaf({-1: 1}),), "row that does not exist"),
        ((Leaf({0: -1}),), "below 0"),
        ((Leaf({0: 1}, 0),), "denominator below 1"),
    ],
)
def test_what_is_no_tree_is_refused(nodes: tuple[Branch | Leaf, ...], why: str) -> None:
    with pytest.raises(Unproved, match=why):
        check_tree(knapsack(2), nodes)


@pytest.mark.parametrize(
    ("cut", "why"),
    [
        (Cut({2: 1}), "row that does not exist"),
        (Cut({0: 1}, 0), "denominator below 1"),
        (Cut({0: 1}, 2, (5,)), "variable that does not exist"),
    ],
)
def test_what_is_no_cut_is_refused(cut: Cut, why: str) -> None:
    question = Question(Linear({0: 1}), 2, (0, 0), (3, 3), (PlainRow((0, 1), (3, 2), 5),))
    with pytest.raises(Unproved, match=why):
        check_tree(question, (Leaf({0: 1}, 2),), (cut,))


@pytest.mark.parametrize("limit", ["LARGEST", "MOST_TERMS"])
def test_cuts_cannot_grow_without_end(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    question = Question(Linear({0: 1}), 2, (0, 0), (3, 3), (PlainRow((0, 1), (4, 2), 7),))
    cut = Cut({0: 1}, 4)
    check_tree(question, (Leaf({2: 1}),), (cut,))
    monkeypatch.setattr(tree, limit, 0)
    with pytest.raises(Unproved, match="cut 1 is too large"):
        check_tree(question, (Leaf({2: 1}),), (cut,))


def test_a_tree_that_takes_too_long_to_check_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_tree(knapsack(2), (Leaf({0: 1}, 2),))
    monkeypatch.setattr(tree, "MOST_LOOKED", 3)
    with pytest.raises(Unproved, match="too large to be checked"):
        check_tree(knapsack(2), (Leaf({0: 1}, 2),))


def test_a_tree_may_be_deeper_than_any_stack() -> None:
    depth = 20_000
    chain: tuple[Branch | Leaf, ...] = (
        *(Branch(0, 1) for _ in range(depth)),
        *(Leaf({0: 1}, 2) for _ in range(depth + 1)),
    )
    check_tree(knapsack(2), chain)


@pytest.mark.parametrize(
    ("terms", "constant", "bound", "target"),
    [({0: 1}, 0, 5, 6), ({0: 4}, 0, 5, 8), ({0: 4, 1: 6}, 1, 5, 7), ({}, 0, -1, 0), ({0: -3}, 0, -4, -3)],
)
def test_the_target_is_the_next_value_an_objective_can_have(
    terms: dict[int, int], constant: int, bound: int, target: int
) -> None:
    assert next_value(Linear(terms, constant), bound) == target


@dataclass(frozen=True)
class Either:
    """Two variables of which at most one is not 0, as one block; a price makes it dearer to be there."""

    price: int
    variables: tuple[int, int] = (0, 1)

    def limit(self, costs: Mapping[int, int]) -> int:
        return max(0, *(3 * (costs[v] - self.price) for v in self.variables)) + 3 * self.price


def test_blocks_bound_variables_together_and_take_prices_from_the_leaf() -> None:
    def blocks(prices: Prices) -> Sequence[Either]:
        own = prices.get(0, {})
        return [Either(own.get(5, 0) if isinstance(own, Mapping) else 0)]

    apart = Question(Linear({0: 1, 1: 1}), 4, (0, 0), (3, 3), ())
    with pytest.raises(Unproved, match="shows 6 at most"):
        check_tree(apart, (Leaf({}),))
    together = replace(apart, blocks=blocks)
    check_tree(together, (Leaf({}),))
    with pytest.raises(Unproved, match="shows 6 at most"):
        check_tree(together, (Leaf({}, prices={0: {5: 2}}),))
