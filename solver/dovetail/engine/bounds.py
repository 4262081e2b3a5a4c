"""Bounds on every tier of a finished search, each with what it rests on (S5.2)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.ways import Ways
from dovetail.engine.contents.patterns import MANY_NODES
from dovetail.engine.exact import TierAnswer
from dovetail.engine.fleet.aside import Aside
from dovetail.engine.fleet.cases import has_numbers
from dovetail.engine.fleet.fleet_bounds import FleetBounds, proof_of
from dovetail.engine.fleet.node_lp import ENOUGH, FEW
from dovetail.engine.fleet.pursuit import WIDE, Best, Found
from dovetail.engine.gathering.gatherings import Reached
from dovetail.model.state import today_state
from dovetail.objectives import Tier, limit_given, sign_of
from dovetail.plan.model import Proof as Rests
from dovetail.plan.model import TierResult
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.proof.certificate import Proof
from dovetail.proof.fleet import FEW_NODES

MUCH: Final = 0.002
"""A gap of what is admitted beside what runs, for which others move by the hundred."""

_NODES_SHARE = 0.2  # of the time, where nodes are few, to tell apart what single ones may hold
_QUICK_SHARE = 0.05  # the same where another process looks for bounds meanwhile, or LPs are small
_LARGE_SHARE = 0.2, 0.3  # the same of a large fleet, and of one with many nodes
_STANDING = 0.15  # of the time left, for a tier beside what runs today
_COUNTS = 20  # cases that are told apart by numbers, where nobody does it aside
_LEAST = 1.0  # seconds for a tier that counts nodes and has no bound yet, on few nodes
_FIRST = 0.75  # of the time left, for the quicker LP of a tier that counts nodes


@dataclass(frozen=True, slots=True)
class Bound:
    """A value that no plan passes, what it rests on, and the rules that it ignores."""

    value: int
    rests: Rests
    relaxed: tuple[str, ...] = ()
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """A plan's values, each with its bound, and the proofs of those bounds that have one."""

    tiers: tuple[TierResult, ...]
    proofs: tuple[Proof, ...]


class Bounds:
    """The bounds of one Problem.

    Parameters
    ----------
    aside : where the closest bounds are looked for meanwhile.
    """

    def __init__(self, problem: Problem, stop: Stop, aside: Aside | None = None) -> None:
        self.problem = problem
        self.fleet = FleetBounds(problem, stop)
        self._aside = aside
        self._told = 0
        self._stop = stop
        self._gathered: Sequence[Reached] = ()
        self._forgotten: tuple[str, ...] = ()
        self.until: float | None = None  # when to stop looking for better ones, on the monotonic clock

    def learn(self, reached: Sequence[Reached], relaxed: tuple[str, ...]) -> None:
        """Take what a relaxation says of tiers in order, each given that the earlier ones keep their values there."""
        self._gathered, self._forgotten = reached, relaxed

    def results(self, values: Sequence[int], answers: Sequence[TierAnswer]) -> Results:
        """Pair every tier's value with the best bound at hand.

        Parameters
        ----------
        values : a plan's value per tier.
        answers : what an exact search of the whole says of the first tiers; a bound holds only given the earlier
            tiers' values, so answers count as far as the plan has the values that the search held.
        """
        found = []
        proofs = []
        given: dict[str, int] = {}
        usable, late = True, False
        for position, (tier, value) in enumerate(zip(self.problem.tiers, values, strict=True)):
            answer = answers[position] if usable and position < len(answers) else None
            late = late or tier.counts_nodes
            best = self._best(tier, value, given, answer, late=late)
            found.append(_result(tier, value, best, given))
            proofs += [best.proof] if best.proof is not None else []
            given[tier.name] = value
            usable = usable and answer is not None and answer.value == value
        return Results(tuple(found), tuple(proofs))

    def _best(
        self, tier: Tier, value: int, given: Mapping[str, int], answer: TierAnswer | None, *, late: bool
    ) -> Bound:
        """Return the tightest bound known, arithmetic on the documents preferred where it is as good.

        Parameters
        ----------
        late : whether the tier counts nodes, or follows one that does.
        """
        candidates = [Bound(limit_given(tier, self.problem.context, given), "trivial")]
        if candidates[0].value != value and answer is not None and answer.bound is not None:
            candidates.append(Bound(answer.bound, "solver"))
        candidates += self._of_gatherings(tier, given)
        if all(bound.value != value for bound in candidates):
            candidates += self._of_fleet(tier, value, given, late=late)
        sign = sign_of(tier.sense)
        return min(candidates, key=lambda bound: sign * bound.value)

    def _of_gatherings(self, tier: Tier, given: Mapping[str, int]) -> list[Bound]:
        """Return what is known from classes of domains, if the plan is as good in the tiers before as was assumed."""
        for reached in self._gathered:
            if reached.tier == tier:
                return [] if reached.bound is None else [Bound(reached.bound, "solver", self._forgotten)]
            sign = sign_of(reached.tier.sense)
            if sign * given.get(reached.tier.name, reached.value) < sign * reached.value:
                return []
        return []

    def _of_fleet(self, tier: Tier, value: int, given: Mapping[str, int], *, late: bool) -> list[Bound]:
        """Return the bound of the relaxation to kinds of nodes, found anew where nothing is known yet.

        The LP of tiers that count nodes is left for the end, and those that follow it as well in large fleets.
        """
        best = self.fleet.best(tier, given)
        known = tier.name in self.fleet.asked or (best is not None and best[0] == value)
        asks = not known and not tier.counts_nodes and self.fleet.knows(tier)
        if asks and not (late and self.fleet.large):
            self.fleet.prove(tier, given, seconds=self._left())
            best = self.fleet.best(tier, given)
        if best is None:
            return []
        bound = best[1]
        return [Bound(best[0], "certificate", bound.fleet.relaxed, proof_of(tier.name, best[0], given, bound))]

    def stand(self, values: Sequence[int], new: Sequence[int], *, last: bool) -> None:
        """Look for bounds beside what runs today, tier by tier, where arithmetic on the documents leaves a gap.

        While much more may be admitted, it is no matter yet what moves for it.

        Parameters
        ----------
        new : the shapes that may need others to leave.
        last : whether nothing better will be found.
        """
        names = [tier.name for tier in self.problem.tiers]
        for position, (tier, value) in enumerate(zip(self.problem.tiers, values, strict=True)):
            given = dict(zip(names[:position], values, strict=False))
            best = self.fleet.best(tier, given)
            limit = limit_given(tier, self.problem.context, given)
            closed = value == limit or (best is not None and best[0] == value)
            if not (closed or self.over()) and self.fleet.stands(tier):
                left = self._left()
                seconds = None if left is None else _STANDING * left
                self.fleet.stand(tier, given, value, new, seconds, None if tier.counts_nodes else self._routes)
                best = self.fleet.best(tier, given)
            bound = limit if best is None else min(limit, best[0])
            if tier.kind == "admitted" and not last and bound - value > MUCH * bound:
                break

    @cached_property
    def _routes(self) -> Ways:
        """Who must leave for whom as things are today."""
        return Ways(Outlooks(Field(self.problem, today_state(self.problem))), frozenset(), self.over)

    @property
    def pursued(self) -> bool:
        """Whether the closest bounds are looked for while the search goes on."""
        return self._pursuer is not None

    @property
    def share(self) -> float:
        """The part of the time that is kept for the last bounds."""
        nodes = len(self.problem.nodes)
        if nodes <= FEW:
            return _NODES_SHARE
        quick = self.pursued or not self.fleet.large
        return _QUICK_SHARE if quick else _LARGE_SHARE[nodes > MANY_NODES]

    @property
    def _pursuer(self) -> Aside | None:
        """Where the closest bounds are looked for while the search goes on, None where they are not."""
        there = self._aside is not None and not self._aside.lost and self.until is not None
        return self._aside if there else None

    def pursue(self, values: Sequence[int], answers: Sequence[TierAnswer]) -> Results:
        """Return what `results` does, with what was found meanwhile, and let others be looked for."""
        if (aside := self._pursuer) is not None:
            self._learn(aside.heard(self._stop))
            self._tell(aside, values)
        return self.results(values, answers)

    def _tell(self, aside: Aside, values: Sequence[int], *, last: bool = False) -> None:
        self._told += 1
        aside.tell(Best(self._told, tuple(values), self.until or 0.0, last))

    def _learn(self, heard: Iterable[Found | int]) -> None:
        """Take bounds that were found meanwhile, until nothing is left to find for what was told last."""
        tiers = {tier.name: tier for tier in self.problem.tiers}
        for found in heard:
            if isinstance(found, int):
                if found == self._told:
                    return
            else:
                self.fleet.learn(tiers[found.tier], found.cases, priced=found.priced)

    def _see_out(self, values: Sequence[int], answers: Sequence[TierAnswer]) -> None:
        """Wait for the closest bounds that these very values allow, where that is worth it and there is time."""
        if (aside := self._pursuer) is not None:
            if any((tier.gap or 0.0) > WIDE for tier in self.results(values, answers).tiers):
                self._tell(aside, values, last=True)
                self._learn(aside.heard(self._stop, self.until or 0.0))
            aside.close()

    def sharpen(self, values: Sequence[int], answers: Sequence[TierAnswer]) -> None:
        """Look for the best bounds that these very values allow, the quick LPs first.

        Where that leaves a gap, nodes of different prices are told apart, and for tiers that count nodes those
        sides of them that rules keep apart. Tiers that count nodes, and what follows them, come last. The larger LPs
        are left to another process where there is one.
        """
        if (aside := self._pursuer) is not None:
            self._learn(aside.heard(self._stop))
        tiers = self.problem.tiers
        late = next((i for i, tier in enumerate(tiers) if tier.counts_nodes), len(tiers))
        ways = (False,) if self.pursued else (False, True)
        for places, priced in itertools.product((range(late), range(late, len(tiers))), ways):
            self._look(places, values, answers, priced=priced)
        if not (self.pursued or self.fleet.large):
            self._count(values, answers)
            self._count(values, answers, ENOUGH)
        self._see_out(values, answers)

    def tell_apart(self, values: Sequence[int], answers: Sequence[TierAnswer], most: float) -> float:
        """Look for bounds on what is admitted with nodes told apart, where these are few and nobody looks aside.

        A search that is told that more might be admitted looks for that, and for nothing that comes after it.

        Parameters
        ----------
        most : units of work that one of them may take.

        Returns
        -------
        float
            The work that they took.
        """
        if self.pursued or len(self.problem.nodes) > FEW_NODES or self.fleet.plain.work > most:
            return 0.0
        tiers = enumerate(self.problem.tiers)
        admitted = [at for at, tier in tiers if tier.kind == "admitted"]
        return self.fleet.plain.work * self._look(admitted, values, answers, priced=True)

    def _look(
        self, places: Iterable[int], values: Sequence[int], answers: Sequence[TierAnswer], *, priced: bool
    ) -> int:
        """Look for bounds on some tiers where they leave a gap that is worth the LP; return on how many."""
        looked = 0
        names = [tier.name for tier in self.problem.tiers]
        told = self.results(values, answers).tiers
        for position in places:
            tier, result = self.problem.tiers[position], told[position]
            given = dict(zip(names[:position], values, strict=False))
            closed = (result.gap or 0.0) <= (WIDE if priced else 0.0) or self.fleet.has_proved(tier, given)
            closed = closed or (tier.counts_nodes and not priced and self.fleet.best(tier, given) is not None)
            most = 0.0 if closed else self._time_for(tier, priced=priced)
            if most != 0.0 and self.fleet.knows(tier):
                reached = result.value if tier.sense == "max" else None
                self.fleet.prove(tier, given, reached=reached, priced=priced, seconds=most)
                looked += 1
        return looked

    def _time_for(self, tier: Tier, *, priced: bool) -> float | None:
        """Return the seconds for an LP, None without a limit; once time is up, few to count nodes at all."""
        counts = tier.counts_nodes and not priced
        if self.over():
            return _LEAST if counts and not self._stop and len(self.problem.nodes) <= FEW_NODES else 0.0
        left = self._left()
        return _FIRST * left if counts and left is not None else left

    def _count(self, values: Sequence[int], answers: Sequence[TierAnswer], contents: float = 0.0) -> None:
        """Look for bounds with nodes in use and replicas in whole numbers, which takes an LP for each case.

        Parameters
        ----------
        contents : how many cases of what single nodes hold to look at, where these are few; 0 for LPs over kinds.
        """
        given: dict[str, int] = {}
        for tier, told in zip(self.problem.tiers, self.results(values, answers).tiers, strict=True):
            known = self.fleet.knows_nodes(tier) if contents else has_numbers(tier) and self.fleet.knows(tier)
            if (told.gap or 0.0) > WIDE and known and not self.over():
                seconds = None if (left := self._left()) is None else _FIRST * left
                self.fleet.prove(
                    tier,
                    given,
                    reached=told.value,
                    priced=True,
                    seconds=seconds,
                    counts=_COUNTS,
                    contents=contents,
                )
            given[tier.name] = told.value

    def prove_at(self, place: int, told: Sequence[TierResult]) -> float:
        """Look for the best bound on a tier, prices and sides of nodes told apart; return the seconds it took.

        Parameters
        ----------
        told : the values of all tiers.
        """
        began, left = time.monotonic(), self._left()
        given = {tier.name: tier.value for tier in told[:place]}
        most = None if left is None else _FIRST * left
        self.fleet.prove(self.problem.tiers[place], given, priced=True, seconds=most)
        return time.monotonic() - began

    def _left(self) -> float | None:
        return None if self.until is None else max(0.1, self.until - time.monotonic())

    def over(self) -> bool:
        """Tell whether to look no further: time is up, or somebody stops the search."""
        return bool(self._stop) or (self.until is not None and time.monotonic() >= self.until)


def _result(tier: Tier, value: int, bound: Bound, given: Mapping[str, int]) -> TierResult:
    return TierResult(tier.name, value, bound.value, tier.unit, tier.sense, bound.rests, dict(given), bound.relaxed)
