"""Makes proofs that need no solver to check: cuts and a tree of branches over LPs, all in integers in the end (E4).

HiGHS' numbers only propose: multipliers are rounded to integers and kept where exact arithmetic says that they prove
what is needed. What cannot be closed within the work given stays without a certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from dovetail.engine.relaxed_lp import Outcome, Point, RelaxedLp
from dovetail.proof.certificate import Branch, Cut, Leaf, Tree
from dovetail.proof.cuts import rounded
from dovetail.proof.lagrangian import PlainRow, leaf_bound
from dovetail.proof.tree import Question

_FRACTION = 1e-6
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 12, 24, 60, 120, 840, 5040, 10**5, 10**7, 10**9)
_CUT_DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 24, 30, 32, 40, 48, 60, 120, 240)
_ROUNDS = 12
_CUTS_PER_ROUND = 24
_MOST_CUTS = 120
_TRIED = 6
_WIDEST = 400


@dataclass(slots=True)
class Work:
    """Work left for proofs: simplex iterations times the size of their LP, so that it is reproducible."""

    left: int


class _Spent(Exception):
    """The work given is used up, or the LP gives no more help."""


def prove(question: Question, work: Work, stop: Callable[[], bool]) -> tuple[Tree, tuple[Cut, ...]] | None:
    """Return a tree, with cuts, that answers a question with no; None where none was found within the work."""
    search = _Search(question, work, stop)
    try:
        return search.run()
    except _Spent:
        return None


@dataclass(slots=True)
class _Search:
    """One search for a tree."""

    question: Question
    work: Work
    stop: Callable[[], bool]
    scale: int = field(init=False)
    lp: RelaxedLp = field(init=False)
    cuts: list[Cut] = field(default_factory=list)
    numbers: list[int] = field(init=False)
    rows: list[PlainRow] = field(init=False)

    def __post_init__(self) -> None:
        question = self.question
        self.scale = gcd(*question.objective.terms.values()) or 1
        self.rows = [*question.rows, question.target_row()]
        # The LP has no row of the target: what its objective bounds needs none. Cuts may use that row.
        self.lp = RelaxedLp(question.objective, self.scale, question.rows, question.lower, question.upper)
        self.numbers = list(range(len(question.rows)))

    def run(self) -> tuple[Tree, tuple[Cut, ...]]:
        """Return the tree and the cuts that it uses."""
        point = self.solve()
        leaf = self.leaf(point, self.question.lower, self.question.upper)
        if leaf is not None:
            return self.finished([leaf])
        point = self.strengthen(point)
        return self.finished(self.tree(point))

    def solve(self) -> Point:
        """Solve the LP, within the work given."""
        if self.stop() or self.work.left <= 0:
            raise _Spent
        before = self.lp.work
        point = self.lp.solve()
        self.work.left -= self.lp.work - before
        return point

    def leaf(self, point: Point, lower: Sequence[int], upper: Sequence[int]) -> Leaf | None:
        """Return multipliers that close a box, None where the LP's do not."""
        known = self.question.objective.constant
        if point.outcome is Outcome.SOLVED:
            if self.scale * point.value + known > self.question.target - 1e-6 * abs(self.question.target) - 1e-3:
                pass
            options = (
                (d, {self.numbers[i]: round(d * self.scale * y) for i, y in enumerate(point.duals) if y > 1e-9})
                for d in _DENOMINATORS
            )
        else:
            options = _rays(self.numbers, point.duals, self.scale)
        for denominator, multipliers in options:
            found = {row: y for row, y in multipliers.items() if y > 0}
            value = leaf_bound(self.question.objective, self.rows, found, denominator, lower, upper)
            if value < self.question.target:
                return Leaf(found, denominator)
        return None

    def finished(self, tree: Sequence[Branch | Leaf]) -> tuple[Tree, tuple[Cut, ...]]:
        return tuple(tree), tuple(self.cuts)

    # Cuts.

    def strengthen(self, point: Point) -> Point:
        """Add cuts for a few rounds, as long as they move the LP."""
        for _ in range(_ROUNDS):
            if point.outcome is not Outcome.SOLVED or len(self.cuts) >= _MOST_CUTS:
                break
            found = sorted(self.separated(point), key=lambda each: (-each[0], len(each[2].variables)))
            if not found:
                break
            for _, cut, row in found[:_CUTS_PER_ROUND]:
                self.cuts.append(cut)
                self.numbers.append(len(self.rows))
                self.rows.append(row)
                self.lp.add_row(row)
            before = point.value
            point = self.solve()
            if self.leaf(point, self.question.lower, self.question.upper) is not None:
                break
            if point.outcome is Outcome.SOLVED and before - point.value < 1e-6 * max(1.0, abs(before)):
                break
        return point

    def separated(self, point: Point) -> Iterator[tuple[float, Cut, PlainRow]]:
        """Yield cuts that an LP's solution breaks, each with by how much."""
        lower, upper = self.question.lower, self.question.upper
        seen = set()
        for _, _, inverse in self.lp.tableau(point.values):
            for denominator in _CUT_DENOMINATORS:
                scaled = [denominator * y for y in inverse]
                if all(abs(y - round(y)) < 1e-6 for y in scaled):
                    break
            else:
                continue
            multipliers = {self.numbers[i]: round(y) for i, y in enumerate(scaled) if round(y)}
            flipped = tuple(
                v for v, x in enumerate(point.values) if upper[v] - x < x - lower[v] and upper[v] - x < _FRACTION
            )
            for sign in (1, -1):
                cut = Cut({r: sign * y for r, y in multipliers.items()}, denominator, flipped)
                row = rounded(self.rows, cut, lower, upper)
                if not row.variables or len(row.variables) > _WIDEST:
                    continue
                norm = sum(c * c for c in row.coefficients) ** 0.5
                over = (
                    sum(c * point.values[v] for v, c in zip(row.variables, row.coefficients, strict=True)) - row.upper
                )
                key = (row.variables, row.coefficients, row.upper)
                if over / norm > 1e-3 and key not in seen and max(map(abs, row.coefficients)) < 10**6:
                    seen.add(key)
                    yield over / norm, cut, row

    # The tree.

    def tree(self, root: Point) -> list[Branch | Leaf]:
        """Return a tree over the LP with its cuts, nodes in preorder."""
        lower, upper = list(self.question.lower), list(self.question.upper)
        found: list[Branch | Leaf] = []
        due: list[tuple[int, int, int] | None] = [None]
        while due:
            step = due.pop()
            if step is not None:
                variable, lower[variable], upper[variable] = step
                self.lp.set_box(*step)
                continue
            point = self.solve()
            leaf = self.leaf(point, lower, upper)
            if leaf is not None:
                found.append(leaf)
                continue
            if point.outcome is not Outcome.SOLVED:
                raise _Spent
            branch = self.branch(point, lower, upper)
            if branch is None:
                raise _Spent
            found.append(branch)
            v, low, high = branch.variable, lower[branch.variable], upper[branch.variable]
            due += [(v, low, high), None, (v, branch.most + 1, high), None, (v, low, branch.most)]
        return found

    def branch(self, point: Point, lower: list[int], upper: list[int]) -> Branch | None:
        """Return the branch, of a few most promising ones, whose halves the LP bounds best."""
        fractions = [
            (abs(x - int(x) - 0.5), v) for v, x in enumerate(point.values) if _FRACTION < x - int(x) < 1 - _FRACTION
        ]
        if not fractions:
            return None
        best: tuple[float, float, int] | None = None
        for _, v in sorted(fractions)[:_TRIED]:
            most = int(point.values[v])
            falls = []
            for box in ((lower[v], most), (most + 1, upper[v])):
                self.lp.set_box(v, *box)
                half = self.solve()
                falls.append(point.value - half.value if half.outcome is Outcome.SOLVED else 1e9)
            self.lp.set_box(v, lower[v], upper[v])
            score = (min(falls) + 1e-6) * (max(falls) + 1e-6)
            if best is None or score > best[0]:
                best = score, 0.0, v
        v = best[2]
        return Branch(v, int(point.values[v]))


def _rays(numbers: Sequence[int], ray: Sequence[float], scale: int) -> Iterator[tuple[int, Mapping[int, int]]]:
    """Yield multipliers along a ray, ever longer."""
    size = max(map(abs, ray), default=0.0)
    if size:
        for length in (1, 2, 6, 12, 60, 840, 10**4, 10**6, 10**9):
            for sign in (-1, 1):
                yield 1, {numbers[i]: round(sign * y / size * length * scale) for i, y in enumerate(ray) if y}
