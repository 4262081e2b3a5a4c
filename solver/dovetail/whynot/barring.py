"""Which hard policies keep work out of a finished placement, and which only apply to it.

Judged with all else where it is, and where that finds none, without the work of lower bands that may give way: a
policy keeps work out where one more replica, or as many as it needs at the least, would have a place without it that
no other hard policy forbids. What a plan would do without it is not said: planning anew tells that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Final, Literal

from dovetail.plan import Plan
from dovetail.plan.reasons import MOVES
from dovetail.rules import Context, context_of, without_policy
from dovetail.rules.cohort_trees import CohortGuard
from dovetail.rules.reserve import places_of
from dovetail.spec import Policy, ReplicaId, Spec, Workload
from dovetail.whynot.vacancy import Lifts, Vacancy

Stand = Literal["alone", "together", "aside", "idle", "unknown"]
_KEEPING_OUT: Final = ("alone", "together")


@dataclass(frozen=True, slots=True)
class Bar:
    """A hard policy, and how it stands to what is not admitted of a workload.

    Parameters
    ----------
    stand
        `alone`: without it there would be a place. `together`: without it and those `beside` it. `aside`: without it
        there would be none either. `idle`: it forbids nothing here. `unknown`: none of that is certain.
    evicting : whether that place is one where work of a lower band is.
    needed : how many replicas are meant: one, or as many as the workload needs at the least.
    spent : whether it forbids so many as such, wherever they would be (a quota).
    """

    policy: Policy
    stand: Stand
    beside: tuple[str, ...] = ()
    evicting: bool = False
    needed: int = 1
    spent: bool = False

    @property
    def keeps_out(self) -> bool:
        """Whether it is known to keep the work out, by itself or with others."""
        return self.stand in _KEEPING_OUT


def applying(spec: Spec, workload: Workload) -> tuple[Policy, ...]:
    """Return the hard policies that apply to a workload, by name; none about moves where nothing runs."""
    hard = (policy for policy in spec.policies if policy.enforcement.kind == "hard")
    told = (policy for policy in hard if spec.current.replicas or not policy.rule.needs_current)
    return tuple(policy for policy in told if any(each is workload for each in spec.matched(policy)))


def barring(spec: Spec, plan: Plan, workload: Workload) -> tuple[Bar, ...]:
    """Return the hard policies that apply to a workload or keep it out, by name; of one not admitted in full."""
    if workload.id not in plan.admitted:
        return ()
    context = context_of(spec)
    needed = _needed(plan, workload)
    if needed is None:
        return tuple(Bar(policy, "unknown") for policy in applying(spec, workload))
    verdict = _verdict(context, plan, workload, needed)
    gone = frozenset[ReplicaId]() if verdict.open else _giving_way(context, plan, workload)
    again = _verdict(context, plan, workload, needed, gone) if gone else verdict
    own = applying(spec, workload)
    joint = _act_together(context)
    told = []
    for policy in (policy for policy in spec.policies if policy.enforcement.kind == "hard"):
        bar, evicting = verdict.bar(policy), again.bar(policy)
        bar = evicting if evicting.keeps_out and not bar.keeps_out else bar
        if policy.rule.needs_current:
            bar = _of_moves(plan, workload, bar, own)
        elif policy in own and policy.rule.closes() and not (bar.keeps_out or verdict.open):
            bar = _planned_without(spec, plan, workload, bar, ())
        elif (
            not joint.isdisjoint({policy.name, *bar.beside}) and (policy in own or bar.keeps_out) and not verdict.open
        ):
            bar = _planned_without(spec, plan, workload, replace(bar, stand="aside", beside=()), gone)
        if bar.keeps_out or policy in own:
            told.append(bar)
    return tuple(told)


def _act_together(context: Context) -> frozenset[str]:
    """Return the quotas, if there are cohorts: one of them tells of all, and each may have what another lends."""
    hard = [policy for policy in context.spec.policies if policy.enforcement.kind == "hard"]
    amounts = [policy for policy in hard if not policy.rule.judges_places]
    guards = (policy.rule.guard(context.scopes[policy.name]) for policy in amounts)
    cohorts = any(isinstance(guard, CohortGuard) for guard in guards)
    return frozenset(policy.name for policy in amounts) if cohorts else frozenset()


def _of_moves(plan: Plan, workload: Workload, bar: Bar, own: Collection[Policy]) -> Bar:
    """Return how a policy about moves stands: the reasons tell whether other work would have to move."""
    limits = [policy for policy in own if policy.rule.needs_current]
    alone = MOVES in plan.admitted[workload.id].reasons and limits == [bar.policy]
    return Bar(bar.policy, "alone" if alone else "unknown", needed=bar.needed)


def _needed(plan: Plan, workload: Workload) -> int | None:
    """Return how many more replicas are the fewest that a workload takes, None where that depends on the roles."""
    held = sum(replica.workload == workload.id for replica in plan.placements)
    fewest, nests = max(1, workload.min_replicas - held), workload.topology.nests if workload.topology else ()
    steps = [role.step for role in workload.roles if role.elastic]
    steps += [sum(nest.group.sizes.values()) for nest in nests]
    if not steps or fewest == workload.replicas:
        return fewest
    if len(workload.roles) > 1 or any(nest.loose for nest in nests):
        return None
    if workload.roles[0].least and not held:
        return fewest
    step = lcm(*steps)
    return -(-fewest // step) * step


def _planned_without(spec: Spec, plan: Plan, workload: Workload, bar: Bar, gone: Collection[ReplicaId]) -> Bar:
    """Return how a policy stands where leaving it out changes more than what it forbids: judged again without it."""
    without = without_policy(spec, bar.policy.name)
    context, same = context_of(without), without.by_id[workload.id]
    verdict = _verdict(context, plan, same, bar.needed)
    if verdict.open:
        return replace(bar, stand="alone", evicting=False)
    if gone and _verdict(context, plan, same, bar.needed, gone).open:
        return replace(bar, stand="alone", evicting=True)
    unsure = bar.needed > 1 or verdict.found.unknown
    return replace(bar, stand="unknown" if unsure else bar.stand)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is found of one placement.

    Parameters
    ----------
    sets : what policies would have to go for a place, no set larger than it must be.
    open : whether there is a place that no hard policy forbids.
    evicting : whether places are meant that work of lower bands has.
    """

    sets: Sequence[frozenset[str]]
    open: bool
    found: Lifts
    needed: int
    evicting: bool

    def bar(self, policy: Policy) -> Bar:
        """Return how a policy stands."""
        name = policy.name
        own = sorted((each for each in self.sets if name in each), key=lambda each: (len(each), *sorted(each)))
        spent = name in self.found.spent
        if own:
            beside = tuple(sorted(own[0] - {name}))
            return Bar(policy, "together" if beside else "alone", beside, self.evicting, self.needed, spent)
        stand: Stand = "unknown" if name in self.found.unknown else "aside"
        if self.open or name in self.found.idle:
            stand = "idle"
        return Bar(policy, stand, needed=self.needed, spent=spent)


def _verdict(
    context: Context, plan: Plan, workload: Workload, needed: int, gone: Collection[ReplicaId] = ()
) -> _Verdict:
    places = {replica: place for replica, place in plan.placements.items() if replica not in gone}
    found = Vacancy(context, places, dict(places_of(plan.held, context.spec)), workload, needed).lifts()
    return _Verdict(_smallest(found.sets), frozenset() in found.sets, found, needed, bool(gone))


def _smallest(sets: Collection[frozenset[str]]) -> list[frozenset[str]]:
    """Return the sets of which none of the others is a part; nothing where one is empty."""
    return [each for each in sets if each and not any(other < each for other in sets)]


def _giving_way(context: Context, plan: Plan, workload: Workload) -> frozenset[ReplicaId]:
    """Return the replicas of lower bands that a plan may leave out for a workload (S5.3)."""
    spec, band = context.spec, context.spec.band_of(workload)
    lower = {other.id for other in spec.workloads if spec.band_of(other) < band}
    kept = context.today.protected
    return frozenset(r for r in plan.placements if r.workload in lower and r not in kept)


def suspects(bars: Sequence[Bar]) -> list[Policy]:
    """Return the policies that keep a workload out, or may do so, the surest first."""
    order: Mapping[Stand, int] = {"alone": 0, "together": 1, "unknown": 2}
    found = (bar for bar in bars if bar.stand in order)
    return [bar.policy for bar in sorted(found, key=lambda bar: order[bar.stand])]


def bystanders(spec: Spec, plan: Plan, bars: Sequence[Bar]) -> list[Policy]:
    """Return the policies that forbid no place as things are, and say where admitted work is that could make one."""
    there = {replica.workload for replica in plan.placements}
    still = (bar.policy for bar in bars if bar.stand in ("aside", "idle") and bar.policy.rule.judges_places)
    return [policy for policy in still if any(each.id in there for each in spec.matched(policy))]
