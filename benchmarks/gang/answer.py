"""The answer to a case: what a plan says, in the case's own words."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.gang.alike import as_kinds, dealt
from benchmarks.gang.arrears import closed, spared
from benchmarks.gang.case import Case, Job, Together, left_as_is, part_of
from benchmarks.gang.declare import CASE_FILE, Declared, declare
from benchmarks.gang.meaning import has_own_topology, loose, members, nonsense, staying, too_few_untouched
from benchmarks.gang.tokens import heavy
from benchmarks.gang.work import Mode, running_of

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.documents.project import PROJECT_FILE
from dovetail.engine import solve
from dovetail.faults import Refused
from dovetail.plan import Plan
from dovetail.plan.model import TierResult
from dovetail.progress import Limits
from dovetail.spec import Spec
from dovetail.verify import lines, verify

MOST_PLANS = 400  # of some of the jobs, with which as many as there can be are looked for
MOST_AWAY = 8  # gangs and sets that may be away, of which any may be tried to be
MOST_SPARED = 32  # choices of overdrawn domains to be left untouched that are tried

_T = TypeVar("_T")

Placement = Mapping[str, Mapping[str, int]]  # pods by gang and node
Move = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What dovetail says of a case.

    Parameters
    ----------
    fits : whether all gangs are placed now, nothing moved or evicted; None where that was not decided.
    status : of the plan that is told: `optimal`, `feasible`, `infeasible`, `unknown`, or `invalid`, `error`.
    running : where pods that ran are in that plan.
    """

    fits: bool | None
    status: str
    placement: Placement = field(default_factory=dict)
    domains: Mapping[str, int] = field(default_factory=dict)
    running: Placement = field(default_factory=dict)
    moved: tuple[Move, ...] | None = None
    evicted: tuple[str, ...] | None = None
    admitted: tuple[str, ...] | None = None
    reason: str = ""

    def told(self, case: Case) -> dict[str, Any]:
        """Return the answer as plain data, in the case's names; what a case does not ask for is left out."""
        found: dict[str, Any] = {"fits": self.fits, "domains": self.domains, "status": self.status}
        found["placement"] = self.placement
        called = {each.name: each.called or each.name for each in case.running}
        if self.moved is not None:
            found["moved"] = [{**move, "pods": called[move["pods"]]} for move in self.moved]
        if self.evicted is not None:
            found["evicted"] = [called[name] for name in self.evicted]
        if self.admitted is not None:
            found["admitted"] = list(self.admitted)
        return found | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True, slots=True)
class _Planned:
    """A plan of one question, by gang."""

    status: str
    pods: Placement = field(default_factory=dict)
    reason: str = ""
    more_may_fit: bool = False

    @property
    def placed(self) -> bool:
        return self.status in ("optimal", "feasible")

    @property
    def total(self) -> int:
        return sum(count for nodes in self.pods.values() for count in nodes.values())

    def pods_of(self, gang: str) -> int:
        return sum(self.pods.get(gang, {}).values())


def answer(case: Case, seconds: float) -> Answer:
    """Plan a case: as things are; where that does not do, with moves, then with evictions.

    Of several jobs the answer tells who is admitted as things are, and what moves and evictions would admit all.
    """
    wrong = nonsense(case)
    if wrong:
        return Answer(False, "invalid", reason=wrong)
    now = _now(case, seconds)
    fits = _fits(case, now)
    if fits:
        moved, evicted = (() if _any(case, ability) else None for ability in ("movable", "evictable"))
        return _told(case, now, True, moved=moved, evicted=evicted, admitted=_admitted(case, now))
    if now.status == "invalid" or (fits is None and not case.jobs):
        return Answer(fits, now.status, reason=now.reason)
    changed = _with_changes(case, now, seconds) if fits is False else Answer(None, now.status)
    if not case.jobs:
        return changed
    return _told(case, now, fits, moved=changed.moved, evicted=changed.evicted, admitted=_admitted(case, now))


def _now(case: Case, seconds: float) -> _Planned:
    """Plan a case as it is; where most pods leave out a gang that is needed, with all of those in."""
    if case.jobs and any(gang.kept for gang in case.gangs):
        return _some_jobs(case, seconds)
    now = _whole_or_not(case, _plan(case, "now", seconds), seconds)
    free = loose(case)
    choice = any(gang.least < gang.pods or gang.name in free for gang in case.gangs)
    if choice and not case.jobs and now.placed and _fits(case, now) is False:
        now = _plan(case, "now", seconds, must=True)
    return _with_fewer_there(case, now, seconds) if choice and now.status == "optimal" else now


def _whole_or_not(case: Case, now: _Planned, seconds: float) -> _Planned:
    """Ask for all that is needed by itself, where what most can be placed left open whether that fits."""
    if _fits(case, now) is not None or now.status == "error":
        return now
    whole = _plan(case, "now", seconds, must=True)
    if whole.status == "infeasible" and now.placed:
        return replace(now, more_may_fit=False)
    alone = whole.status == "infeasible" and not case.jobs  # of jobs, some may fit
    return whole if whole.placed or alone else now


def _with_fewer_there(case: Case, now: _Planned, seconds: float) -> _Planned:
    """Return a plan with as many pods in fewer domains, if some gangs that may be away are.

    The tiers count the domains that gangs span beyond one, and so say nothing of who is there.
    """
    parties = _away(case)
    if not _fits(case, now) or not parties:
        return now
    if len(parties) > MOST_AWAY:
        return replace(now, status="feasible", reason="not every choice of who is away was tried")
    best, fewest = now, _spanned(case, now)
    for some in filter(None, _subsets(parties)):
        if sum(gang.pods for gang in case.gangs if not any(gang.name in party for party in some)) < now.total:
            continue
        found = _plan(left_as_is(case, {name for party in some for name in party}), "now", seconds, must=True)
        as_many = found.total == now.total and _admitted(case, found) == _admitted(case, now)
        if found.status == "optimal" and as_many and _fits(case, found) and _spanned(case, found) < fewest:
            best, fewest = found, _spanned(case, found)
    return best


def _subsets(items: Sequence[_T]) -> Iterator[tuple[_T, ...]]:
    """Yield all subsets of some items, the smallest first."""
    for count in range(len(items) + 1):
        yield from combinations(items, count)


def _away(case: Case) -> list[tuple[str, ...]]:
    """Return gangs, alone or with all of their set, whose being away leaves a count of domains out."""
    free = loose(case) - set(staying(case))
    apart = [gang.name for gang in case.gangs if gang.name in free and _counts_alone(case, gang.name)]
    sets = [each.gangs for each in case.sets if each.optional and not free.isdisjoint(each.gangs)]
    return [*((name,) for name in apart), *(gangs for gangs in sets if not set(apart) & set(gangs))]


def _spanned(case: Case, plan: _Planned) -> tuple[int, ...]:
    return tuple(domains_used(case, plan.pods).values())


def _some_jobs(case: Case, seconds: float) -> _Planned:
    """Plan some of the jobs, as many as there can be, number by number.

    What a job keeps holds its room whether it is admitted or not, which no single question says. Jobs that do not fit
    together with nobody else do not with others either.
    """

    def planned(jobs: Iterable[Job]) -> _Planned:
        inside = {name for job in jobs for name in job.gangs}
        outside = {name for job in case.jobs for name in job.gangs} - inside
        return _plan(part_of(case, {gang.name for gang in case.gangs} - outside), "now", seconds, must=True)

    first = planned(case.jobs)
    if _decided(first):
        return first
    few = [some for count in (1, 2) for some in combinations(case.jobs, count)]
    apart = [frozenset(job.name for job in some) for some in few if planned(some).status == "infeasible"]
    tries = 0
    for away in islice(_subsets(case.jobs[::-1]), 1, None):
        there = [job for job in case.jobs if job not in away]
        if any(some <= {job.name for job in there} for some in apart):
            continue
        tries += 1
        if _decided(found := planned(there)):
            return found
        if tries >= MOST_PLANS:
            return replace(first, status="unknown", reason=f"more than {MOST_PLANS} choices of jobs were tried")
    return first  # not even what is outside all jobs fits


def _decided(plan: _Planned) -> bool:
    return plan.placed or plan.status not in ("infeasible", "optimal")


def _with_changes(case: Case, now: _Planned, seconds: float) -> Answer:
    """Return the answer where not all fits now: with the fewest moves, and with the fewest evictions."""
    moves = _with_least(case, "moves", seconds) if _any(case, "movable") else None
    evictions = _with_least(case, "evictions", seconds) if _any(case, "evictable") else None
    asked = [plan for plan in (moves, evictions) if plan is not None]
    good = [plan for plan in asked if _fits(case, plan)]
    if not good:
        told = next((plan for plan in asked if plan.status == "unknown"), now)
        return Answer(False, told.status, reason=told.reason)
    moved = _moved(case, moves) if moves in good and moves is not None else None
    evicted = _evicted(case, evictions) if evictions in good and evictions is not None else None
    return _told(case, good[0], False, moved=moved, evicted=evicted)


def _with_least(case: Case, mode: Mode, seconds: float) -> _Planned:
    """Return a plan with the fewest moves or evictions, by which overdrawn nodes that may be left untouched are."""
    choices = islice(spared(case, running_of(case, mode)), MOST_SPARED)
    plans = [_plan(closed(case, some), mode, seconds, must=True) for some in choices]

    def cost(plan: _Planned) -> tuple[Any, ...]:
        return len(_moved(case, plan)) + len(_evicted(case, plan)), -plan.total, _spanned(case, plan)

    undecided = _first(iter(plans), lambda plan: plan.status != "infeasible")
    return min((plan for plan in plans if plan.placed), key=cost, default=undecided)


def _told(case: Case, plan: _Planned, fits: bool | None, **more: Any) -> Answer:
    gangs = {gang.name: dict(sorted(plan.pods.get(gang.name, {}).items())) for gang in case.gangs}
    gangs = {name: nodes for name, nodes in gangs.items() if nodes}
    running = {each.name: dict(plan.pods.get(each.name, {})) for each in case.running}
    domains = domains_used(case, gangs) if plan.placed else {}
    return Answer(fits, plan.status, gangs if plan.placed else {}, domains, running, reason=plan.reason, **more)


def _any(case: Case, ability: str) -> bool:
    return any(getattr(each, ability) for each in case.running)


def _fits(case: Case, plan: _Planned) -> bool | None:
    """Tell whether every gang is there, and of a set that may be incomplete, or away, as much as it needs.

    None where neither was shown.
    """
    if plan.status in ("invalid", "infeasible"):
        return False
    if not plan.placed:
        return None
    free = loose(case)
    missing = any(gang.name not in free and plan.pods_of(gang.name) < gang.least for gang in case.gangs)
    sets = [each for each in case.sets if each.partial and not each.optional]
    if missing or not all(_complete(case, each, plan) for each in sets):
        return None if plan.more_may_fit else False
    return True


def _complete(case: Case, together: Together, plan: _Planned) -> bool:
    there = [name for name in together.gangs if plan.pods_of(name)]
    enough = sum(map(plan.pods_of, there)) >= (together.min_pods or 0)
    groups = together.min_subgroups.items()
    return enough and all(
        sum(gang.name in there for gang in members(together, case.gangs, policy)) >= least for policy, least in groups
    )


def _admitted(case: Case, plan: _Planned) -> tuple[str, ...] | None:
    """Return the jobs of which all is there that is not optional."""
    if not case.jobs:
        return None
    return tuple(job.name for job in case.jobs if _fits(part_of(case, job.gangs), plan) and _there(case, job, plan))


def _there(case: Case, job: Job, plan: _Planned) -> bool:
    """Tell whether any pod of a job is there, or none is needed."""
    return any(plan.pods_of(name) or not case.gang[name].least for name in job.gangs)


def _moved(case: Case, plan: _Planned) -> tuple[Move, ...]:
    """Return the moves of running pods, each from a node that has fewer of them now to one that has more."""
    found: list[Move] = []
    for each in case.running:
        after = plan.pods.get(each.name)
        if after is None:  # not asked about: it stays
            continue
        out = [node for node, count in sorted(each.on.items()) for _ in range(count - after.get(node, 0))]
        into = [node for node, count in sorted(after.items()) for _ in range(count - each.on.get(node, 0))]
        found += [{"pods": each.name, "from": a, "to": b} for a, b in zip(out, into, strict=False)]
    return tuple(found)


def _evicted(case: Case, plan: _Planned) -> tuple[str, ...]:
    asked = (each for each in case.running if each.name in plan.pods)  # others stay
    return tuple(each.name for each in asked if each.evictable and not plan.pods[each.name])


def _plan(case: Case, mode: Mode, seconds: float, *, must: bool = False) -> _Planned:
    """Plan one question about a case; what keeps pods and may be away is left as it is where it cannot be whole."""
    plans = (_planned(left_as_is(case, some), mode, seconds, must=must) for some in _subsets(staying(case)))
    return _first(plans, lambda plan: plan.status != "infeasible")


def _first(plans: Iterator[_Planned], good: Callable[[_Planned], bool]) -> _Planned:
    """Return the first plan that is good, or the first of all where none is."""
    first = next(plans)
    return first if good(first) else next(filter(good, plans), first)


def _planned(case: Case, mode: Mode, seconds: float, *, must: bool) -> _Planned:
    """Plan one question about a case; documents that dovetail refuses make it invalid, with the fault as reason."""
    spoilt = too_few_untouched(case, running_of(case, mode))
    if spoilt:
        return _Planned("infeasible", reason=spoilt)
    moving = running_of(case, mode) if mode == "moves" else ()
    asked = as_kinds(case, moving)
    declared = declare(asked, mode, must=must)
    try:
        spec = spec_of(declared.documents)
    except Refused as refused:
        first = refused.faults[0]
        return _Planned("invalid", reason=f"{first.code}: {first.message}")
    plan = solve(spec, Limits(time=seconds))
    if plan.outcome.status in ("infeasible", "unknown"):
        return _Planned(plan.outcome.status, reason=", ".join(plan.conflict))
    found = verify(spec, plan)
    if not found.ok:
        return _Planned("error", reason="; ".join(lines(found))[:500])
    mend = next((tier for tier in plan.tiers if tier.name == "mend"), None)
    if (must or staying(case)) and mend is not None and mend.value:
        # what is broken today is excused in a plan (S4.5), a quota that is overdrawn too; in a case it is not
        return _Planned("infeasible" if mend.bound else "unknown", reason="what runs breaks a limit already")
    admitted = [tier for tier in plan.tiers if tier.name.startswith("admitted")]
    more = any(not tier.proved for tier in admitted) and not too_few(case, admitted)
    pods = _pods(plan, declared, [each.name for each in asked.running])
    return _Planned(plan.outcome.status, dealt(moving, pods), more_may_fit=more)


def too_few(case: Case, admitted: Sequence[TierResult]) -> bool:
    """Tell whether a bound on what is admitted first says that not all that is needed is.

    Those on what comes after hold only where there is as much of that.
    """
    if not case.jobs and len(admitted) > 1:
        return False
    pods = sum(gang.least for gang in case.gangs if gang.name not in loose(case))
    bound, needed = admitted[0].bound, heavy(case) * len(case.jobs) if case.jobs else pods
    return bound is not None and bound < needed


def _pods(plan: Plan, declared: Declared, running: Iterable[str]) -> Placement:
    asked = set(declared.gang_of.values())
    found: dict[str, dict[str, int]] = {name: {} for name in running if name in asked}
    for replica, place in plan.placements.items():
        gang = declared.gang_of.get((replica.workload, replica.role))
        if gang is None:  # a token
            continue
        nodes = found.setdefault(gang, {})
        node = declared.node_of.get(place.node, place.node)
        nodes[node] = nodes.get(node, 0) + 1
    return found


def spec_of(documents: list[dict[str, Any]]) -> Spec:
    """Return what documents mean, read as files are; or raise `Refused`."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / PROJECT_FILE).write_text(json.dumps(documents[0]), encoding="utf-8")
        (Path(folder) / CASE_FILE).write_text("\n---\n".join(map(json.dumps, documents[1:])), encoding="utf-8")
        return build(load_project(folder), as_of=dt.date(2026, 1, 1))


def domains_used(case: Case, placement: Placement) -> Mapping[str, int]:
    """Count domains: once per set that belongs together, and per gang alone or with a topology of its own."""
    units = [each.gangs for each in case.sets]
    units += [(gang.name,) for gang in case.gangs if _counts_alone(case, gang.name)]
    return {level: sum(len(_domains(case, level, unit, placement)) for unit in units) for level in case.levels}


def _counts_alone(case: Case, name: str) -> bool:
    return case.set_of(name) is None or has_own_topology(case, case.gang[name])


def _domains(case: Case, level: str, gangs: Iterable[str], placement: Placement) -> set[str]:
    nodes = {node for gang in gangs for node in placement.get(gang, {})}
    return {case.home(node, level) for node in nodes if node in case.by_name}
