"""A written model as text: MPS, and LP as CPLEX has it. Exact: all numbers are integers, written in full.

Rows under a literal are written with the smallest multiplier that variable bounds prove enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dovetail.linear import unconditional
from dovetail.model.written import WrittenModel

_WIDTH = 250  # readers may refuse lines of more than 560 characters, and names have up to 200
_OBJECTIVE = "objective"


class _Plain(NamedTuple):
    """A row without condition."""

    name: str
    terms: tuple[tuple[int, int], ...]
    lower: int | None
    upper: int | None


def _plain_rows(written: WrittenModel) -> Iterator[_Plain]:
    model = written.model
    for row, name in zip(model.rows, written.row_names, strict=True):
        parts = list(unconditional(model, row))
        for position, (expression, lower, upper) in enumerate(parts):
            terms = tuple((variable, c) for variable, c in expression.terms.items() if c)
            yield _Plain(name if len(parts) == 1 else f"{name}.{'ab'[position]}", terms, lower, upper)


def lp_text(written: WrittenModel) -> str:
    """Return a model as an LP file."""
    lines = [f"\\ {line}" for line in written.comments()]
    sense = "Minimize" if written.objective and written.objective.sense == "min" else "Maximize"
    lines += [sense, *_lp_row(written, _OBJECTIVE, _objective(written), "")]
    lines.append("Subject To")
    for row in _plain_rows(written):
        lines += _lp_sides(written, row)
    model = written.model
    lines.append("Bounds")
    for name, low, high in zip(written.names, model.lower, model.upper, strict=True):
        lines.append(f" {name} = {low}" if low == high else f" {low} <= {name} <= {high}")
    lines += ["General", *(f" {name}" for name in written.names), "End", ""]
    return "\n".join(lines)


def _objective(written: WrittenModel) -> tuple[tuple[int, int], ...]:
    return ((written.objective.variable, 1),) if written.objective else ()


def _lp_sides(written: WrittenModel, row: _Plain) -> Iterator[str]:
    """Yield a row, twice where both of its sides bind."""
    if row.lower is not None and row.lower == row.upper:
        yield from _lp_row(written, row.name, row.terms, f"= {row.lower}")
        return
    both = row.lower is not None and row.upper is not None
    if row.upper is not None:
        yield from _lp_row(written, row.name + (".up" if both else ""), row.terms, f"<= {row.upper}")
    if row.lower is not None:
        yield from _lp_row(written, row.name + (".lo" if both else ""), row.terms, f">= {row.lower}")


def _lp_row(written: WrittenModel, name: str, terms: Iterable[tuple[int, int]], side: str) -> Iterator[str]:
    words = [f"{'+' if c > 0 else '-'} {abs(c)} {written.names[v]}" for v, c in terms]
    if not words and written.names:
        words = [f"0 {written.names[0]}"]  # a row without terms is none
    line = f" {name}:"
    for word in [*words, side] if side else words:
        if len(line) + len(word) > _WIDTH:
            yield line
            line = " "
        line += f" {word}"
    yield line


def mps_text(written: WrittenModel) -> str:
    """Return a model as a free MPS file."""
    rows = [row for row in _plain_rows(written) if row.lower is not None or row.upper is not None]
    lines = [f"* {line}" for line in written.comments()]
    lines += ["NAME dovetail", "OBJSENSE"]
    lines += ["    MIN" if written.objective and written.objective.sense == "min" else "    MAX", "ROWS"]
    lines += [f" N {_OBJECTIVE}", *(f" {_mps_type(row)} {row.name}" for row in rows)]
    lines += ["COLUMNS", " MARKER 'MARKER' 'INTORG'", *_mps_columns(written, rows)]
    lines += [" MARKER 'MARKER' 'INTEND'", "RHS"]
    lines += [f" RHS {row.name} {row.upper if row.upper is not None else row.lower}" for row in rows]
    ranges = [row for row in rows if row.lower is not None and row.upper is not None and row.lower < row.upper]
    lines += ["RANGES"] if ranges else []
    lines += [f" RANGE {row.name} {(row.upper or 0) - (row.lower or 0)}" for row in ranges]
    lines += ["BOUNDS", *_mps_bounds(written), "ENDATA", ""]
    return "\n".join(lines)


def _mps_type(row: _Plain) -> str:
    if row.lower is not None and row.lower == row.upper:
        return "E"
    return "G" if row.upper is None else "L"


def _mps_columns(written: WrittenModel, rows: Iterable[_Plain]) -> Iterator[str]:
    """Yield the coefficients, variable by variable; every variable at least once."""
    entries: list[list[str]] = [[] for _ in written.names]
    for variable, coefficient in _objective(written):
        entries[variable].append(f"{_OBJECTIVE} {coefficient}")
    for row in rows:
        for variable, coefficient in row.terms:
            entries[variable].append(f"{row.name} {coefficient}")
    for name, found in zip(written.names, entries, strict=True):
        for entry in found or [f"{_OBJECTIVE} 0"]:
            yield f" {name} {entry}"


def _mps_bounds(written: WrittenModel) -> Iterator[str]:
    model = written.model
    for name, low, high in zip(written.names, model.lower, model.upper, strict=True):
        if low == high:
            yield f" FX BOUND {name} {low}"
        else:
            yield f" LO BOUND {name} {low}"
            yield f" UP BOUND {name} {high}"
