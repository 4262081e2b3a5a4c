"""Runs what was prepared: judges places that are given, has the rest planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dovetail.objectives import tiers_of
from dovetail.placement import Places
from dovetail.plan import Outcome, Plan, TierResult, combined, documents_digest, finish, outside_digest
from dovetail.rules import context_of
from dovetail.spec import Spec
from dovetail.testing.model import CaseResult, Name, Trial
from dovetail.testing.reading import Case
from dovetail.whatif import Question, Solve, check
from dovetail.whatif import run as compare


def judged(spec: Spec, places: Places) -> Plan:
    """Return given places as a plan: admission, policies, figures and tiers as they are, without any bound."""
    context = context_of(spec)
    view = context.view(places)
    tiers = [TierResult(t.name, t.measure(view, context), None, t.unit, t.sense, "none") for t in tiers_of(context)]
    return finish(context, places, tiers, Outcome("feasible"))


@dataclass(frozen=True)
class CaseTrial:
    """A case of a PolicyTest in its world; `places` where they are given."""

    case: Case
    spec: Spec
    places: Places | None = None

    @property
    def name(self) -> Name:
        """Which case it is."""
        return self.case.name

    @property
    def planned(self) -> bool:
        """Whether it takes a search."""
        return self.places is None

    def run(self, solve: Solve) -> CaseResult:
        """Judge the places that are given, else those of a plan."""
        plan = solve(self.spec) if self.places is None else judged(self.spec, self.places)
        checks = tuple(check(expectation, plan) for expectation in self.case.scenario.expectations)
        return CaseResult(self.name, plan.outcome.status if self.planned else None, checks, plan.conflict)


@dataclass(frozen=True)
class ScenarioTrial:
    """A Scenario that expects something; `base` is the plan it starts from, None where that is planned."""

    name: Name
    question: Question
    base: Plan | None = None
    planned: bool = True

    def run(self, solve: Solve) -> CaseResult:
        """Plan both sides and judge the scenario's."""
        result = compare(self.question, solve, base=self.base)
        return CaseResult(self.name, result.result.outcome.status, result.checks, result.result.conflict)


def run(trials: Iterable[Trial], solve: Solve) -> Iterator[CaseResult]:
    """Yield what comes of each; a Spec that several of them ask about is planned once."""
    plans: dict[str, Plan] = {}

    def once(spec: Spec) -> Plan:
        key = combined(documents_digest(spec), outside_digest(spec))
        if key not in plans:
            plans[key] = solve(spec)
        return plans[key]

    for trial in trials:
        yield trial.run(once)
