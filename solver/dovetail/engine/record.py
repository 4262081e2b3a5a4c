"""The best state so far of a search, with what is proved about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dovetail.engine.bounds import Bounds, Results
from dovetail.engine.construction.forgoing import without_too_many
from dovetail.engine.construction.served import without_surplus
from dovetail.engine.construction.tier_order import left_to_decide
from dovetail.engine.exact import Climb, TierAnswer
from dovetail.engine.fleet.losses import Losses
from dovetail.engine.fleet.pursuit import WIDE
from dovetail.engine.incumbent import Keep
from dovetail.engine.solvers.answer import Verdict
from dovetail.model.legal import legalise
from dovetail.model.score import better, compared, debt, hard_policies, owed, sound, view_of
from dovetail.model.state import State, newcomers
from dovetail.objectives import Tier
from dovetail.plan.model import TierResult
from dovetail.problem import Problem
from dovetail.progress import Reporter


@dataclass(frozen=True, slots=True)
class Undecided:
    """A tier that is left to decide, what is lost of it by the best bound, and the gap, 1 where there is none."""

    tier: Tier
    losses: Losses
    gap: float


@dataclass(slots=True)
class Record:
    """The best state so far, told to those who ask for it.

    Parameters
    ----------
    keep : is given every better state that is a plan, and what is known of it.
    answers : of an exact search.
    unpaid : the hard policies that the state breaks so far.
    now : its tiers, with bounds.
    gap : of the admitted tiers, that ends the search.
    """

    problem: Problem
    bounds: Bounds
    reporter: Reporter
    keep: Keep
    gap: float
    state: State = field(default_factory=State)
    answers: tuple[TierAnswer, ...] = ()
    unpaid: frozenset[str] = frozenset()
    now: tuple[TierResult, ...] = ()

    def offer(self, candidate: State) -> bool:
        """Take a state if it is better than the one at hand; tell whether it is."""
        candidate = legalise(self.problem, candidate)
        if self.searching - self.unpaid:
            candidate = without_too_many(self.problem, candidate)
        spared = without_surplus(self.problem, candidate)
        for state in (spared,) if spared is candidate else (spared, candidate):
            if better(self.problem, state, self.state, self.unpaid):
                self.state = state
                self.report()
                return True
        return False

    def take(self, found: Climb) -> Verdict:
        """Take what an exact search found and proved, the state only if its names keep what the model counts."""
        broken, self.answers = owed(self.problem, found.state, self.searching), _joined(self.answers, found.tiers)
        kept = sound(self.problem, view_of(self.problem, found.state)) and self._no_worse(found.state)
        if not self.unpaid and (broken or not kept):
            return Verdict.FEASIBLE
        self.state, self.unpaid = found.state, broken
        return found.verdict

    def _no_worse(self, state: State) -> bool:
        """Tell whether a state is as good as the one at hand where groups run: counts do not tell all of these."""
        if not self.problem.groups_run:
            return True
        hard = hard_policies(self.problem)
        return compared(self.problem, state, self.state, hard) >= 0

    @property
    def searching(self) -> frozenset[str]:
        """The hard policies that a model merely counts, as they take a search of their own."""
        policies = {policy.name for policy in self.problem.spec.policies if policy.rule.searches}
        return hard_policies(self.problem) & policies

    @property
    def closed(self) -> tuple[Tier, ...]:
        """The tiers that are proved: nobody finds more of them."""
        proved = {tier.name for tier in self.now if tier.proved}
        return () if self.unpaid else tuple(tier for tier in self.problem.tiers if tier.name in proved)

    def holds(self, state: State) -> bool:
        """Tell whether a state keeps what a model of a part may know less of."""
        kept = self.searching - self.unpaid
        held = not kept or not debt(self.problem, view_of(self.problem, state), kept)
        named = not self.problem.groups_run or sound(self.problem, view_of(self.problem, state))
        return held and named and (bool(self.unpaid) or self._no_worse(state))

    @property
    def full(self) -> bool:
        """Whether no plan admits more, as far as bounds tell by now."""
        return self.full_but_for(0.0)

    @property
    def bounds_of_bands(self) -> dict[int, int]:
        """The worth of GPU work that no plan exceeds, by band, as far as bounds tell by now."""
        of_tier = {tier.name: tier.bound for tier in self.now}
        named = {band: of_tier.get(f"admitted[{band}]") for band in self.problem.spec.bands}
        return {band: bound for band, bound in named.items() if bound is not None}

    @property
    def leads_of_spared(self) -> list[Losses]:
        """What nodes lose by the best bound on what is left to decide at last; nothing before there is one."""
        place = left_to_decide(self.problem)
        found = None if place is None or not self.now else self._losses(place)
        return [] if found is None else [found]

    @property
    def undecided(self) -> list[Undecided]:
        """The tiers that are left to decide, as far as bounds tell by now where the state and they part.

        Those after the admitted ones are left to decide where hardly more can be admitted.
        """
        full = self.full_but_for(WIDE)
        places = enumerate(self.problem.tiers) if self.now and self.problem.fresh else ()
        of_tier = {tier.name: tier for tier in self.now}
        found = []
        for place, tier in places:
            told = of_tier[tier.name]
            if (full or tier.kind == "admitted") and not told.proved and (losses := self._losses(place)) is not None:
                found.append(Undecided(tier, losses, 1.0 if told.gap is None else told.gap))
        return found

    def _losses(self, place: int) -> Losses | None:
        """Return what is lost by the best bound on a tier, given what there is of earlier ones."""
        told = {tier.name: tier.value for tier in self.now}
        given = {tier.name: told[tier.name] for tier in self.problem.tiers[:place]}
        return self.bounds.fleet.losses(self.problem.tiers[place], given)

    @property
    def admitted(self) -> tuple[int, ...]:
        """What is admitted, band by band."""
        return tuple(tier.value for tier in self.now if tier.name.startswith("admitted"))

    def full_but_for(self, gap: float) -> bool:
        """Tell whether no plan admits more than so small a part, as far as bounds tell by now."""
        told = [tier for tier in self.now if tier.name.startswith("admitted")]
        return bool(told) and all(tier.within(gap) for tier in told)

    def results(self, *, standing: bool = False, last: bool = False) -> Results:
        """Return the tiers of the state at hand, with proofs.

        Parameters
        ----------
        standing : whether to look for bounds beside what runs today.
        last : whether nothing better will be found, so that bounds may take the time that is left.
        """
        values = self._values()
        if (standing or last) and self.problem.present and not self.unpaid:
            self.bounds.stand(values, newcomers(self.problem, self.state), last=last)
        if last:
            self.bounds.sharpen(values, self.answers)
            return self.bounds.results(values, self.answers)
        return self.bounds.pursue(values, self.answers)

    def report(self, *, standing: bool = False) -> None:
        """Tell values, bounds and gaps as they stand, after a look beside what runs today where that is asked for."""
        self.now = self.results(standing=standing).tiers
        self.hand_out(self.now)
        for tier in self.now:
            self.reporter.tier(tier.name, tier.unit, tier.value, tier.bound)

    def tell_apart(self, most: float) -> float:
        """Look for closer bounds on what is admitted, where that is quick (`Bounds.tell_apart`), and tell of them."""
        taken = 0.0 if self.unpaid else self.bounds.tell_apart(self._values(), self.answers, most)
        if taken:
            self.report()
        return taken

    def begin(self) -> None:
        """Hand out the state at hand and tell its values, before bounds, which take longer in large fleets."""
        self.hand_out()
        if not self.unpaid:
            for tier, value in zip(self.problem.tiers, self._values(), strict=True):
                self.reporter.tier(tier.name, tier.unit, value, None)

    def _values(self) -> list[int]:
        view = view_of(self.problem, self.state)
        return [tier.measure(view, self.problem.context) for tier in self.problem.tiers]

    def told_bounds(self) -> Sequence[int | None]:
        """Return a bound per tier, given what the state has of those before; none before anything was told."""
        if self.unpaid or not self.now:
            return ()
        self.report()
        return [tier.bound for tier in self.now]

    def hand_out(self, tiers: Sequence[TierResult] = ()) -> None:
        """Hand out the state at hand, if it is a plan."""
        if not self.unpaid:
            self.keep(self.state, tiers)

    def close_enough(self) -> bool:
        """Tell whether every tier is proved, or the admitted ones are within the gap asked for."""
        if self.unpaid:
            return False
        if all(tier.proved for tier in self.now):
            return True
        gaps = [tier.gap or 0.0 for tier in self.now if tier.name.startswith("admitted")]
        return 0 < self.gap >= max(gaps, default=0.0)


def _joined(before: Sequence[TierAnswer], found: Sequence[TierAnswer]) -> tuple[TierAnswer, ...]:
    """Return what an exact search found, with the bounds of an earlier one that it took as told.

    Those hold as far as both have the same values.
    """
    joined: list[TierAnswer] = []
    for told, answer in zip(before, found, strict=False):
        if told.value != answer.value:
            break
        joined.append(replace(answer, bound=told.bound) if answer.bound is None else answer)
    return (*joined, *found[len(joined) :])
