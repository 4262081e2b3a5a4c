"""Makes proofs that need no solver to check: cuts and a tree of branches over LPs, all in integers in the end.

HiGHS' numbers only propose: multipliers are rounded to integers, and kept where exact arithmetic says that they prove
what is needed. What is not closed within the work given stays without a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, gcd, inf

from dovetail.engine.proving.relaxed_lp import Outcome, Point, RelaxedLp, is_fraction
from dovetail.engine.proving.separate import broken_cuts
from dovetail.proof.certificate import Branch, Cut, Leaf, Multipliers, Tree
from dovetail.proof.lagrangian import PlainRow, leaf_total
from dovetail.proof.tree import Question

_DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 12, 24, 60, 120, 840, 5040, 10**5, 10**7, 10**9)
_ROUNDS = 12
_CUTS_PER_ROUND = 24
_MOST_CUTS = 120
_ENOUGH_TRIED = 8  # candidates for a branch, where one of them is good for anything
_MOST_TRIED = 40
_LOOK = 150  # iterations per half of a candidate
_CLOSED = 1e4  # what closing a half counts as a fall of the bound
_LITTLE = 1e-4


@dataclass(slots=True)
class Work:
    """Work left for proofs: simplex iterations times the size of their LP, so that it is reproducible."""

    left: int


class _Spent(Exception):
    """The work given is used up, or the LP gives no more help."""


def prove(question: Question, work: Work, over: Callable[[], bool]) -> tuple[Tree, tuple[Cut, ...]] | None:
    """Return a tree, with cuts, that answers a question with no; None where none was found.

    Parameters
    ----------
    work : is used up.
    over : tells whether to stop before that.
    """
    search = _Search(question, work, over)
    try:
        tree = search.run()
    except _Spent:
        return None
    return without_idle_cuts(tree, search.cuts, len(question.rows) + 1)


@dataclass(slots=True)
class _Search:
    """One search for a tree.

    Parameters
    ----------
    rows : all rows by number: those of the model, that of the target, the cuts.
    numbers : the number of each row of the LP, which has no row of the target: its objective needs none.
    history : per variable and half, how much the bound has fallen per unit in all, and how often that was seen.
    """

    question: Question
    work: Work
    over: Callable[[], bool]
    scale: int = field(init=False)
    lp: RelaxedLp = field(init=False)
    rows: list[PlainRow] = field(init=False)
    numbers: list[int] = field(init=False)
    cuts: list[Cut] = field(default_factory=list)
    history: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        question = self.question
        self.scale = gcd(*question.objective.terms.values()) or 1
        self.rows = [*question.rows, question.target_row()]
        self.numbers = list(range(len(question.rows)))
        self.lp = RelaxedLp(question.objective, self.scale, question.rows, question.lower, question.upper)

    def run(self) -> list[Branch | Leaf]:
        """Return the tree."""
        leaf = self.obvious()
        if leaf is not None:
            return [leaf]
        point = self.solve()
        leaf = self.leaf(point, self.question.lower, self.question.upper)
        if leaf is not None:
            return [leaf]
        self.strengthen(point)
        return self.tree()

    def obvious(self) -> Leaf | None:
        """Return a leaf without an LP, where the box alone says it, or a row that no point of the box keeps."""
        question = self.question
        most = leaf_total(question.objective, (), {}, 1, question.lower, question.upper)
        if most < question.target:
            return Leaf({})
        for number, row in enumerate(question.rows):
            pairs = zip(row.variables, row.coefficients, strict=True)
            short = sum(c * (question.lower[v] if c > 0 else question.upper[v]) for v, c in pairs) - row.upper
            if short > 0:
                return Leaf({number: (most - question.target) // short + 1})
        return None

    def solve(self, iterations: int = 100_000) -> Point:
        """Solve the LP, within the work given."""
        if self.work.left <= 0 or self.over():
            raise _Spent
        before = self.lp.work
        point = self.lp.solve(iterations)
        self.work.left -= self.lp.work - before
        return point

    def leaf(self, point: Point, lower: Sequence[int], upper: Sequence[int]) -> Leaf | None:
        """Return multipliers that close a box, the smallest that do; None where the LP's do not."""
        question = self.question
        if point.outcome is Outcome.INFEASIBLE:
            options = _along(point.duals, self.scale)
        elif self.scale * point.value + question.objective.constant < question.target + 1e-7 * abs(question.target):
            options = _rounded(point.duals, self.scale)
        else:
            return None
        for denominator, found in options:
            multipliers = {self.numbers[place]: y for place, y in found.items() if y > 0}
            total = leaf_total(question.objective, self.rows, multipliers, denominator, lower, upper)
            if total // denominator < question.target:
                return Leaf(multipliers, denominator)
        return None

    def strengthen(self, point: Point) -> None:
        """Add cuts for a few rounds, as long as they move the LP."""
        for _ in range(_ROUNDS):
            if point.outcome is not Outcome.SOLVED or len(self.cuts) >= _MOST_CUTS:
                return
            found, work = broken_cuts(self.question, self.rows, self.numbers, self.lp, point)
            self.work.left -= work
            if not found:
                return
            for _, cut, row in found[:_CUTS_PER_ROUND]:
                self.cuts.append(cut)
                self.numbers.append(len(self.rows))
                self.rows.append(row)
                self.lp.add_row(row)
            before, point = point.value, self.solve()
            if before - point.value < 1e-6 * max(1.0, abs(before)):
                return

    def tree(self) -> list[Branch | Leaf]:
        """Return a tree over the LP with its cuts, nodes in preorder."""
        lower, upper = list(self.question.lower), list(self.question.upper)
        found: list[Branch | Leaf] = []
        due: list[tuple[int, int, int] | None] = [None]  # None: a node of the tree; else a variable's new box
        while due:
            step = due.pop()
            if step is not None:
                variable, lower[variable], upper[variable] = step
                self.lp.set_box(*step)
                continue
            point = self.solve()
            node = self.leaf(point, lower, upper) or self.branch(point, lower, upper)
            found.append(node)
            if isinstance(node, Branch):
                v, low, high = node.variable, lower[node.variable], upper[node.variable]
                due += [(v, low, high), None, (v, node.most + 1, high), None, (v, low, node.most)]
        return found

    def branch(self, point: Point, lower: Sequence[int], upper: Sequence[int]) -> Branch:
        """Return the branch, of those tried, whose halves the LP bounds best."""
        best, chosen = 0.0, None
        candidates = self.promising(point) if point.outcome is Outcome.SOLVED else []
        for tried, variable in enumerate(candidates[:_MOST_TRIED]):
            if tried >= _ENOUGH_TRIED and best > 2 * _LITTLE**2:
                break
            falls = self.falls(variable, point, lower[variable], upper[variable])
            score = _score(*falls)
            if score > best:
                best, chosen = score, variable
            if min(falls) >= _CLOSED:
                break
        if chosen is None:
            raise _Spent
        return Branch(chosen, floor(point.values[chosen]))

    def falls(self, variable: int, point: Point, low: int, high: int) -> tuple[float, float]:
        """Return how far the bound falls in each half of a branch, as far as a few iterations tell; remember it."""
        value = point.values[variable]
        most = floor(value)
        found = []
        for half, (box, way) in enumerate((((low, most), value - most), ((most + 1, high), most + 1 - value))):
            self.lp.set_box(variable, *box)
            then = self.solve(_LOOK)
            found.append(_CLOSED if then.outcome is Outcome.INFEASIBLE else max(0.0, point.value - then.value))
            total, seen = self.history.get((variable, half), (0.0, 0))
            self.history[variable, half] = total + found[-1] / way, seen + 1
        self.lp.set_box(variable, low, high)
        return found[0], found[1]

    def promising(self, point: Point) -> list[int]:
        """Return the fractional variables: those without history first, then by it; sums before single ones."""
        fractions = [(v, x) for v, x in enumerate(point.values) if is_fraction(x)]
        own = self.question.variables
        order = sorted((-self.expected(v, x), v < own, abs(x - floor(x) - 0.5), v) for v, x in fractions)
        return [each[-1] for each in order]

    def expected(self, variable: int, value: float) -> float:
        """Return the score that branches on a variable have had so far; infinite where there were none."""
        if (variable, 0) not in self.history:
            return inf
        down, up = (total / seen for total, seen in (self.history[variable, half] for half in (0, 1)))
        return _score(down * (value - floor(value)), up * (floor(value) + 1 - value))


def _score(down: float, up: float) -> float:
    return (down + _LITTLE) * (up + _LITTLE)


def _rounded(duals: Sequence[float], scale: int) -> Iterator[tuple[int, Multipliers]]:
    """Yield duals over ever larger denominators."""
    found = [(place, scale * y) for place, y in enumerate(duals) if y > 1e-9]
    for denominator in _DENOMINATORS:
        yield denominator, {place: round(denominator * y) for place, y in found}


def _along(ray: Sequence[float], scale: int) -> Iterator[tuple[int, Multipliers]]:
    """Yield multipliers along a ray, ever longer; HiGHS' rays are below 0 at rows with an upper side."""
    found = [(place, -y) for place, y in enumerate(ray) if y < -1e-12]
    largest = max((y for _, y in found), default=1.0)
    for length in (*(scale * d for d in _DENOMINATORS[:12]), *(scale * 10.0**e / largest for e in range(3, 16, 3))):
        yield 1, {place: round(length * y) for place, y in found}


def without_idle_cuts(tree: Sequence[Branch | Leaf], cuts: Sequence[Cut], first: int) -> tuple[Tree, tuple[Cut, ...]]:
    """Return a tree and those cuts that it, or another cut that it needs, uses.

    Parameters
    ----------
    first : the number of the first cut's row.
    """
    used = {row for node in tree if isinstance(node, Leaf) for row in node.multipliers}
    for number in range(len(cuts) - 1, -1, -1):
        if first + number in used:
            used |= cuts[number].multipliers.keys()
    kept = [number for number in range(len(cuts)) if first + number in used]
    name = {first + number: first + place for place, number in enumerate(kept)}

    def renamed(multipliers: Multipliers) -> Mapping[int, int]:
        return {name.get(row, row): y for row, y in multipliers.items()}

    nodes = (node if isinstance(node, Branch) else Leaf(renamed(node.multipliers), node.denominator) for node in tree)
    return tuple(nodes), tuple(Cut(renamed(cuts[n].multipliers), cuts[n].denominator, cuts[n].flipped) for n in kept)
