"""Bounds on the tiers of any Problem from the LP over kinds of nodes, each with its proof.

An LP gives multipliers, and multipliers prove a bound for any values of the earlier tiers. So what was proved once is
brought up to date as values change without another LP, and LPs are solved anew where a search ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile

from dovetail.engine.fleet.cases import SPLITS, Cases, CaseSearch, TierLp, decided, within
from dovetail.engine.fleet.fleet_lp import FleetLp
from dovetail.engine.fleet.homes import settle
from dovetail.engine.fleet.in_use import nodes_in_use
from dovetail.engine.fleet.losses import Losses
from dovetail.engine.fleet.node_lp import FEW, NodeLp, suits
from dovetail.engine.fleet.standing_bounds import Routes, StandingBound, StandingPrices
from dovetail.objectives import Tier, sign_of
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.proof.certificate import (
    FLEET,
    FLEET_COST,
    FLEET_IDLE,
    FLEET_IDLE_SIDED,
    FLEET_PRICED,
    Branch,
    Leaf,
    Proof,
)
from dovetail.proof.fleet import FleetModel
from dovetail.proof.fleet_models import in_sense
from dovetail.proof.since_today import told_by_counts
from dovetail.proof.standing import StandingModel

_SLACK = 1e-9  # of an earlier tier's value, so that rounding leaves the next one a solution
_LARGE = 8_000  # columns


@dataclass
class FleetBound:
    """Cases that leave nothing out, and the fleet they are about."""

    fleet: FleetModel
    cases: Cases

    @property
    def kind(self) -> str:
        """Which rows it is about, as certificates name them."""
        if self.fleet.idle_use is not None:
            return FLEET_IDLE_SIDED if self.fleet.sided else FLEET_IDLE
        return FLEET if not self.fleet.priced else FLEET_PRICED if self.fleet.sided else FLEET_COST

    def value(self, given: Mapping[str, int]) -> int:
        """Return the bound given earlier tiers' values, both so that greater is better."""
        return max(case.proof.bound(case.total, given) for case in self.cases.leaves.values())

    def tree(self, given: Mapping[str, int]) -> Iterable[Branch | Leaf]:
        """Return the tree of its proof."""
        return self.cases.tree(self.fleet, given)

    @cached_property
    def losses(self) -> Losses:
        """What nodes lose by the proof of the case that is worth most."""
        return Losses(self.fleet, self.cases.leaves[self.cases.best].proof)


@dataclass
class FleetBounds:
    """The bounds of one Problem, and the LPs they come from, made when first asked for.

    `asked` are the tiers that an LP was solved for.
    """

    problem: Problem
    stop: Stop
    asked: set[str] = field(default_factory=set)
    _found: dict[str, list[FleetBound | StandingBound]] = field(default_factory=dict)
    _closest: dict[str, Mapping[str, int]] = field(default_factory=dict)

    @cached_property
    def plain(self) -> FleetLp:
        """The LP that does not tell nodes apart by price."""
        return FleetLp(FleetModel(self.problem), self.stop)

    @cached_property
    def priced_model(self) -> FleetModel:
        """The fleet with nodes told apart by price."""
        return FleetModel(self.problem, priced=True)

    @cached_property
    def priced(self) -> FleetLp:
        """The LP that does."""
        return FleetLp(self.priced_model, self.stop)

    @cached_property
    def by_nodes(self) -> NodeLp:
        """The LP over contents of nodes, for few of these."""
        return NodeLp(self.priced_model, self.stop)

    @cached_property
    def cost(self) -> FleetLp:
        """The LP for tiers that count nodes in use."""
        return FleetLp(FleetModel(self.problem, priced=True, sided=False), self.stop)

    @cached_property
    def idle(self) -> FleetLp:
        """The LP for the tier that asks what idle GPU is good for."""
        return FleetLp(FleetModel(self.problem, priced=True, sided=False, tells_idle=True), self.stop)

    @cached_property
    def idle_sided_model(self) -> FleetModel:
        """The fleet with nodes told apart by price, and what idle GPU is good for."""
        return FleetModel(self.problem, priced=True, tells_idle=True)

    @cached_property
    def idle_sided(self) -> FleetLp:
        """The LP for that tier with sides told apart."""
        return FleetLp(self.idle_sided_model, self.stop)

    @cached_property
    def standing(self) -> StandingModel:
        """The fleet beside what runs today."""
        return StandingModel(self.problem)

    @property
    def rows(self) -> FleetModel:
        """The fleet with nodes told apart by price where a tier counts them."""
        return self.priced_model if any(tier.counts_nodes for tier in self.problem.tiers) else self.plain.fleet

    @property
    def large(self) -> bool:
        """Whether the LPs take a while."""
        return self.plain.columns > _LARGE

    def knows(self, tier: Tier) -> bool:
        """Tell whether a tier can be bounded at all: it counts from no places of today.

        What asks for too many domains is left out too, and what is idle beside what is held free.
        """
        untold = tier.asks_domains and tier.name in self.plain.fleet.untold_tiers
        held = tier.asks_idle and bool(self.problem.spec.placeholders)
        return told_by_counts(tier, self.problem.spec) and not (untold or held)

    def knows_nodes(self, tier: Tier) -> bool:
        """Tell whether a tier can be bounded by what single nodes may hold: these are few."""
        few = len(self.problem.nodes) <= FEW and not tier.asks_idle
        return few and self.knows(tier) and suits(self.priced_model)

    def stands(self, tier: Tier) -> bool:
        """Tell whether a tier can be bounded by what it takes to keep what runs today where it is."""
        return bool(self.problem.context.today.protected) and tier.name in self.standing.tiers

    def stand(
        self,
        tier: Tier,
        given: Mapping[str, int],
        reached: int,
        new: Iterable[int],
        seconds: float | None = None,
        routes: Routes | None = None,
    ) -> None:
        """Look for multipliers for a tier beside what runs today; see `prove` for the rest.

        Parameters
        ----------
        reached : what a plan has, in the tier's own sense.
        new : the shapes that may need others to leave.
        routes : who must leave for whom, as far as that is known, by shapes of the Problem.
        """
        until = None if seconds is None else time.monotonic() + seconds
        told = _Twins(self.problem, self.standing.problem, new, routes)
        aim = in_sense(self.standing, {tier.name: reached})[tier.name]
        prices = StandingPrices(self.standing, tier.name, in_sense(self.standing, given))
        bound = prices.prove(aim, list(told.of), until, self.stop, None if routes is None else told)
        found = self._found.setdefault(tier.name, [])
        if all(bound.value(prices.given) < known.value(prices.given) for known in found):
            found.append(bound)

    def prove(
        self,
        tier: Tier,
        given: Mapping[str, int],
        *,
        reached: int | None = None,
        priced: bool = False,
        seconds: float | None = None,
        counts: int = 0,
        contents: float = 0.0,
    ) -> None:
        """Look for the best multipliers for a tier, given what earlier tiers reach (in their own sense).

        Parameters
        ----------
        reached : what a plan has of a tier for which it is worth while to tell apart who is there and who is not;
            without it one LP has to do.
        priced : whether to tell nodes of different prices apart, and sides as well; often closer, as prices differ
            where places do.
        seconds : a ceiling.
        counts : how often to tell apart by nodes in use, or by how many replicas of shapes are admitted, at the most.
        contents : how many cases of what single nodes hold to look at; 0 for the LP over kinds (see `knows_nodes`).
        """
        until = None if seconds is None else time.monotonic() + seconds
        cases = self.cases(
            tier, given, reached=reached, priced=priced, seconds=seconds, counts=counts, contents=contents
        )
        self.learn(tier, cases, priced=priced)
        if priced and (until is None or time.monotonic() < until):
            self._closest[tier.name] = dict(given)

    def cases(
        self,
        tier: Tier,
        given: Mapping[str, int],
        *,
        reached: int | None,
        priced: bool,
        seconds: float | None,
        counts: int = 0,
        contents: float = 0.0,
    ) -> Cases:
        """Return what `prove` finds, for whoever has the same Problem to `learn`."""
        lp: TierLp = self.asked_of(tier, priced=priced)
        if contents:
            self.by_nodes.left = contents
            lp = self.by_nodes
        earlier = _as_known(lp.fleet, given)
        until = None if seconds is None else time.monotonic() + seconds
        known = [cases for name in earlier for cases in self._known(name, lp)]
        plain = [cases.leaves[()].proof for cases in self._known(tier.name, lp) if not cases.branches]
        search = CaseSearch(lp, tier.name, earlier, known=known, whole=plain[-1] if plain else None)
        most = 0 if reached is None else SPLITS
        aim = None if reached is None else in_sense(lp.fleet, {tier.name: reached})[tier.name]
        return search.split(most, aim, until, self.stop, counts)

    def _known(self, tier: str, lp: TierLp) -> Iterator[Cases]:
        """Yield the cases of a tier that were found over an LP's rows."""
        for one in self._found.get(tier, ()):
            if isinstance(one, FleetBound) and one.fleet is lp.fleet:
                yield one.cases

    def learn(self, tier: Tier, cases: Cases, *, priced: bool) -> None:
        """Take cases of a tier as a bound."""
        if priced:
            fleet = self.idle_sided_model if tier.asks_idle else self.priced_model
        else:
            fleet = self.asked_of(tier, priced=False).fleet
        self._found.setdefault(tier.name, []).append(FleetBound(fleet, cases))
        self.asked.add(tier.name)

    def asked_of(self, tier: Tier, *, priced: bool) -> FleetLp:
        """Return the LP that bounds a tier."""
        if tier.asks_idle:
            return self.idle_sided if priced else self.idle
        return self.priced if priced else self.cost if tier.counts_nodes else self.plain

    def has_proved(self, tier: Tier, given: Mapping[str, int]) -> bool:
        """Tell whether no LP says more of a tier that counts nodes, given these very values of earlier ones."""
        return tier.counts_nodes and self._closest.get(tier.name) == given

    def target(self, values: Mapping[str, int], seconds: float | None = None) -> FleetLp:
        """Return an LP solved for the tiers in order, whose last solution is a target for a plan.

        It ends with the last tier that says how much is admitted; where plans have all of that, with the cost.

        Parameters
        ----------
        values : what a plan at hand reaches; tiers that have all there is need no LP of their own.
        """
        until = None if seconds is None else time.monotonic() + seconds
        tiers = [tier for tier in self.problem.tiers if self.knows(tier)]
        limits = {tier.name: tier.limit(self.problem.context) for tier in tiers}
        told = _up_to_last(tiers, lambda tier: tier.sense == "max")
        full = all(values[t.name] == limits[t.name] for t in told if not t.counts_nodes)
        if full:
            told = _up_to_last(tiers, lambda tier: tier.sense == "max" or tier.counts_nodes)
        lp = self.priced if full else self.plain
        wanted = {t.name for t in told if full or not t.counts_nodes} & lp.fleet.tiers.keys()
        asked = [t.name for t in told if t.name in wanted and values[t.name] != limits[t.name]]
        given = _as_known(lp.fleet, {t.name: limits[t.name] for t in tiers})
        there: dict[str, int] = {}
        self._climb(lp, asked, given, there, until)
        if asked and settle(lp, asked[-1], _before(given, asked[-1]), there, given[asked[-1]], self.stop):
            self._climb(lp, asked, given, there, until)
        lp.shut(())
        return lp

    def _climb(
        self, lp: FleetLp, asked: Sequence[str], given: dict[str, int], there: dict[str, int], until: float | None
    ) -> None:
        """Optimise some tiers in turn, and put what they reach among what is `given`; see `decided`."""
        for name in asked:
            reached = decided(lp, name, _before(given, name), there, until, self.stop)
            given[name] = math.floor(reached - _SLACK * abs(reached))

    def nodes_in_use(self, tier: Tier, given: Mapping[str, int], until: float | None) -> Mapping[int, int] | None:
        """Return how many nodes of each kind of `priced_model` to use for about the least cost (`in_use`).

        Parameters
        ----------
        tier : the cost; `given` what earlier tiers are to reach, in their own sense.
        """
        lp = self.priced
        earlier = _as_known(lp.fleet, given)
        _, known = self.best(tier, given) or (0, None)
        limits = within(known.cases.best) if isinstance(known, FleetBound) and known.fleet is lp.fleet else {}
        return nodes_in_use(lp, tier.name, earlier, limits, until, self.stop)

    def losses(self, tier: Tier, given: Mapping[str, int]) -> Losses | None:
        """Return what nodes lose by the best bound on a tier that is proved so far, if that counts them."""
        best = self.best(tier, given)
        return best[1].losses if best is not None and isinstance(best[1], FleetBound) else None

    def best(self, tier: Tier, given: Mapping[str, int]) -> tuple[int, FleetBound | StandingBound] | None:
        """Return the best bound that is proved so far (in the tier's own sense), None where nothing is."""
        found = self._found.get(tier.name, [])
        if not found:
            return None
        earlier = in_sense(found[0].fleet, given)
        bound = min(found, key=lambda one: one.value(earlier))
        return sign_of(tier.sense) * bound.value(earlier), bound


class _Twins:
    """Who must leave for whom, in the terms of a Problem without what runs today; `of` are some shapes' twins there.

    Parameters
    ----------
    shapes : those, of the Problem as it is.
    """

    def __init__(self, problem: Problem, bare: Problem, shapes: Iterable[int], routes: Routes | None) -> None:
        self._problem, self._bare, self._routes = problem, bare, routes
        self.of: dict[int, int] = {}
        for shape in shapes:
            if (twin := self._twin(shape)) is not None:
                self.of.setdefault(twin, shape)

    def _twin(self, shape: int) -> int | None:
        member = self._problem.shapes[shape].members[0]
        return self._bare.shapes_of_role.get((member.workload.id, member.role.name))

    def costs(self, shape: int, most: int) -> int:
        """Return the fewest moves that a place costs (`Routes`)."""
        return 0 if self._routes is None else self._routes.costs(self.of[shape], most)

    def worth(self, shape: int, moves: int) -> Mapping[int, int]:
        """Return what places must be worth for one for a shape to be worth so many moves (`Routes`)."""
        found = {} if self._routes is None else self._routes.worth(self.of[shape], moves)
        told = ((self._twin(s), worth) for s, worth in found.items())
        return {twin: worth for twin, worth in told if twin is not None}


def _up_to_last(tiers: Sequence[Tier], which: Callable[[Tier], bool]) -> Sequence[Tier]:
    """Return the tiers up to the last one of some."""
    return tiers[: max((place + 1 for place, tier in enumerate(tiers) if which(tier)), default=0)]


def _as_known(fleet: FleetModel, values: Mapping[str, int]) -> dict[str, int]:
    """Return the values of tiers that a relaxation knows, greater being better."""
    return in_sense(fleet, {name: value for name, value in values.items() if name in fleet.tiers})


def _before(values: Mapping[str, int], tier: str) -> dict[str, int]:
    """Return what there is of the tiers before one."""
    return dict(takewhile(lambda item: item[0] != tier, values.items()))


def proof_of(tier: str, value: int, given: Mapping[str, int], bound: FleetBound | StandingBound) -> Proof:
    """Return the part of a certificate that shows a bound on a tier."""
    return Proof(tier, value, tuple(bound.tree(given)), bound.kind, dict(given))
