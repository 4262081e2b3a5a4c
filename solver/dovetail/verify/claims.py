"""Checks of what a plan says about itself: outcome, tiers, summary, admission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from dovetail.objectives import Tier, is_limit, limit_given
from dovetail.plan import AdmissionResult, Plan, SecondOpinion, TierResult, contradiction, opinion_of, told_twice
from dovetail.plan.promises import promises_of
from dovetail.plan.reasons import FORBIDDEN, MOVES, OUTRANKED, UNPROVED, admitted_of, open_bands
from dovetail.plan.relaxed import UNNAMED
from dovetail.plan.summary import OF_TIERS, OF_TODAY, figure_of, summary_of
from dovetail.verify.case import Case
from dovetail.verify.conflict import conflict, no_plan
from dovetail.verify.model import Finding, Found, Open
from dovetail.verify.refuted import refuted
from dovetail.verify.unknown import optional_tiers

_SEARCHED: Final = ("solver", "two-engines")  # what a bound rests on that engines found, earlier tiers held
_WHOLE: Final = ("trivial", "none")  # what leaves out no rule: arithmetic that knows none, and no bound at all


def outcome(case: Case) -> Iterator[Found]:
    """Only an outcome that has a plan comes with places and tiers; only an infeasible one names a conflict (S6.4)."""
    plan = case.plan
    parts: Mapping[str, Any] = {"places": plan.placements, "tiers": plan.tiers, "summary": plan.summary}
    if not case.has_plan:
        for name, part in parts.items():
            if part:
                yield Finding(plan.outcome.status, f"comes with {name}")
    if plan.conflict and plan.outcome.status != "infeasible":
        yield Finding(plan.outcome.status, "comes with a conflict")
    yield from _proof_of_none(plan)
    yield from conflict(case)
    yield from no_plan(case)


def _proof_of_none(plan: Plan) -> Iterator[Finding]:
    """That there is no plan rests on a certificate or on two engines; nothing else is said to rest on that (S6.4)."""
    outcome, opinion = plan.outcome, plan.second_opinion
    if outcome.status != "infeasible":
        if outcome.proof is not None:
            yield Finding(outcome.status, "comes with a proof that there is no plan")
    elif outcome.proof is None:
        yield Finding(outcome.status, "comes without a proof: neither a certificate nor two engines are told")
    elif outcome.proof == "two-engines" and not (opinion is not None and opinion.agrees and opinion.conclusive):
        yield Finding(outcome.status, "is told as proved by two engines, and no second opinion says so")


def optimal(case: Case) -> Iterator[Finding]:
    """A plan is called optimal where every tier is proved, and only there; no finished search was stopped (S5.2)."""
    outcome, unproved = case.plan.outcome, [tier for tier in case.plan.tiers if not tier.proved]
    if outcome.status == "optimal":
        for tier in unproved:
            yield Finding(tier.name, f"has value {tier.value} and bound {tier.bound} in a plan called optimal")
    elif outcome.status == "feasible" and not unproved:
        yield Finding(outcome.status, "is what a plan is called of which every tier is proved")
    if outcome.status in ("optimal", "infeasible") and outcome.stopped_by is not None:
        yield Finding(outcome.status, f"is told as stopped by {outcome.stopped_by}, and nothing was left to search")


def tier_names(case: Case) -> Iterator[Found]:
    """The tiers are those of the objective, in its order, with their senses and units (S5.1)."""
    if case.has_plan and not case.known:
        yield from (Open(tier.name) for tier in optional_tiers(case.spec))
    told = [(tier.name, tier.sense, tier.unit) for tier in case.plan.tiers]
    right = [(tier.name, tier.sense, tier.unit) for tier in case.tiers] if case.has_plan else []
    if told != right:
        for entry in [*(t for t in told if t not in right), *(t for t in right if t not in told)]:
            yield Finding(
                entry[0], "is no tier of these documents" if entry in told else "is missing or told otherwise"
            )
        if sorted(told) == sorted(right):
            yield Finding("tiers", f"their order should be {', '.join(name for name, _, _ in right)}")


def tier_values(case: Case) -> Iterator[Found]:
    """Every tier's value is what the placements give."""
    for tier in case.plan.tiers:
        if tier.name in case.unknown_values:
            yield Open(tier.name)
        value = case.values.get(tier.name)
        if value is not None and value != tier.value:
            yield Finding(tier.name, f"claims {tier.value}, the placements give {value}")


def tier_bounds(case: Case) -> Iterator[Found]:
    """No bound is worse than the value that was reached, or is plainly in reach with more admitted or less moved."""
    for tier in case.plan.tiers:
        if tier.bound is not None and (tier.bound < tier.value if tier.sense == "max" else tier.bound > tier.value):
            yield Finding(tier.name, f"has value {tier.value}, better than its bound {tier.bound}")
    yield from refuted(case)


def tier_proofs(case: Case) -> Iterator[Found]:
    """A bound says what it rests on: a trivial one is the arithmetic on the documents, two engines have its value.

    What it ignores are policies that bind, or what no document names.
    """
    tiers = {tier.name: tier for tier in case.tiers}
    for told in case.plan.tiers:
        yield from _ignored(case, told)
        if (told.bound is None) != (told.proof == "none"):
            yield Finding(told.name, f"has bound {told.bound} and proof {told.proof}")
        elif told.proof == "trivial" and told.name in tiers:
            yield from _trivial(case, tiers[told.name], told)
        elif told.proof == "two-engines" and not told_twice(told, case.plan.second_opinion):
            yield Finding(told.name, "is told as proved by two engines, and no second opinion has its value")


def _ignored(case: Case, told: TierResult) -> Iterator[Finding]:
    """Yield what a bound is told to ignore that it cannot."""
    binding = {policy.name for policy in case.spec.policies if policy.enforcement.kind != "audit"}
    for name in told.relaxed:
        if told.proof in _WHOLE:
            yield Finding(told.name, f"is told to ignore {name}, and its proof, {told.proof}, ignores nothing")
        elif name not in binding and name not in UNNAMED:
            yield Finding(told.name, f"is told to ignore {name}, which is no policy that binds")


def _trivial(case: Case, tier: Tier, told: TierResult) -> Iterator[Found]:
    if not case.known and tier.limit_needs_current:
        yield Open(tier.name)
        return
    if not is_limit(told.bound, tier, case.context, told.given):
        limit = limit_given(tier, case.context, told.given)
        yield Finding(tier.name, f"has the trivial bound {told.bound}, arithmetic gives {limit}")


def given(case: Case) -> Iterator[Finding]:
    """What a bound assumes of other tiers is the value of an earlier tier; that of a search assumes all (S5.2)."""
    earlier: dict[str, int] = {}
    for tier in case.plan.tiers:
        for name, value in sorted(tier.given.items()):
            if earlier.get(name) != value:
                yield Finding(tier.name, f"assumes {name} = {value}, which no earlier tier has")
        left_out = sorted(earlier.keys() - tier.given.keys()) if tier.proof in _SEARCHED else []
        if left_out:
            yield Finding(tier.name, f"assumes nothing of {', '.join(left_out)}, whose value a search holds")
        earlier[tier.name] = tier.value


def second_opinion(case: Case) -> Iterator[Found]:
    """No other engine contradicts the plan: its optimum of a tier lies between value and bound (S5.2).

    What is told of its optima is told of the plan's tiers, as far as both answer the same question, and says whether
    that is all of them.
    """
    opinion = case.plan.second_opinion
    if opinion is None:
        return
    tier = contradiction(case.plan.tiers, opinion.tiers)
    if tier is not None:
        optimum = opinion.tiers[tier.name]
        yield Finding(tier.name, f"has value {tier.value} and bound {tier.bound}, {opinion.engine} has {optimum}")
    elif not opinion.agrees:
        yield Finding(opinion.engine, "does not agree with this plan")
    elif case.has_plan:
        yield from _told_of(opinion, opinion_of(opinion.engine, case.plan.tiers, opinion.tiers))
    else:
        yield from _told_of_none(case, opinion)


def _told_of_none(case: Case, told: SecondOpinion) -> Iterator[Found]:
    """Yield where what is told beside an outcome without a plan is not of all tiers, or tells an optimum of one."""
    if not case.known:
        yield Open(told.engine)
    names = [tier.name for tier in case.tiers] if case.known else told.tiers
    yield from _told_of(told, replace(told, tiers=dict.fromkeys(names)))


def _told_of(told: SecondOpinion, right: SecondOpinion) -> Iterator[Finding]:
    """Yield where what is told of an engine's optima is not what these come to."""
    for name in sorted({*told.tiers, *right.tiers}):
        if name not in right.tiers:
            yield Finding(name, f"is told of by {told.engine}, and is no tier here")
        elif name not in told.tiers:
            yield Finding(name, f"is not told of by {told.engine}")
        elif told.tiers[name] != right.tiers[name]:
            yield Finding(name, f"is told as {told.tiers[name]} by {told.engine}, and was not compared")
    if told.conclusive != right.conclusive:
        compared = "all was" if right.conclusive else "not all was"
        yield Finding(told.engine, f"is told as conclusive: {str(told.conclusive).lower()}, and {compared} compared")


def summary(case: Case) -> Iterator[Found]:
    """Every figure of the summary is what the documents and the placements give."""
    right = summary_of(case.view, case.context) if case.has_plan else {}
    yield from _told_otherwise(case)
    for key in [*right, *(key for key in case.plan.summary if key not in right)]:
        told = case.plan.summary.get(key)
        if told is not None and key in OF_TODAY and not case.known and (key in right or _may_be_cut(case)):
            yield Open(key)
        elif told != right.get(key):
            yield Finding(key, f"is told as {told}, is {right.get(key)}")


def _told_otherwise(case: Case) -> Iterator[Finding]:
    """Yield the figures that a tier tells too, and otherwise: so much is known without the state as well."""
    told = {} if case.known else {tier.name: tier.value for tier in case.plan.tiers}
    for key, name in OF_TIERS.items():
        figure = case.plan.summary.get(key)
        if figure is not None and name in told and figure != figure_of(key, told[name]):
            yield Finding(key, f"is told as {figure}, and tier {name} as {told[name]}")


def _may_be_cut(case: Case) -> bool:
    """Tell whether any GPU could be cut today, so that a plan tells figures of that."""
    cards = (case.spec.accelerators.get(node.accelerator or "") for node in case.spec.cluster.nodes if node.gpus)
    return case.has_plan and any(card is not None and card.mig is not None for card in cards)


def admitted(case: Case) -> Iterator[Found]:
    """The workloads that are not admitted in full are told, with counts and reasons as they are."""
    right = admitted_of(case.view, case.context, case.plan.tiers) if case.has_plan else {}
    for name in sorted({*right, *case.plan.admitted}):
        told, found = case.plan.admitted.get(name), right.get(name)
        if told == found:
            continue
        if not case.known and _alike_but_for_today(told, found, proved=not _open(case, name)):
            yield Open(name)
        else:
            yield Finding(name, f"is told as {_shown(told)}, is {_shown(found)}")


def promises(case: Case) -> Iterator[Finding]:
    """The workloads of which less is kept than was promised are told, with what is missing (S2.8)."""
    right = promises_of(case.view) if case.has_plan else {}
    for name in sorted({*right, *case.plan.promises}):
        told, found = case.plan.promises.get(name), right.get(name)
        if told != found:
            amounts = [0 if each is None else each.missing for each in (told, found)]
            yield Finding(
                name, f"misses {amounts[0]} thousandths as told, and {amounts[1]} in fact, or its rates differ"
            )


def _open(case: Case, name: str) -> bool:
    """Tell whether a workload's band is not proved, so that a longer search might admit it."""
    workload = case.spec.by_id.get(name)
    return workload is not None and case.spec.band_of(workload) in open_bands(case.context, case.plan.tiers)


def _alike_but_for_today(told: AdmissionResult | None, found: AdmissionResult | None, *, proved: bool) -> bool:
    """Tell whether two results differ only in what today decides: what policies excuse, and who would move.

    Parameters
    ----------
    proved : whether the workload's band is.
    """
    if told is None or found is None or replace(told, reasons=found.reasons) != found:
        return False
    if MOVES in told.reasons:  # it comes first of what is known, and who outranks it is then not told
        first = [UNPROVED] if UNPROVED in found.reasons else []
        rest = [code for code in found.reasons if code not in (UNPROVED, OUTRANKED)]
        return list(told.reasons) == [*first, MOVES, *rest]
    either = {(UNPROVED,), (FORBIDDEN,)} if proved else {(UNPROVED,), (UNPROVED, FORBIDDEN)}
    return {told.reasons, found.reasons} <= either


def _shown(result: Any) -> str:
    if result is None:
        return "full"
    return f"{result.state} {result.replicas}/{result.of} {' '.join(result.reasons)}".rstrip()
