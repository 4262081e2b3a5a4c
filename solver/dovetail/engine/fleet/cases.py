"""Who is there: the LP over kinds of nodes by whether gangs are admitted, and by how many replicas of shapes are.

The LP admits parts of a gang, and in a small fleet one gang is a large part of a band. So the case with the best
value is split by the gang that has the largest part too much or too little, into one without it and one with it,
until the best case has no such gang. Then it is split by how many nodes are in use, where the tier counts them, or by
how many replicas of a shape are admitted, of which the LP has fractions. All cases are a tree, whose leaves prove a
bound; the best says whom to place.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, inf
from typing import TYPE_CHECKING, Final, Protocol

from dovetail.progress import Stop
from dovetail.proof.certificate import Branch, Leaf
from dovetail.proof.fleet_models import FleetProof, Within
from dovetail.proof.since_today import counts_since_today

if TYPE_CHECKING:
    from dovetail.engine.fleet.fleet_lp import FleetLp
    from dovetail.objectives import Tier
    from dovetail.proof.fleet import FleetModel

SPLITS: Final = 24
"""How often the best case of a tier is split by gangs at the most, for a bound."""

COUNTS: Final = 300
"""How often it is split at the most by gangs and counts."""

_VAIN = 20  # splits by counts in a row, after which the bound is what it was before

_SPLITS_TO_DECIDE = 8
_ALMOST = 1e-3  # of a workload: less is rounding
_WHOLE = 1e-5  # of a replica
_PART_OF_NODE = 1e-4
_STEPS = 8_000  # from a case's solution to those of its halves, of which some ask for much else; mostly 500

Limit = tuple[int, int, int]  # a variable, and what it is at the least and at the most
Assumed = tuple[Limit, ...]  # in the order in which cases were split


def has_numbers(tier: Tier) -> bool:
    """Tell whether cases of a tier are split by numbers: of nodes in use, of what is admitted, evicted or mended."""
    return tier.sense == "max" or tier.counts_nodes or counts_since_today(tier)


def within(assumed: Assumed) -> dict[int, tuple[int, int]]:
    """Return the limits of every variable that something is assumed of: the last ones, which lie in those before."""
    return {variable: (least, most) for variable, least, most in assumed}


class TierLp(Protocol):
    """An LP of a fleet, to be maximised for one tier after the other (see `FleetLp`)."""

    fleet: FleetModel

    @property
    def spent(self) -> bool:
        """Whether it has had all the work that it may take."""

    def confine(self, limits: Within) -> None:
        """Say of some variables that no node has a part in that they have closer limits, of no others."""

    def optimise(
        self,
        tier: str,
        given: Mapping[str, int],
        *,
        seconds: float | None = None,
        like: Within | None = None,
        steps: int = ...,
    ) -> float:
        """Maximise a tier, earlier ones held at given values; return the LP's value."""

    def values(self) -> Sequence[float]:
        """Return the last solution, the fleet's variables first."""

    def proof(self) -> FleetProof:
        """Return what the last solution proves."""


@dataclass(frozen=True, slots=True)
class Case:
    """What one case is worth at the most, and why.

    Parameters
    ----------
    total : of the proof (see `FleetProof.total`).
    value : that bound, given what the LP assumed of earlier tiers; `reached` is the LP's own value.
    undecided : the gang, else the count, by which it is to be split next, None where the LP has parts of none.
    there : of workloads that a tier counts so far, whether the LP's solution has them, or most of them.
    torn : whether that is a gang.
    """

    proof: FleetProof
    total: int
    value: int
    reached: float
    undecided: Branch | None
    there: Mapping[str, int]
    torn: bool = False


@dataclass(frozen=True, slots=True)
class Cases:
    """Cases of one tier that leave nothing out, by what each assumes.

    Parameters
    ----------
    branches : by what that which was assumed so far is split, with its halves.
    """

    leaves: dict[Assumed, Case] = field(default_factory=dict)
    branches: dict[Assumed, tuple[Branch, Assumed, Assumed]] = field(default_factory=dict)

    @property
    def best(self) -> Assumed:
        """The case that is worth most."""
        return max(self.leaves, key=lambda assumed: self.leaves[assumed].value)

    def tree(self, fleet: FleetModel, earlier: Mapping[str, int], assumed: Assumed = ()) -> Iterator[Branch | Leaf]:
        """Yield the nodes of the tree in preorder; see `FleetProof.leaf`."""
        if assumed not in self.branches:
            yield self.leaves[assumed].proof.leaf(fleet, earlier)
            return
        branch, *halves = self.branches[assumed]
        yield branch
        for half in halves:
            yield from self.tree(fleet, earlier, half)


@dataclass(frozen=True, slots=True)
class CaseSearch:
    """A search for the cases of one tier.

    Parameters
    ----------
    given : what earlier tiers reach, greater being better.
    fixed : of which workloads all cases assume that they are there (1) or not (0).
    known : cases of tiers that are given: who cannot be missing there cannot be missing here.
    whole : a proof for this tier that assumes nothing, found before.
    found : as far as it has come.
    """

    lp: TierLp
    tier: str
    given: Mapping[str, int]
    fixed: Mapping[str, int] = field(default_factory=dict)
    known: Sequence[Cases] = ()
    whole: FleetProof | None = None
    found: Cases = field(default_factory=Cases)

    def split(self, most: int, aim: int | None, until: float | None, stop: Stop, counts: int = 0) -> Cases:
        """Solve the LP, and again for halves of the best case, until that has no parts or is no better than `aim`.

        Parameters
        ----------
        most : how often by gangs; `counts` how often by gangs and counts.
        until : when to stop, on the monotonic clock.
        """
        begin = self._forced()
        self.found.leaves[begin] = self._solved_within(self.whole, begin, until)
        least, better = inf, 0  # the bound, and how often it had been split when it was found
        while (case := self.found.leaves[self.found.best]).undecided is not None:
            splits = len(self.found.branches)
            if case.value < least or case.torn:
                least, better = case.value, splits
            late = bool(stop) or self.lp.spent or (until is not None and time.monotonic() >= until)
            spent = splits >= (most if case.torn else counts) or splits - better >= _VAIN
            if late or spent or (aim is not None and case.value <= aim):
                break
            self._halve(self.found.best, case.undecided, until)
        return self.found

    def _halves(self, assumed: Assumed, branch: Branch) -> tuple[Assumed, Assumed]:
        """Return what is assumed with a variable up to some number, and above."""
        variable, model = branch.variable, self.lp.fleet.model
        least, most = within(assumed).get(variable, (model.lower[variable], model.upper[variable]))
        return (*assumed, (variable, least, branch.most)), (*assumed, (variable, branch.most + 1, most))

    def _forced(self) -> Assumed:
        """Return who is there, and who is not, as earlier tiers will not have it otherwise."""
        assumed: Assumed = ()
        for known, _ in self._earlier():
            left = [each for each in known if each not in assumed]
            if len(left) != 1 or left[0][0] in within(assumed):
                continue
            ((variable, least, most),) = left
            low = least == self.lp.fleet.model.lower[variable]
            branch = Branch(variable, most if low else least - 1)
            halves = self._halves(assumed, branch)
            without, other = halves if low else halves[::-1]
            if without[-1] == left[0] and (case := self._hopeless(without)) is not None:
                self.found.leaves[without] = case
                self.found.branches[assumed] = branch, *halves
                assumed = other
        return assumed

    def _earlier(self) -> Iterator[tuple[Assumed, Case]]:
        """Yield the cases of earlier tiers."""
        for cases in self.known:
            yield from cases.leaves.items()

    def _halve(self, assumed: Assumed, branch: Branch, until: float | None) -> None:
        whole = self.found.leaves.pop(assumed)
        halves = self._halves(assumed, branch)
        self.found.branches[assumed] = branch, *halves
        for half in halves:
            found = self._hopeless(half) or self._solved_within(whole.proof, half, until, like=assumed)
            self.found.leaves[half] = found

    def _solved_within(
        self, whole: FleetProof | None, assumed: Assumed, until: float | None, *, like: Assumed | None = None
    ) -> Case:
        """Return a part of a case, proved by what proved the whole where that says more, as where time cuts an LP."""
        found = self._solved(assumed, until, like)
        if whole is None:
            return found
        total = whole.total(self.lp.fleet, self._within(assumed))
        value = whole.bound(total, self.given)
        return found if found.value <= value else replace(found, proof=whole, total=total, value=value)

    def _within(self, assumed: Assumed) -> Within:
        flags = self.lp.fleet.flags
        return {**{flags[name]: (there, there) for name, there in self.fixed.items()}, **within(assumed)}

    def _hopeless(self, assumed: Assumed) -> Case | None:
        """Return a case in which an earlier tier cannot be what it is, with the proof of that; None if none is known.

        That proof, times whatever makes up for all that this tier may have, is one for this tier.
        """
        limits = self._within(assumed)
        for known, case in self._earlier():
            if not all(_inside(limits.get(variable), limit) for variable, limit in within(known).items()):
                continue
            short = self.given[case.proof.tier] - case.proof.bound(case.total, self.given)
            if short > 0:
                once = self._made_up(case.proof, 1, limits)
                return self._made_up(case.proof, 2 + max(0, once.value + self._most()) // short, limits)
        return None

    def _most(self) -> int:
        """Return how far from 0 this tier may be."""
        expression, upper = self.lp.fleet.tiers[self.tier], self.lp.fleet.model.upper
        return abs(expression.constant) + sum(abs(c) * upper[v] for v, c in expression.terms.items())

    def _made_up(self, earlier: FleetProof, times: int, limits: Within) -> Case:
        """Return the case of a proof for an earlier tier, so many times, as one for this tier."""
        proof = earlier.carried(self.tier, times)
        total = proof.total(self.lp.fleet, limits)
        return Case(proof, total, proof.bound(total, self.given), -inf, None, self._decided(limits))

    def _decided(self, limits: Within) -> dict[str, int]:
        """Return of which workloads it is assumed that they are there, or not."""
        return {name: limits[flag][0] for name, flag in self.lp.fleet.flags.items() if flag in limits}

    def _solved(self, assumed: Assumed, until: float | None, like: Assumed | None) -> Case:
        """Solve the LP of a case; where it is part of one that was solved before, go on from there."""
        lp, limits = self.lp, self._within(assumed)
        lp.confine(limits)
        left = None if until is None else max(0.1, until - time.monotonic())
        near = None if like is None else self._within(like)
        reached = lp.optimise(self.tier, self.given, seconds=left, like=near, steps=_STEPS)
        proof, shares = lp.proof(), self._shares()
        decided = self._decided(limits)
        parts = {
            name: worth * min(share, 1 - share)
            for name, (share, worth) in shares.items()
            if name not in decided and _ALMOST < share < 1 - _ALMOST
        }
        torn = max(parts, key=lambda name: (parts[name], name)) if parts else None
        undecided = self._nodes() or self._count() if torn is None else Branch(lp.fleet.flags[torn], 0)
        lp.confine({})
        total = proof.total(lp.fleet, limits)
        there = {name: int(share > 0.5) for name, (share, _) in shares.items()} | decided
        return Case(proof, total, proof.bound(total, self.given), reached, undecided, there, torn is not None)

    def _count(self) -> Branch | None:
        """Return how to split by the number of which the LP has the dearest part, if any (`FleetModel.numbers`).

        What is counted since today comes before what earlier tiers have: it is few.
        """
        first = [self.tier] if self.tier in self.lp.fleet.since_today else []
        parts = self._parts_of(first) or self._parts_of((*self.given, self.tier))
        if not parts:
            return None
        variable = max(parts, key=lambda v: (parts[v], -v))
        return Branch(variable, floor(self.lp.values()[variable]))

    def _parts_of(self, tiers: Iterable[str]) -> Mapping[int, float]:
        """Return the numbers of tiers of which the last solution has parts, with what these are worth."""
        values, fleet = self.lp.values(), self.lp.fleet
        found: dict[int, float] = {}
        for terms in (fleet.tiers[name].terms for name in tiers):
            for variable, worth in terms.items() if terms.keys() <= fleet.numbers else ():
                rest = values[variable] - floor(values[variable])
                if min(rest, 1 - rest) > _WHOLE:
                    found[variable] = abs(worth) * min(rest, 1 - rest)
        return found

    def _nodes(self) -> Branch | None:
        """Return how to split by nodes in use, where the tier counts them and the LP has parts of one.

        Sums of kinds come first: where prices differ little, parts of single kinds only go elsewhere.
        """
        fleet, values = self.lp.fleet, self.lp.values()
        if not fleet.tiers[self.tier].terms.keys() & {used for used in fleet.used_of if used is not None}:
            return None
        for variable in fleet.in_use:
            rest = values[variable] - floor(values[variable])
            if min(rest, 1 - rest) > _PART_OF_NODE:
                return Branch(variable, floor(values[variable]))
        return None

    def _shares(self) -> dict[str, tuple[float, int]]:
        """Return what the last solution has of workloads that stand or fall together, and what each of them is worth.

        What it has is a part of the fewest replicas that may be admitted. Left out are workloads that no tier counts
        so far.
        """
        values, fleet = self.lp.values(), self.lp.fleet
        tiers = [fleet.tiers[name].terms for name in (*self.given, self.tier)]
        found: dict[str, tuple[float, int]] = {}
        for name in fleet.flags:
            workload = fleet.spec.by_id[name]
            total = fleet.admitted(workload).terms
            if any(v in terms for terms in tiers for v in total):
                share = sum(values[v] * c for v, c in total.items()) / max(1, workload.min_replicas)
                found[name] = share, sum(role.value * role.replicas for role in workload.roles)
        return found


def _inside(limit: tuple[int, int] | None, other: tuple[int, int]) -> bool:
    """Tell whether limits, None for none, lie within others."""
    return limit is not None and other[0] <= limit[0] and limit[1] <= other[1]


def decided(
    lp: FleetLp, tier: str, given: Mapping[str, int], there: dict[str, int], until: float | None, stop: Stop
) -> float:
    """Optimise a tier with every workload that it counts there as a whole or not at all, as far as splits last.

    Parameters
    ----------
    there : what was decided before; what is decided here joins it, and the LP's last solution keeps it.
    """
    cases = CaseSearch(lp, tier, given, there).split(_SPLITS_TO_DECIDE, None, until, stop)
    best = cases.leaves[cases.best]
    there.update(best.there)
    if not cases.branches:
        return best.reached
    lp.assume(there)
    left = None if until is None else max(0.1, until - time.monotonic())
    reached = lp.optimise(tier, given, seconds=left, again=True)
    lp.assume({})
    return reached
