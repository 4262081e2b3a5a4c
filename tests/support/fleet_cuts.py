"""Whether the relaxation of whole fleets cuts a proved optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.ways import Ways
from dovetail.engine.fleet.cases import COUNTS, SPLITS, Cases, CaseSearch, TierLp
from dovetail.engine.fleet.fleet_bounds import FleetBound, FleetBounds
from dovetail.engine.fleet.fleet_lp import FleetLp
from dovetail.engine.fleet.node_lp import NodeLp, suits
from dovetail.engine.solvers.answer import Effort, Verdict
from dovetail.engine.solvers.cpsat import CpSat
from dovetail.linear import Linear
from dovetail.model.state import today_state
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.proof.fleet import FleetModel
from dovetail.rules import context_of
from dovetail.spec import Spec

ENOUGH, FEW_COUNTS = 5_000, 5


def standing_cuts(spec: Spec, optima: Sequence[int]) -> Iterator[str]:
    """Yield where a bound beside what runs today is below what the first tiers reach; see `cuts`."""
    problem = compile_problem(context_of(spec))
    bounds = FleetBounds(problem, Stop())
    routes = Ways(Outlooks(Field(problem, today_state(problem))), frozenset())
    shapes = [shape.index for shape in problem.shapes]
    given: dict[str, int] = {}
    for tier, optimum in zip(problem.tiers, optima, strict=False):
        sign = 1 if tier.sense == "max" else -1
        if bounds.stands(tier):
            bounds.stand(tier, given, sign * (optimum - 1), shapes, None, routes)
            found = bounds.best(tier, given)
            if found is not None and sign * found[0] < optimum:
                yield f"beside today: {tier.name} {sign * found[0]} < {optimum}"
        given[tier.name] = sign * optimum


def cuts(spec: Spec, optima: Sequence[int]) -> Iterator[str]:
    """Yield where a bound is below what the first tiers reach, each with the earlier ones at their optimum.

    Parameters
    ----------
    optima : of the first tiers, greater being better.
    """
    problem = compile_problem(context_of(spec))
    fleet = FleetModel(problem)
    given = dict[str, int]()
    for tier, optimum in zip(problem.tiers, optima, strict=False):
        if tier.name in fleet.tiers:
            if not _within_rows(fleet, fleet.tiers[tier.name], optimum):
                yield f"rows: {tier.name} < {optimum}"
            given[tier.name] = optimum
    yield from _proved(FleetLp(FleetModel(problem), Stop()), optima, COUNTS, "kinds")
    priced = FleetModel(problem, priced=True)
    if suits(priced):
        by_nodes = NodeLp(priced, Stop())
        by_nodes.left = ENOUGH
        yield from _proved(by_nodes, optima, FEW_COUNTS, "contents of nodes")


def _proved(lp: TierLp, optima: Sequence[int], counts: int, what: str) -> Iterator[str]:
    given = dict[str, int]()
    known: list[Cases] = []
    for tier, optimum in zip(lp.fleet.original.tiers, optima, strict=False):
        if tier.name not in lp.fleet.tiers:
            continue
        cases = CaseSearch(lp, tier.name, given, known=known).split(SPLITS, None, None, Stop(), counts)
        known.append(cases)
        bound = FleetBound(lp.fleet, cases).value(given)
        if bound < optimum:
            yield f"multipliers by {what}: {tier.name} {bound} < {optimum}"
        given[tier.name] = optimum


def _within_rows(fleet: FleetModel, expression: Linear, optimum: int) -> bool:
    """Tell whether the rows allow a tier's optimum, and hold it there for the next one."""
    fleet.model.require(expression, lower=optimum)
    answer = CpSat(fleet.model).solve(Linear(), "max", Effort(2.0), None, Stop())
    return answer.verdict is not Verdict.INFEASIBLE
