"""Who is there: the LP over kinds of nodes by whether workloads that stand or fall together are admitted.

The LP admits parts of a gang, and in a small fleet one gang is a large part of a band. So the case with the best
value is split by the gang that has the largest part too much or too little, into one without it and one with it,
until the best case has no such gang. All cases are a tree, whose leaves prove a bound; the best says whom to place.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

from dovetail.progress import Stop
from dovetail.proof.certificate import Branch, Leaf
from dovetail.proof.fleet_models import FleetProof

if TYPE_CHECKING:
    from dovetail.engine.fleet.fleet_lp import FleetLp
    from dovetail.proof.fleet import FleetModel

SPLITS: Final = 24
"""How often the best case of a tier is split at the most, for a bound."""

_SPLITS_TO_DECIDE = 8
_ALMOST = 1e-3  # of a workload: less is rounding

Assumed = tuple[tuple[str, int], ...]  # workloads that are there (1) or not (0), in the order they were asked about


@dataclass(frozen=True, slots=True)
class Case:
    """What one case is worth at the most, and why.

    Parameters
    ----------
    total : of the proof (see `FleetProof.total`).
    value : that bound, given what the LP assumed of earlier tiers; `reached` is the LP's own value.
    undecided : the workload by which it is to be split next, None where it has no parts of any.
    there : of workloads that a tier counts so far, whether the LP's solution has them, or most of them.
    """

    proof: FleetProof
    total: int
    value: int
    reached: float
    undecided: str | None
    there: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Cases:
    """Cases of one tier that leave nothing out, by what each assumes.

    Parameters
    ----------
    branches : by which workload what was assumed so far is split.
    """

    leaves: dict[Assumed, Case] = field(default_factory=dict)
    branches: dict[Assumed, str] = field(default_factory=dict)

    @property
    def best(self) -> Assumed:
        """The case that is worth most."""
        return max(self.leaves, key=lambda assumed: self.leaves[assumed].value)

    def tree(self, fleet: FleetModel, earlier: Mapping[str, int], assumed: Assumed = ()) -> Iterator[Branch | Leaf]:
        """Yield the nodes of the tree in preorder; see `FleetProof.leaf`."""
        name = self.branches.get(assumed)
        if name is None:
            yield self.leaves[assumed].proof.leaf(fleet, earlier)
            return
        yield Branch(fleet.flags[name], 0)
        for there in (0, 1):
            yield from self.tree(fleet, earlier, (*assumed, (name, there)))


@dataclass(frozen=True, slots=True)
class CaseSearch:
    """A search for the cases of one tier.

    Parameters
    ----------
    given : what earlier tiers reach, greater being better.
    fixed : what all cases assume.
    known : cases of tiers that are given: who cannot be missing there cannot be missing here.
    found : as far as it has come.
    """

    lp: FleetLp
    tier: str
    given: Mapping[str, int]
    fixed: Mapping[str, int] = field(default_factory=dict)
    known: Sequence[Cases] = ()
    found: Cases = field(default_factory=Cases)

    def split(self, most: int, aim: int | None, until: float | None, stop: Stop) -> Cases:
        """Solve the LP, and again for halves of the best case, until that has no parts or is no better than `aim`.

        Parameters
        ----------
        most : how often.
        until : when to stop, on the monotonic clock.
        """
        begin = self._forced()
        self.found.leaves[begin] = self._solved(begin, until)
        while (case := self.found.leaves[self.found.best]).undecided is not None and len(self.found.branches) < most:
            late = bool(stop) or (until is not None and time.monotonic() >= until)
            if late or (aim is not None and case.value <= aim):
                break
            self._halve(self.found.best, case.undecided, until)
        return self.found

    def _forced(self) -> Assumed:
        """Return who is there, and who is not, as earlier tiers will not have it otherwise."""
        assumed: Assumed = ()
        for known, _ in self._earlier():
            left = [each for each in known if each not in assumed]
            if len(left) != 1 or left[0][0] in dict(assumed):
                continue
            ((workload, there),) = left
            without = (*assumed, (workload, there))
            if (case := self._hopeless(without)) is not None:
                self.found.leaves[without] = case
                self.found.branches[assumed] = workload
                assumed = (*assumed, (workload, 1 - there))
        return assumed

    def _earlier(self) -> Iterator[tuple[Assumed, Case]]:
        """Yield the cases of earlier tiers."""
        for cases in self.known:
            yield from cases.leaves.items()

    def _halve(self, assumed: Assumed, workload: str, until: float | None) -> None:
        del self.found.leaves[assumed]
        self.found.branches[assumed] = workload
        for there in (0, 1):
            half = (*assumed, (workload, there))
            self.found.leaves[half] = self._hopeless(half) or self._solved(half, until, again=True)

    def _hopeless(self, assumed: Assumed) -> Case | None:
        """Return a case in which an earlier tier cannot be what it is, with the proof of that; None if none is known.

        That proof, times whatever makes up for all that this tier may have, is one for this tier.
        """
        all_assumed = {**self.fixed, **dict(assumed)}
        for known, case in self._earlier():
            if not dict(known).items() <= all_assumed.items():
                continue
            short = self.given[case.proof.tier] - case.proof.bound(case.total, self.given)
            if short > 0:
                once = self._made_up(case.proof, 1, all_assumed)
                return self._made_up(case.proof, 2 + max(0, once.value + self._most()) // short, all_assumed)
        return None

    def _most(self) -> int:
        """Return how far from 0 this tier may be."""
        expression, upper = self.lp.fleet.tiers[self.tier], self.lp.fleet.model.upper
        return abs(expression.constant) + sum(abs(c) * upper[v] for v, c in expression.terms.items())

    def _made_up(self, earlier: FleetProof, times: int, assumed: Mapping[str, int]) -> Case:
        """Return the case of a proof for an earlier tier, so many times, as one for this tier."""
        proof = earlier.carried(self.tier, times)
        total = proof.total(self.lp.fleet, assumed)
        return Case(proof, total, proof.bound(total, self.given), -inf, None, assumed)

    def _solved(self, assumed: Assumed, until: float | None, *, again: bool = False) -> Case:
        lp, all_assumed = self.lp, {**self.fixed, **dict(assumed)}
        lp.assume(all_assumed)
        left = None if until is None else max(0.1, until - time.monotonic())
        reached = lp.optimise(self.tier, self.given, seconds=left, again=again)
        proof, shares = lp.proof(), self._shares()
        lp.assume({})
        total = proof.total(lp.fleet, all_assumed)
        parts = {
            name: worth * min(share, 1 - share)
            for name, (share, worth) in shares.items()
            if name not in all_assumed and _ALMOST < share < 1 - _ALMOST
        }
        undecided = max(parts, key=lambda name: (parts[name], name)) if parts else None
        there = {name: int(share > 0.5) for name, (share, _) in shares.items()}
        return Case(proof, total, proof.bound(total, self.given), reached, undecided, {**there, **all_assumed})

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
