"""The exact model of the whole as people and other solvers read it: every variable and row has a name, tiers too.

A file has one objective, a plan has tiers in order. So every tier is a variable of its own, equal to the tier's
expression: whoever reads the model optimises one after the other, each held where it came out, as the engine does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dovetail.linear import Linear, Model, Section
from dovetail.model.part import PartModel
from dovetail.model.state import NO_GPU, State
from dovetail.objectives import Sense, Tier
from dovetail.problem import NO_GROUP, Problem, Shape
from dovetail.spec import ReplicaId

LARGEST = 250_000
"""The most counts of a model that is written: about 1 GiB while it is made, and 150 MB of text."""

_LONGEST = 200  # formats allow 255
_ODD = re.compile(r"[^A-Za-z0-9_.]+")


class TooLargeToWrite(Exception):
    """A model has more counts than are written."""

    def __init__(self, counts: int) -> None:
        super().__init__(
            f"the exact model has at least {counts:,} variables, a count per node and shape; "
            f"up to {LARGEST:,} are written"
        )
        self.counts = counts


@dataclass(frozen=True, slots=True)
class WrittenTier:
    """A tier: its name in the plan, its sense and unit, and the variable that is equal to it."""

    name: str
    sense: Sense
    unit: str
    variable: int


@dataclass(frozen=True, slots=True)
class WrittenModel:
    """A model with names: `names` of variables, `row_names` of rows, `objective` what is optimised in the file.

    The objective is the first tier that anything can change, None where there is none.
    """

    title: str
    model: Model
    names: tuple[str, ...]
    row_names: tuple[str, ...]
    tiers: tuple[WrittenTier, ...]
    objective: WrittenTier | None

    def comments(self) -> Iterator[str]:
        """Yield what a reader must know, in lines of ASCII."""
        yield f"exact model of {_ascii(self.title)}, by dovetail"
        yield "x: replicas of a shape on a node (.gN: on its GPU N); keep: those that stay where they run;"
        yield "shared: whether a GPU is shared; tiers are variables of their own, optimised in this order,"
        yield "each held where it came out, by its bounds:"
        for tier in self.tiers:
            said = " (the objective of this file)" if tier is self.objective else ""
            yield f"  {tier.sense} {self.names[tier.variable]}: {_ascii(tier.name)} in {_ascii(tier.unit)}{said}"


def written_model(problem: Problem) -> WrittenModel:
    """Return the exact model of the whole Problem, with names.

    Raises
    ------
    TooLargeToWrite
        Before anything is built, where it has too many counts.
    """
    if problem.counts > LARGEST:
        raise TooLargeToWrite(problem.counts)
    part = PartModel(problem, range(len(problem.nodes)), State())
    model = part.model
    tiers = tuple(_defined(part, tier) for tier in problem.search_tiers)
    if model.infeasible is not None:
        model.section("nothing fits")
        model.require(Linear.of(model.integer(0, 0, "never")), lower=1)
    free = (tier for tier in tiers if model.lower[tier.variable] < model.upper[tier.variable])
    return WrittenModel(problem.spec.name, model, _names(part), _row_names(model), tiers, next(free, None))


def _defined(part: PartModel, tier: Tier) -> WrittenTier:
    """Add a variable that is equal to a tier."""
    part.model.section(f"tier {tier.name}")
    expression = tier.encode(part)
    variable = part.model.integer(*part.model.range_of(expression), f"tier.{tier.name}")
    part.model.require(expression.minus(Linear.of(variable)), lower=0, upper=0)
    return WrittenTier(tier.name, tier.sense, tier.unit, variable)


def _names(part: PartModel) -> tuple[str, ...]:
    """Return the names of all variables, each its own and legal in every format."""
    model, problem = part.model, part.problem
    shapes = [_shape_name(shape) for shape in problem.shapes]
    known: dict[int, str] = {}
    for index, slots in part.variables.slots.items():
        node = problem.nodes[index].name
        for slot, variable in slots.items():
            on = "" if slot.gpu == NO_GPU else f".g{slot.gpu}"
            profile = f".{slot.profile}".replace("+", ".").replace("-", ".") if slot.profile else ""
            block = "".join(f".b{gpu}" for gpu in range(problem.nodes[index].gpus) if slot.block >> gpu & 1)
            known[variable] = f"x.{node}.{shapes[slot.shape]}{on}{block}{profile}"
        for place, variable in part.variables.keeps[index].items():
            known[variable] = f"keep.{node}.{shapes[place.shape]}" + "".join(f".g{gpu}" for gpu in place.gpus)
            if place.instance:
                known[variable] += "." + place.instance.replace("+", ".").replace("-", ".").replace("@", ".at")
            if place.group != NO_GROUP:
                known[variable] += f".of{place.group}"
    sections = _by_position(model.sections, [section.first_variable for section in model.sections], len(model.lower))
    return _unique(
        known.get(index) or name.replace(":", ".") or f"{section}.v{index}"
        for index, (name, section) in enumerate(zip(model.names, sections, strict=True))
    )


def _shape_name(shape: Shape) -> str:
    first = ReplicaId(shape.workload.id, shape.role.name, 0).role_id
    return f"{first}.and_{len(shape.members) - 1}_more" if len(shape.members) > 1 else first


def _row_names(model: Model) -> tuple[str, ...]:
    sections = _by_position(model.sections, [section.first_row for section in model.sections], len(model.rows))
    return _unique(f"{section}.r{index}" for index, section in enumerate(sections))


def _by_position(sections: Sequence[Section], starts: Sequence[int], length: int) -> list[str]:
    """Return the name of the section that each position lies in, its kind and what it is for joined by a dot."""
    found = ["model"] * length
    for section, start, end in zip(sections, starts, [*starts[1:], length], strict=True):
        found[start:end] = [section.name.replace(" ", ".", 1)] * (end - start)
    return found


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return names made of letters, digits, `_` and `.` only, starting with a letter, no two alike.

    Names do not differ by case alone either, as some readers ignore it.
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = _ODD.sub("_", name).replace("_.", ".").strip("_.")[:_LONGEST]
        unique, number = plain, 1
        while unique.lower() in taken:
            number += 1
            unique = f"{plain}.n{number}"
        taken.add(unique.lower())
        found.append(unique)
    return tuple(found)


def _ascii(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
