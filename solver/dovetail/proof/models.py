"""Which rows a proof is about, rebuilt from a Problem; `table` lists the kinds of models."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dovetail.linear import Linear, Model
from dovetail.model.part import PartModel
from dovetail.model.state import State
from dovetail.objectives import sign_of
from dovetail.problem import Problem
from dovetail.proof.lagrangian import PlainRow, plain_rows
from dovetail.proof.strengthen import strengthened
from dovetail.proof.tree import Blocks, Question, Unproved, next_value


class Earlier(NamedTuple):
    """What a proof may assume of a tier before its own: the value reached, and a bound proved of it, if any."""

    value: int
    bound: int | None


@dataclass(frozen=True, slots=True)
class Statement:
    """What a proof of one tier argues about.

    Parameters
    ----------
    objective : what is maximised; a tier where less is better is negated.
    relaxed : names of the rules that the rows ignore.
    variables : how many are the model's own, where sums of them follow.
    """

    objective: Linear
    lower: Sequence[int]
    upper: Sequence[int]
    rows: Sequence[PlainRow]
    blocks: Blocks = lambda prices: ()
    relaxed: tuple[str, ...] = ()
    variables: int = 0

    def question(self, bound: int) -> Question:
        """Return the question whether any solution passes a bound, which is in the sense of the objective."""
        target = next_value(self.objective, bound)
        own = self.variables or len(self.lower)
        return Question(self.objective, target, self.lower, self.upper, self.rows, self.blocks, own)


class Models(Protocol):
    """The rows of one kind for one Problem."""

    def of_tier(self, position: int, earlier: Mapping[str, Earlier]) -> Statement:
        """Return the statement on a tier, given earlier ones by name; positions are asked in ascending order.

        Raises
        ------
        Unproved
            If the rows need more of the earlier tiers than is given.
        """

    def of_none(self) -> Statement:
        """Return the statement, with objective 0, that a proof of infeasibility is about."""


class ExactModels:
    """The exact model of the whole: every rule, every node."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._part = PartModel(problem, range(len(problem.nodes)), State())
        self._groups = _alike(self._part)
        self._expressions: list[Linear] = []
        self._rows: list[PlainRow] = []
        self._taken = 0

    def of_tier(self, position: int, earlier: Mapping[str, Earlier]) -> Statement:
        """Return the rows with the earlier tiers at least as good as reached, and no better than proved."""
        tiers = self._problem.tiers
        if any(tier.name not in earlier for tier in tiers[:position]):
            raise Unproved("its rows hold every earlier tier, and it assumes fewer")
        # One order of rows, whichever tiers are asked for: a tier's own, what holds it, the next one's.
        for number in range(len(self._expressions), position + 1):
            if number:
                self._hold(number - 1, earlier[tiers[number - 1].name])
            self._expressions.append(tiers[number].encode(self._part))
        return self._statement(self._expressions[position].scaled(sign_of(tiers[position].sense)))

    def _hold(self, number: int, known: Earlier) -> None:
        more = self._problem.tiers[number].sense == "max"
        lower, upper = (known.value, known.bound) if more else (known.bound, known.value)
        self._part.model.require(self._expressions[number], lower, upper)

    def of_none(self) -> Statement:
        """Return the rows alone."""
        return self._statement(Linear())

    def _statement(self, objective: Linear) -> Statement:
        model = self._part.model
        new = Model(model.lower, model.upper, model.names, model.rows[self._taken :])
        self._rows += plain_rows(new)
        self._taken = len(model.rows)
        never = [PlainRow((), (), -1)] if model.infeasible else []
        strong = strengthened(model.lower, model.upper, [*self._rows, *never], self._groups)
        return Statement(objective, strong.lower, strong.upper, strong.rows, variables=len(model.lower))


def _alike(part: PartModel) -> Mapping[int, Sequence[Hashable]]:
    """Return what the counts of the exact model may be added up by: shape and class, shape and node, shape."""
    problem = part.problem
    found: dict[int, Sequence[Hashable]] = {}
    for node, slots in part.variables.slots.items():
        of = problem.class_of[node]
        for slot, variable in slots.items():
            found[variable] = (("class", of, slot.shape), ("node", node, slot.shape), ("shape", slot.shape))
    for mode, table in (("", part.variables.shared), ("cut ", part.variables.partitions.flags)):
        for node, flags in table.items():
            for variable in flags.values():
                found[variable] = ((f"{mode}class", problem.class_of[node]), (f"{mode}node", node))
    for node, keeps in part.variables.keeps.items():
        for place, variable in keeps.items():
            found[variable] = (("keep", problem.class_of[node], place.shape), ("keep", place.shape))
    return found
