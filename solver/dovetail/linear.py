"""A solver-neutral integer linear model: variables with bounds, rows, and rows that hold under a literal.

Rules and tiers are written against this model, so that CP-SAT, HiGHS through Pyomo and any later engine solve
the same rows, and a row can be rebuilt without a solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple


class Literal(NamedTuple):
    """A 0/1 variable or its negation."""

    variable: int
    positive: bool = True

    def __invert__(self) -> Literal:
        """Return the opposite literal."""
        return Literal(self.variable, not self.positive)


class Linear:
    """An integer linear expression: `terms` maps variable index to coefficient, plus `constant`."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[int, int] | None = None, constant: int = 0) -> None:
        self.terms: dict[int, int] = dict(terms) if terms else {}
        self.constant = constant

    @classmethod
    def of(cls, variable: int, coefficient: int = 1) -> Linear:
        """Return `coefficient * variable`."""
        return cls({variable: coefficient})

    @classmethod
    def total(cls, parts: Iterable[Linear]) -> Linear:
        """Return the sum of expressions."""
        result = cls()
        for part in parts:
            result.add(part)
        return result

    def add(self, other: Linear, factor: int = 1) -> Linear:
        """Add `factor * other` in place and return self."""
        terms = self.terms
        for variable, coefficient in other.terms.items():
            terms[variable] = terms.get(variable, 0) + factor * coefficient
        self.constant += factor * other.constant
        return self

    def add_term(self, variable: int, coefficient: int = 1) -> Linear:
        """Add `coefficient * variable` in place and return self."""
        self.terms[variable] = self.terms.get(variable, 0) + coefficient
        return self

    def plus(self, constant: int) -> Linear:
        """Return a copy with a constant added."""
        return Linear(self.terms, self.constant + constant)

    def minus(self, other: Linear) -> Linear:
        """Return a new expression `self - other`."""
        return Linear(self.terms, self.constant).add(other, -1)

    def scaled(self, factor: int) -> Linear:
        """Return a new expression `factor * self`."""
        return Linear({v: factor * c for v, c in self.terms.items()}, factor * self.constant)

    def reduced(self) -> Linear:
        """Return the expression over the greatest integer that divides all of it, of the same sign everywhere."""
        common = gcd(self.constant, *self.terms.values()) or 1
        return Linear({v: c // common for v, c in self.terms.items()}, self.constant // common)

    @property
    def is_constant(self) -> bool:
        """Tell whether no variable has a coefficient other than 0."""
        return not any(self.terms.values())

    def value(self, values: Mapping[int, int] | list[int]) -> int:
        """Evaluate at integer variable values."""
        return self.constant + sum(c * values[v] for v, c in self.terms.items())


@dataclass(frozen=True, slots=True)
class Row:
    """`lower <= sum(coefficients * variables) <= upper`, wanted only where `when` holds; None is no bound."""

    variables: tuple[int, ...]
    coefficients: tuple[int, ...]
    lower: int | None
    upper: int | None
    when: Literal | None = None


class Section(NamedTuple):
    """What variables and rows are for, from a position in both lists on."""

    name: str
    first_variable: int
    first_row: int


@dataclass(slots=True)
class Model:
    """Variables and rows, in the order they were made (the order is part of reproducibility).

    `sections` tell people what they are for; nothing else reads them.
    """

    lower: list[int] = field(default_factory=list)
    upper: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    infeasible: str | None = None
    sections: list[Section] = field(default_factory=list)

    def section(self, name: str) -> None:
        """Begin a section: what is made from here on is for what `name` says."""
        self.sections.append(Section(name, len(self.lower), len(self.rows)))

    def integer(self, lower: int, upper: int, name: str = "") -> int:
        """Add an integer variable and return its index."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.names.append(name)
        return len(self.lower) - 1

    def boolean(self, name: str = "") -> int:
        """Add a 0/1 variable and return its index."""
        return self.integer(0, 1, name)

    def require(
        self,
        expression: Linear,
        lower: int | None = None,
        upper: int | None = None,
        when: Literal | None = None,
    ) -> None:
        """Add a row on an expression; its constant moves to the sides. A row of constants is judged at once."""
        terms = [(v, c) for v, c in expression.terms.items() if c]
        low = None if lower is None else lower - expression.constant
        high = None if upper is None else upper - expression.constant
        if not terms and when is None:
            if (low is not None and low > 0) or (high is not None and high < 0):
                self.infeasible = self.infeasible or f"constant row outside [{lower}, {upper}]"
            return
        self.rows.append(Row(tuple(v for v, _ in terms), tuple(c for _, c in terms), low, high, when))

    def exclude(self, values: Mapping[int, int]) -> None:
        """Leave out the solutions in which all of some variables have given values."""
        other = Linear()
        for variable, value in values.items():
            for lower, upper in ((None, value - 1), (value + 1, None)):
                if self.lower[variable] < value if lower is None else self.upper[variable] > value:
                    flag = self.boolean()
                    self.require(Linear.of(variable), lower, upper, when=Literal(flag))
                    other.add_term(flag)
        self.require(other, lower=1)

    def range_of(self, expression: Linear) -> tuple[int, int]:
        """Return the least and greatest value an expression can take by variable bounds alone."""
        low = high = expression.constant
        for variable, coefficient in expression.terms.items():
            ends = (coefficient * self.lower[variable], coefficient * self.upper[variable])
            low += min(ends)
            high += max(ends)
        return low, high

    def at_least_one(self, expression: Linear, name: str = "") -> Literal:
        """Return a literal that must be true where a non-negative expression is 1 or more."""
        flag = self.boolean(name)
        _, high = self.range_of(expression)
        if high > 0:
            self.require(expression.minus(Linear.of(flag, high)), upper=0)
        return Literal(flag)

    def positive_part(self, expression: Linear, name: str = "") -> Linear:
        """Return an expression that is at least max(0, expression), and can equal it."""
        low, high = self.range_of(expression)
        if high <= 0:
            return Linear()
        if low >= 0:
            return expression
        variable = self.integer(0, high, name)
        self.require(expression.minus(Linear.of(variable)), upper=0)
        return Linear.of(variable)

    def positive_part_if(self, expression: Linear, trigger: Linear) -> Linear:
        """Return a variable that is at least an expression where a non-negative `trigger` is 1 or more, else free."""
        variable = self.integer(0, max(0, self.range_of(expression)[1]))
        self.require(expression.minus(Linear.of(variable)), upper=0, when=self.at_least_one(trigger))
        return Linear.of(variable)


def unconditional(model: Model, row: Row) -> Iterator[tuple[Linear, int | None, int | None]]:
    """Yield rows without `when` that say the same as a row, each an expression between two sides.

    A row that holds only under a literal is written with the smallest multiplier that variable bounds prove enough.
    """
    expression = Linear()
    for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
        expression.add_term(variable, coefficient)
    if row.when is None:
        yield expression, row.lower, row.upper
        return
    low, high = model.range_of(expression)
    absent = _absent(row.when)
    if row.lower is not None and row.lower > low:
        relaxed = Linear(expression.terms).add(absent, row.lower - low)
        yield Linear(relaxed.terms), row.lower - relaxed.constant, None
    if row.upper is not None and row.upper < high:
        relaxed = Linear(expression.terms).add(absent, row.upper - high)
        yield Linear(relaxed.terms), None, row.upper - relaxed.constant


def _absent(literal: Literal) -> Linear:
    """Return an expression that is 1 where a literal does not hold, else 0."""
    if literal.positive:
        return Linear({literal.variable: -1}, 1)
    return Linear.of(literal.variable)


def rounded(expression: Linear, upper: int, step: int) -> tuple[Linear, int]:
    """Return what follows from `expression <= upper` for whole numbers from 0 on, counted in steps.

    Multiples of the step take as many; what is less than one takes a part as far as it is more than the rest of
    `upper` (mixed-integer rounding; Nemhauser and Wolsey 1990).
    """
    whole, rest = divmod(upper - expression.constant, step)
    terms = {v: stepped(c, step, rest) for v, c in expression.terms.items()}
    return Linear({v: c for v, c in terms.items() if c}), (step - rest) * whole


def stepped(coefficient: int, step: int, rest: int) -> int:
    """Return what a coefficient becomes by rounding, times `step - rest`."""
    whole, part = divmod(coefficient, step)
    return (step - rest) * whole + max(0, part - rest)
