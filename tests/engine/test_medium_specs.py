"""The way that large projects go, on medium ones whose optimum the exact engine proves.

Plans verify, no tier is better than its optimum, no bound cuts it, and what is told as the gap is one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import pytest
from tests.oracle.test_new_rules import RULES, THURSDAY
from tests.support.fleet_cuts import cuts
from tests.support.medium_specs import medium

from dovetail.engine import improving, ladder, solve
from dovetail.engine.budget import Budget
from dovetail.engine.exact import climb
from dovetail.engine.parts.lns import Neighbourhoods
from dovetail.engine.solvers.answer import Effort, Verdict
from dovetail.engine.solvers.cpsat import CpSat
from dovetail.model.part import PartModel
from dovetail.model.state import State
from dovetail.objectives import Tier
from dovetail.plan import Plan
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import TABLE, context_of
from dovetail.spec import Spec
from dovetail.verify import lines, verify

SLICE = (0, 1, 3, 9, 13, 14, 18, 22)
"""Seeds of every rule that the exact engine closes within a second; one has no plan."""

RULED = (5016, 5026, 5027, 5042)
"""Seeds of rules with a search of their own that it closes soon."""

LONGER = (4, 12, 20, 1007, 1077)
"""Seeds that it closes as well, and that keep the search for parts busy."""

CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "1000"))
CAMPAIGN_CHUNKS = 10
CHUNK = 20
_EXACT_WORK = 8.0
_REFUTATION_WORK = 1.0
_SIZES = (3, 6)


@dataclass(frozen=True)
class Case:
    """A Spec and what the exact engine proves of it.

    Parameters
    ----------
    feasible : False where there is no plan, None where that is unknown.
    optima : of the first tiers, as many as are proved; where less is better they are negated.
    """

    seed: int
    spec: Spec
    tiers: tuple[Tier, ...]
    feasible: bool | None
    optima: tuple[int, ...]


def ruled(seed: int) -> Spec:
    """Return the medium Spec of a seed with policies of a rule that has a search of its own."""
    base, kind = medium(seed), list(RULES)[seed % len(RULES)]
    policies = sorted(
        (*base.policies[: seed % 3], *RULES[kind](Random(f"further {seed}"))), key=lambda each: each.name
    )
    waivers = tuple(w for w in base.waivers if w.policy in {policy.name for policy in policies})
    as_of = THURSDAY if seed % 8 else base.as_of or THURSDAY
    return replace(base, policies=tuple(policies), waivers=waivers, as_of=as_of)


def proved(seed: int, made: Callable[[int], Spec] = medium) -> Case:
    """Solve a medium Spec with the exact engine alone."""
    spec = made(seed)
    problem = compile_problem(context_of(spec))
    part = PartModel(problem, range(len(problem.nodes)), State())
    found = climb(part, problem.tiers, None, None, Budget(_EXACT_WORK), Stop())
    optima = []
    for answer in found.tiers:
        if not answer.proved:
            break
        optima.append(answer.value if answer.tier.sense == "max" else -answer.value)
    feasible = {Verdict.INFEASIBLE: False, Verdict.UNKNOWN: None}.get(found.verdict, True)
    return Case(seed, spec, problem.tiers, feasible, tuple(optima))


@cache
def shared() -> tuple[Case, ...]:
    """Return the slice that every run looks at."""
    return tuple(proved(seed) for seed in SLICE)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the search from solving the whole at once, and its parts from growing to the whole."""
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)


def of_size(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    def parts(problem: Problem, *_: int) -> Neighbourhoods:
        found = Neighbourhoods(problem, size=size)
        found.learn = lambda closed: None  # type: ignore[method-assign]
        return found

    monkeypatch.setattr(improving, "Neighbourhoods", parts)


def faults_of(case: Case, plan: Plan) -> Iterator[str]:
    """Yield what is wrong with a plan of a case."""
    verification = verify(case.spec, plan)
    if not verification.ok:
        yield "; ".join(lines(verification))
    status = plan.outcome.status
    if status == "infeasible" and case.feasible:
        yield "called infeasible, and there is a plan"
    if status in ("optimal", "feasible"):
        if case.feasible is False:
            yield "there is a plan, and the exact engine calls it infeasible"
        yield from _beyond(case, plan, status)


def _beyond(case: Case, plan: Plan, status: str) -> Iterator[str]:
    """Yield where values or bounds and the proved optima contradict each other."""
    told = _ascending(case.tiers, [tier.value for tier in plan.tiers])[: len(case.optima)]
    if told > case.optima:
        yield f"better than the optimum: {told}, proved {case.optima}"
    if status == "optimal" and told != case.optima:
        yield f"called optimal: {told}, proved {case.optima}"
    for position, optimum in enumerate(case.optima):
        if told[:position] != case.optima[:position]:
            yield from _refuted(case, plan, position)
            return
        tier = plan.tiers[position]
        bound = None if tier.bound is None else _ascending(case.tiers[position:], [tier.bound])[0]
        if bound is not None and bound < optimum:
            yield f"the bound {tier.bound} of {tier.name} ({tier.proof}) cuts the optimum {abs(optimum)}"
        if tier.gap is not None and bound is not None and bound < told[position]:
            yield f"the bound {tier.bound} of {tier.name} is beaten by its value {tier.value}"


def _refuted(case: Case, plan: Plan, first: int) -> Iterator[str]:
    """Yield bounds of later tiers that the exact model beats, earlier tiers being as good as in the plan (S5.2)."""
    problem = compile_problem(context_of(case.spec))
    part = PartModel(problem, range(len(problem.nodes)), State())
    expressions = [tier.encode(part) for tier in case.tiers]
    for position, (tier, told, expression) in enumerate(zip(case.tiers, plan.tiers, expressions, strict=True)):
        if position >= first and told.bound is not None and told.proof != "trivial":
            answer = CpSat(part.model).solve(expression, tier.sense, Effort(_REFUTATION_WORK), None, Stop())
            found = None if answer.values is None else expression.value(answer.values)
            if found is not None and (found > told.bound if tier.sense == "max" else found < told.bound):
                yield f"the bound {told.bound} of {tier.name} ({told.proof}) is beaten by {found}"
        lower, upper = (told.value, None) if tier.sense == "max" else (None, told.value)
        part.model.require(expression, lower, upper)


def _ascending(tiers: Sequence[Tier], values: Sequence[int]) -> tuple[int, ...]:
    return tuple(value if tier.sense == "max" else -value for tier, value in zip(tiers, values, strict=False))


def faults(cases: Sequence[Case], work: float) -> list[str]:
    return [
        f"seed {case.seed}: {fault}"
        for case in cases
        for fault in faults_of(case, solve(case.spec, Limits(work=work)))
    ]


def test_the_slice_has_every_rule_and_proved_optima() -> None:
    assert {policy.rule.kind for case in shared() for policy in case.spec.policies} == set(TABLE) - set(RULES)
    assert [case.seed for case in shared() if case.feasible and len(case.optima) < len(case.tiers)] == []
    assert [case.feasible for case in shared()].count(False) == 1
    assert sum(bool(case.spec.current.replicas) for case in shared()) >= 3


def test_the_way_of_large_projects_never_crosses_a_proved_optimum(
    monkeypatch: pytest.MonkeyPatch, in_parts: None
) -> None:
    for turn, size in enumerate(_SIZES):
        of_size(monkeypatch, size)
        assert faults(shared()[turn :: 2 * len(_SIZES)], 0.3) == []


def test_sets_of_nodes_mind_what_their_lp_does_not_know(monkeypatch: pytest.MonkeyPatch, in_parts: None) -> None:
    """A gang may have come to a node meanwhile, and lots have no rows for gangs."""
    of_size(monkeypatch, _SIZES[0])
    assert faults([proved(1065, ruled)], 2.0) == []


def test_no_bound_on_the_fleet_cuts_a_proved_optimum() -> None:
    closed = [case for case in (*shared(), *(proved(seed, ruled) for seed in RULED)) if case.feasible]
    assert [f"seed {case.seed}: {cut}" for case in closed for cut in cuts(case.spec, case.optima)] == []


def test_the_whole_ladder_finds_what_the_exact_engine_proves() -> None:
    assert faults(shared(), 20.0) == []


@pytest.mark.campaign
def test_both_ways_on_those_that_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [proved(seed) for seed in LONGER]
    assert faults(cases, 20.0) == []
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    for turn, size in enumerate(_SIZES):
        of_size(monkeypatch, size)
        assert faults(cases[turn :: len(_SIZES)], 0.3) == []


@pytest.mark.campaign
def test_places_held_within_one_node_cut_no_bound_of_a_medium_spec() -> None:
    case = proved(5021, ruled)
    assert list(cuts(case.spec, case.optima)) == []


@pytest.mark.campaign
@pytest.mark.parametrize("made", [medium, ruled])
@pytest.mark.parametrize("chunk", range(CAMPAIGN_CHUNKS))
def test_hundreds_of_medium_specs(
    monkeypatch: pytest.MonkeyPatch, in_parts: None, chunk: int, made: Callable[[int], Spec]
) -> None:
    first = CAMPAIGN_FIRST + chunk * CHUNK
    print(f"seeds {first} to {first + CHUNK - 1}")
    cases = [proved(seed, made) for seed in range(first, first + CHUNK)]
    of_size(monkeypatch, _SIZES[chunk % len(_SIZES)])
    assert faults(cases, 2.0) == []
    assert [f"seed {c.seed}: {cut}" for c in cases if c.feasible for cut in cuts(c.spec, c.optima)] == []
