"""How much the random Specs of the slice ask of an engine: counts, so that no test passes by being easy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest
from tests.oracle.bestfit import best_fit
from tests.oracle.brute import TooLarge, ascending, brute, keeps_hard
from tests.oracle.sample import SLICE, Case, cases
from tests.oracle.test_new_rules import RULES
from tests.support.tiny_specs import tiny

from dovetail.rules import TABLE, context_of
from dovetail.spec import Policy, Request, Role, Share, Spec, Workload

FEW = 120
MANY = 456
LEAST = 20


@cache
def drawn(count: int) -> tuple[Case, ...]:
    """Return the first cases; the slice that others plan is among them, or holds them."""
    return tuple(cases(0, count))


def planned(count: int = FEW) -> tuple[Case, ...]:
    """Return those of them that have a plan."""
    return tuple(case for case in drawn(count) if case.optimum is not None)


def test_half_of_the_specs_leave_work_unadmitted() -> None:
    assert sum(_leaves_out(case) for case in planned()) * 2 >= len(planned())


def _leaves_out(case: Case) -> bool:
    return case.optimum is not None and len(case.optimum.places) < sum(w.replicas for w in case.spec.workloads)


def test_a_fifth_of_the_optima_strictly_beat_best_fit() -> None:
    assert sum(_beats(case) for case in planned()) * 5 >= len(planned())


def _beats(case: Case) -> bool:
    """Tell whether the optimum is better than best fit, which must be legal to count."""
    context = context_of(case.spec)
    view = context.view(best_fit(context))
    if not keeps_hard(context, view):
        return True
    assert case.optimum is not None
    tiers = case.optimum.tiers
    values = ascending(tiers, [tier.measure(view, context) for tier in tiers])
    best = ascending(tiers, case.optimum.values)
    assert values <= best, f"seed {case.seed}: best fit passes the optimum"
    return values < best


def test_every_rule_is_drawn_hard_and_soft() -> None:
    kinds = set(TABLE) - set(RULES)
    for enforcement in ("hard", "soft"):
        found = Counter(
            p.rule.kind for n in range(SLICE) for p in tiny(n).policies if p.enforcement.kind == enforcement
        )
        assert {kind: found[kind] for kind in kinds if found[kind] < LEAST // 2} == {}, enforcement


@pytest.mark.campaign
def test_every_rule_binds_hard_and_soft() -> None:
    hard, soft = _binding("hard"), _binding("soft")
    kinds = set(TABLE) - set(RULES)  # those have Specs of their own, and binding is counted there
    assert kinds == set(hard) | set(soft)
    assert {kind: hard[kind] + soft[kind] for kind in kinds if hard[kind] + soft[kind] < LEAST} == {}
    assert min(hard[kind] for kind in kinds) >= 5
    assert min(soft[kind] for kind in kinds) >= 3


@cache
def _binding(enforcement: str) -> Counter[str]:
    """Return in how many Specs a rule of each kind binds: the optimum without it is another, or breaks it.

    Nobody counts beyond the least that there have to be.
    """
    found: Counter[str] = Counter()
    for case in drawn(MANY):
        asked = [p for p in case.spec.policies if p.enforcement.kind == enforcement and found[p.rule.kind] < LEAST]
        found.update({policy.rule.kind for policy in asked if _binds(case, policy)})
    return found


def _binds(case: Case, policy: Policy) -> bool:
    rest = tuple(other for other in case.spec.policies if other.name != policy.name)
    try:
        without = brute(replace(case.spec, policies=rest))
    except TooLarge:
        return False
    if without is None or case.optimum is None:
        return without is not case.optimum
    here, there = case.optimum.by_name, without.by_name
    if any(here[name] != there[name] for name in here.keys() & there.keys() if name != "policies"):
        return True
    context = context_of(case.spec)
    excused = context.tolerated.get(policy.name, {})
    return all(
        any(
            count > excused.get(subject, 0)
            for subject, count in policy.rule.check(context.view(places), context.scopes[policy.name]).items()
        )
        for places in without.ties
    )


@pytest.mark.campaign
def test_every_kind_of_request_binds() -> None:
    found: Counter[str] = Counter()
    for case in planned(MANY):
        found.update(kind for kind in _EASES if found[kind] < LEAST and _kind_binds(case, kind))
    assert {kind: found[kind] for kind in _EASES if found[kind] < LEAST} == {}


def _kind_binds(case: Case, kind: str) -> bool:
    """Tell whether requests of a kind bind: asking for less, they would have another optimum."""
    eased = replace(case.spec, workloads=tuple(_eased(case.spec, _EASES[kind])))
    if eased == case.spec or case.optimum is None:
        return False
    try:
        other = brute(eased)
    except TooLarge:
        return False
    return other is None or other.by_name != case.optimum.by_name


def _eased(spec: Spec, ease: Callable[[Request], Request]) -> Iterator[Workload]:
    for workload in spec.workloads:
        roles: list[Role] = [replace(role, request=ease(role.request)) for role in workload.roles]
        yield replace(workload, roles=tuple(roles))


def _one_gpu(request: Request) -> Request:
    if request.gpus > 1:
        return replace(request, gpus=1)
    return replace(request, cpu=0, memory=0) if request.gpus else request


def _small(request: Request) -> Request:
    return replace(request, share=replace(request.share, compute=10)) if request.share else request


def _no_memory(request: Request) -> Request:
    if request.share is None or request.share.memory is None:
        return request
    return replace(request, share=Share(request.share.compute, 1))


def _no_cpu(request: Request) -> Request:
    return request if request.gpu_count else replace(request, cpu=0, memory=0)


_EASES: dict[str, Callable[[Request], Request]] = {
    "whole": _one_gpu,
    "share": _small,
    "share memory": _no_memory,
    "no GPU": _no_cpu,
}
