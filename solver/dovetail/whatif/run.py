"""Both sides of a what-if, planned and compared (S7.1)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dovetail.build import assemble, declares_current
from dovetail.diff import comparable, diff
from dovetail.documents import DocumentSet
from dovetail.faults import Fault, FaultLog, Refused
from dovetail.plan import Plan, current_of
from dovetail.spec import Layout, Spec
from dovetail.whatif.expect import check
from dovetail.whatif.result import WhatIfResult
from dovetail.whatif.scenario import Scenario, applied, examined, read_scenario, redeclared

Solve = Callable[[Spec], Plan]
"""What plans a side: the engine with its limits, or a stand-in."""


@dataclass(frozen=True, slots=True)
class Question:
    """A scenario that fits its project, before anything is planned.

    Parameters
    ----------
    base : what the documents mean.
    changed : what they mean with the scenario.
    follows : whether the base plan is the current state of the scenario's side; not where documents tell it (S6.5).
    cut : GPUs that the scenario cuts anew, whatever the base plan does.
    """

    scenario: Scenario
    base: Spec
    changed: Spec
    follows: bool
    cut: Mapping[str, Layout] = field(default_factory=dict)
    warnings: tuple[Fault, ...] = ()


def prepare(documents: DocumentSet, scenario: Scenario, *, as_of: dt.date) -> Question:
    """Return both sides of a scenario.

    Parameters
    ----------
    as_of : the date that waivers are judged at (S4.3).

    Raises
    ------
    Refused
        With all faults of the documents, or else with all of the scenario.
    """
    base = assemble(documents, as_of=as_of)
    log = FaultLog()
    patched = redeclared(documents, scenario.steps, log)
    log.raise_if_errors()
    changed = base if patched is documents else assemble(patched, as_of=as_of)
    today = changed.spec.current
    spec = applied(replace(changed.spec, current=replace(today, gpus={})), scenario, patched, log)
    cut = spec.current.gpus
    spec = replace(spec, current=replace(spec.current, gpus={**today.gpus, **cut}))
    # After a patch that does not fit, an expectation may only seem to name what is not there.
    log.raise_if_errors()
    examined(scenario, spec, log)
    log.raise_if_errors()
    warnings = tuple(dict.fromkeys((*documents.warnings, *base.warnings, *changed.warnings)))
    return Question(scenario, base.spec, spec, not declares_current(patched), cut, warnings)


def check_scenarios(documents: DocumentSet, *, as_of: dt.date) -> None:
    """Hold every scenario of a project to the project, without planning anything.

    Raises
    ------
    Refused
        With all faults of all scenarios.
    """
    log = FaultLog()
    for document in documents.of_kind("Scenario"):
        try:
            prepare(documents, read_scenario(document), as_of=as_of)
        except Refused as refused:
            log.extend(refused.faults)
    log.raise_if_errors()


def run(question: Question, solve: Solve, *, base: Plan | None = None) -> WhatIfResult:
    """Plan the base, then the scenario from there, and judge what is expected.

    Parameters
    ----------
    base : a plan that stands for the base's side, which is then not planned; it must verify for `question.base`.
    """
    before = solve(question.base) if base is None else base
    spec = question.changed
    if question.follows:
        current = current_of(before)
        spec = replace(spec, current=replace(current, gpus={**current.gpus, **question.cut}))
    after = solve(spec)
    told = comparable(before, after)
    return WhatIfResult(
        scenario=question.scenario,
        base=before,
        result=after,
        spec=spec,
        diff=diff(before, after, spec, stated=not question.follows) if told else None,
        checks=tuple(check(expectation, after) for expectation in question.scenario.expectations),
    )
