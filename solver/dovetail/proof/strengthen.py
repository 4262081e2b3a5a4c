"""Variables and rows that follow from a model's own and make its LP say more.

All of it follows by arithmetic from rows and boxes, and is made anew by whoever checks a proof:

- *sums* of variables that the model does not tell apart, as variables of their own: one branch on how many replicas
  of a shape a class of nodes holds says what many branches on single nodes would;
- rows on what depends on a flag, *lifted* onto it: where a row forces x to 0 without the flag, a capacity b of x is
  b times the flag;
- rows on flags, *replaced* by what the flags stand for, so that they can be lifted in turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from dovetail.proof.lagrangian import PlainRow


@dataclass(frozen=True, slots=True)
class Strong:
    """Boxes and rows, those of the model first."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    rows: tuple[PlainRow, ...]


class Flag(NamedTuple):
    """A row by which a 0/1 variable of 0 forces others to 0: `sum(coefficients * variables) <= size * flag`."""

    flag: int
    size: int
    terms: Mapping[int, int]


def strengthened(
    lower: Sequence[int], upper: Sequence[int], rows: Sequence[PlainRow], groups: Mapping[int, Sequence[Hashable]]
) -> Strong:
    """Return a model with what follows from it.

    Parameters
    ----------
    groups : per variable the groups that it belongs to; sums are made of groups of two or more. Variables without any
        are grouped by the rows that they are in.
    """
    low, high = list(lower), list(upper)
    found = list(rows)
    for members in _groups(len(lower), rows, groups):
        total = len(low)
        low.append(sum(lower[v] for v in members))
        high.append(sum(upper[v] for v in members))
        for sign in (1, -1):
            found.append(PlainRow((*members, total), (*(sign,) * len(members), -sign), 0))
    flags = {flag.flag: flag for flag in _flags(lower, upper, rows)}
    base = [row for row in rows if row.upper > 0 and row.variables]
    replaced = [new for row in base if (new := _replaced(row, flags)) is not None]
    found += replaced
    found += _lifted(chain(base, replaced), flags, lower, upper)
    return Strong(tuple(low), tuple(high), tuple(found))


def _groups(
    variables: int, rows: Sequence[PlainRow], groups: Mapping[int, Sequence[Hashable]]
) -> Iterator[tuple[int, ...]]:
    """Yield the members of every group of two or more, each set of members once."""
    found: dict[Hashable, list[int]] = {}
    for variable, names in sorted(groups.items()):
        for name in names:
            found.setdefault((0, name), []).append(variable)
    around: dict[int, list[Hashable]] = {v: [] for v in range(variables) if v not in groups}
    for row in rows:
        strangers = [v for v in row.variables if v in around]
        if strangers:
            pairs = list(zip(row.variables, row.coefficients, strict=True))
            told = tuple(sorted((str(groups[v][0]), c) for v, c in pairs if v in groups))
            for v, c in pairs:
                if v in around:
                    around[v].append((c, row.upper, len(strangers), told))
    for variable, names in around.items():
        found.setdefault((1, tuple(sorted(map(str, names)))), []).append(variable)
    yield from dict.fromkeys(tuple(members) for members in found.values() if len(members) > 1)


def _flags(lower: Sequence[int], upper: Sequence[int], rows: Iterable[PlainRow]) -> Iterator[Flag]:
    """Yield what 0/1 variables force to 0, the widest row of each last."""
    found = []
    for row in rows:
        below = [v for v, c in zip(row.variables, row.coefficients, strict=True) if c < 0]
        if row.upper == 0 and len(below) == 1 and (lower[below[0]], upper[below[0]]) == (0, 1):
            terms = {v: c for v, c in zip(row.variables, row.coefficients, strict=True) if c > 0}
            size = -row.coefficients[row.variables.index(below[0])]
            if terms and not any(lower[v] for v in terms):
                found.append(Flag(below[0], size, terms))
    yield from sorted(found, key=lambda flag: len(flag.terms))


def _replaced(row: PlainRow, flags: Mapping[int, Flag]) -> PlainRow | None:
    """Return a row with every flag that it counts replaced by the least it can be; None where it counts none."""
    pairs = list(zip(row.variables, row.coefficients, strict=True))
    if not any(c > 0 and v in flags for v, c in pairs):
        return None
    scale = 1
    for v, c in pairs:
        if c > 0 and v in flags:
            scale = max(scale, flags[v].size)
    terms: dict[int, int] = {}
    for v, c in pairs:
        if c > 0 and v in flags:
            if scale % flags[v].size:
                return None
            for inner, amount in flags[v].terms.items():
                terms[inner] = terms.get(inner, 0) + c * (scale // flags[v].size) * amount
        else:
            terms[v] = terms.get(v, 0) + scale * c
    return PlainRow(tuple(terms), tuple(terms.values()), scale * row.upper)


def _lifted(
    rows: Iterable[PlainRow], flags: Mapping[int, Flag], lower: Sequence[int], upper: Sequence[int]
) -> Iterator[PlainRow]:
    """Yield rows with their right side tied to flags, where that says more than the row alone."""
    forcing: dict[int, list[int]] = {}
    for flag in flags.values():
        for v in flag.terms:
            forcing.setdefault(v, []).append(flag.flag)
    for row in rows:
        pairs = list(zip(row.variables, row.coefficients, strict=True))
        most = {v: c * (upper[v] if c > 0 else lower[v]) for v, c in pairs}
        total = sum(most.values())
        for name in sorted({f for v in row.variables for f in forcing.get(v, ())} - set(row.variables)):
            without = total - sum(most[v] for v in flags[name].terms if v in most)
            if without < row.upper:
                yield PlainRow((*row.variables, name), (*row.coefficients, without - row.upper), without)
