"""Checks a tree of multipliers: does it show that an objective stays below a target? Integers only.

The question of a proof is always the same: is there an integer point in a box that keeps some rows and reaches a
target? The row "the objective reaches the target" may be used like any other, because only such points matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final

from dovetail.linear import Linear
from dovetail.proof.certificate import Branch, Cut, Leaf, Prices, Tree
from dovetail.proof.cuts import rounded
from dovetail.proof.lagrangian import Block, PlainRow, leaf_total

MOST_TERMS: Final = 2_000_000
"""Coefficients that all cuts of a proof may have together."""

MOST_LOOKED: Final = 100_000_000
"""Coefficients that all leaves of a proof may add up together: some ten seconds.

A block counts as a thousand, and so does each case of what its nodes hold.
"""

LARGEST: Final = 10**60
"""Coefficients of cuts may not be larger: cuts of cuts could otherwise grow without end."""

Blocks = Callable[[Prices], Sequence[Block]]
"""Makes the blocks of a leaf from its prices."""


class Unproved(Exception):
    """A tree does not show what it should; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Question:
    """Whether `objective`, which is maximised, reaches `target` anywhere in a box, under rows.

    Parameters
    ----------
    rows : those of the model; the row of the target and the cuts follow them.
    variables : how many are the model's own; sums of them may follow.
    """

    objective: Linear
    target: int
    lower: Sequence[int]
    upper: Sequence[int]
    rows: Sequence[PlainRow]
    blocks: Blocks = lambda prices: ()
    variables: int = 0

    def all_rows(self, cuts: Iterable[Cut]) -> list[PlainRow]:
        """Return the rows of the model, that of the target, and the cuts in order.

        Raises
        ------
        Unproved
            If a cut names a row that does not stand before it, or a variable that does not exist.
        """
        found = [*self.rows, self.target_row()]
        terms = 0
        for number, cut in enumerate(cuts, 1):
            where = f"cut {number}"
            _check_multipliers(cut, len(found), where)
            if any(not 0 <= variable < len(self.lower) for variable in cut.flipped):
                raise Unproved(f"{where} names a variable that does not exist")
            found.append(rounded(found, cut, self.lower, self.upper))
            terms += len(found[-1].variables)
            if terms > MOST_TERMS or abs(max((found[-1].upper, *found[-1].coefficients), key=abs)) > LARGEST:
                raise Unproved(f"{where} is too large")
        return found

    def target_row(self) -> PlainRow:
        """Return the row that says that the objective reaches the target."""
        terms = self.objective.terms
        return PlainRow(tuple(terms), tuple(-c for c in terms.values()), self.objective.constant - self.target)


def next_value(objective: Linear, bound: int) -> int:
    """Return the least value above a bound that an objective of integer variables can have."""
    step = gcd(*objective.terms.values())
    if step == 0:
        return bound + 1
    return bound + step - (bound - objective.constant) % step


def check_tree(question: Question, tree: Tree, cuts: Iterable[Cut] = ()) -> None:
    """Check that a tree leaves no point that reaches the target.

    Raises
    ------
    Unproved
        If it is no whole tree, names what does not exist, or a leaf's multipliers prove too little.
    """
    rows = question.all_rows(cuts)
    lower, upper = list(question.lower), list(question.upper)
    nodes = iter(enumerate(tree, 1))
    width, looked = len(question.objective.terms), 0
    due: list[tuple[int, int, int] | None] = [None]  # None: a node of the tree; else a variable's new box
    while due:
        step = due.pop()
        if step is not None:
            variable, lower[variable], upper[variable] = step
            continue
        number, node = next(nodes, (0, None))
        if node is None:
            raise Unproved("the tree ends early: a branch is missing")
        if isinstance(node, Branch):
            due += reversed(list(_halves(node, lower, upper, f"node {number}")))
            continue
        _check_multipliers(node, len(rows), f"node {number}")
        blocks = question.blocks(node.prices)
        cases = sum(len(each) for each in node.prices.values() if isinstance(each, tuple))
        looked += width + 1000 * (len(blocks) + cases)
        looked += sum(len(rows[position].variables) for position in node.multipliers)
        if looked > MOST_LOOKED:
            raise Unproved("the tree is too large to be checked")
        total = leaf_total(question.objective, rows, node.multipliers, node.denominator, lower, upper, blocks)
        bound = total // node.denominator
        if bound >= question.target:
            raise Unproved(f"node {number} shows {bound} at most, and {question.target - 1} is needed")
    if next(nodes, None) is not None:
        raise Unproved("the tree has nodes beyond its end")


def _halves(
    node: Branch, lower: Sequence[int], upper: Sequence[int], where: str
) -> Iterator[tuple[int, int, int] | None]:
    """Yield what a branch makes due: each half's box with the nodes below it, then the box as it was."""
    if not 0 <= node.variable < len(lower):
        raise Unproved(f"{where} branches on a variable that does not exist")
    low, high = lower[node.variable], upper[node.variable]
    yield node.variable, low, min(high, node.most)
    yield None
    yield node.variable, max(low, node.most + 1), high
    yield None
    yield node.variable, low, high


def _check_multipliers(part: Leaf | Cut, rows: int, where: str) -> None:
    if any(not 0 <= position < rows for position in part.multipliers):
        raise Unproved(f"{where} has a multiplier of a row that does not exist")
    if part.denominator < 1:
        raise Unproved(f"{where} has a denominator below 1")
    if isinstance(part, Leaf) and any(value < 0 for value in part.multipliers.values()):
        raise Unproved(f"{where} has a multiplier below 0")
