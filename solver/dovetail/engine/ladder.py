"""The ladder from a Spec to a proved plan: start, exact where it closes, else part by part, bounds, names."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from dovetail.engine.at_once import AtOnce
from dovetail.engine.bounds import Bounds
from dovetail.engine.budget import DEFAULT_WORK, Budget
from dovetail.engine.choosing import Choosing
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.cutting import Cutting, suits
from dovetail.engine.construction.letting_go import with_misplaced_gone
from dovetail.engine.construction.making_way import with_gangs_making_way
from dovetail.engine.construction.mending import mended
from dovetail.engine.construction.moving import tidied
from dovetail.engine.construction.preempting import with_preemption
from dovetail.engine.construction.vacating import with_gangs
from dovetail.engine.fleet.aside import Aside
from dovetail.engine.gathering.gatherings import Gatherings
from dovetail.engine.gathering.settling import settle
from dovetail.engine.generation.generate import Mixed
from dovetail.engine.generation.guided import Lead
from dovetail.engine.going_back import go_back
from dovetail.engine.improving import Improving
from dovetail.engine.incumbent import Keep, forget
from dovetail.engine.mixing import Mixing
from dovetail.engine.named import climb_named
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.rebuilding import Rebuilding
from dovetail.engine.record import Record
from dovetail.engine.recreating import Recreating
from dovetail.engine.refusal import without_plan
from dovetail.engine.repacking import Repacking
from dovetail.engine.solvers.answer import Verdict
from dovetail.engine.sparing import FULL, Sparing
from dovetail.engine.start import mended_first, roomy_first, start, untouched
from dovetail.engine.turns import in_turns
from dovetail.model.score import owed, view_of
from dovetail.model.state import State
from dovetail.placement import Places
from dovetail.plan import finish
from dovetail.plan.model import Outcome, Plan
from dovetail.problem import Problem, compile_problem
from dovetail.problem.steps import EXACT_FIRST, EXACT_VARIABLES
from dovetail.progress import Limits, Reporter, Stop
from dovetail.proof.attach import attached
from dovetail.rules import context_of
from dovetail.spec import Spec

_AFTER = 0.6  # of the time that construction takes, for names, figures and reasons
_ALL_THERE = 1e-9  # a gap that ends a search once all is admitted that can be
_GATHER_SHARE, _CLOSE_SHARE = 0.4, 0.1  # of the work, for gangs by classes, and for the exact model of a small whole
_LAST_SHARE = 0.1  # of the work and of the time that are left, for parts after the exact model
_PARTS_SHARE = (0.8, 1.0), (0.5, 0.8)  # of work and of time, before the exact model goes on; and where that is small
_NEARLY = 0.01  # of what may be admitted: who lacks more is not done, whatever bounds there are
_GLANCE = 0.01  # of the work, for the exact model before gangs are placed by classes of domains
_APART_SHARE = 0.05  # of the work that is left, for a bound that tells nodes apart
_WAY_TIME = 0.5  # to let some of what runs make way; later to let replicas make way and empty nodes
_FAST_WORKERS = 8
_BY_COUNT = 0.01  # a gap of what is admitted, from which on patterns lose more than they gain where rates are served

_BESIDE = mended, mended_first, with_gangs, with_misplaced_gone, roomy_first, with_gangs_making_way, with_preemption
"""What is tried in turn beside what runs: to put right what is broken, then to make room for what waits."""


def solve(
    spec: Spec,
    limits: Limits | None = None,
    *,
    hint: Places | None = None,
    reporter: Reporter | None = None,
    stop: Stop | None = None,
    jobs: Jobs | None = None,
    keep: Keep | None = None,
    aside: Aside | None = None,
) -> Plan:
    """Plan a Spec.

    Parameters
    ----------
    hint : places that may serve as a start, as those of a plan of much the same documents.
    jobs : where parts are solved, by default on as many processes as the limits say.
    keep : is given every better state that is a plan, and what is known of it.
    aside : where bounds are looked for meanwhile; ended with the search.

    Returns
    -------
    Plan
        With status `optimal` only where every tier is proved, `infeasible` only where two engines agree, `unknown`
        where neither a plan nor a proof was found in time.
    """
    limits = limits or Limits()
    reporter = reporter or Reporter()
    deadline = None if limits.time is None else time.monotonic() + limits.time
    reporter.phase("compile")
    problem = compile_problem(context_of(spec))
    budget = Budget(limits.work or DEFAULT_WORK, deadline)
    own = jobs or Jobs.for_limits(limits)
    own.warn = reporter.warning
    stop = Stop() if stop is None else stop
    try:
        bounds = Bounds(problem, stop, aside)
        best = Record(problem, bounds, reporter, keep or forget, limits.gap)
        return _Search(problem, limits, budget, reporter, stop, own, bounds, best).run(hint)
    finally:
        if aside is not None:
            aside.close()
        if jobs is None:
            own.close()


class _Step(NamedTuple):
    """A phase, what to try in it, and its shares of the work and the time that are left."""

    phase: str
    run: Callable[[Budget], Verdict]
    work: float
    seconds: float = 1.0


@dataclass(slots=True)
class _Search:
    """One search: its limits, and the best state so far."""

    problem: Problem
    limits: Limits
    budget: Budget
    reporter: Reporter
    stop: Stop
    jobs: Jobs
    bounds: Bounds
    best: Record
    _construction: float = 0.0  # seconds that it took
    cutting: Cutting | None = None
    planned: State | None = None  # by parts
    choosing: Choosing = field(init=False)
    sparing: Sparing = field(init=False)
    at_once: AtOnce = field(init=False)
    anew: Recreating = field(init=False)
    rebuilding: Rebuilding = field(init=False)
    repacking: Repacking = field(init=False)

    def __post_init__(self) -> None:
        self.choosing = Choosing(self.best, self.stop, self._admitting)
        self.sparing = Sparing(self.best, self.stop)
        self.at_once = AtOnce(self.best, self.jobs, self.stop, self.choosing)
        self.anew = Recreating(self.best, self.stop)
        self.rebuilding = Rebuilding(self.best, self.stop)
        self.repacking = Repacking(self.best, self.jobs, self.stop, self.anew)

    def run(self, hint: Places | None) -> Plan:
        """Climb the ladder as far as the limits allow."""
        self.reporter.phase("construct")
        # Of large fleets the LP over kinds leads further, but where services ask for rates.
        if suits(self.problem) and (not self.bounds.fleet.large or self._rates):
            self.cutting = Cutting(self.problem, self.stop)
        begun = self.cutting.roughly() if self.cutting and self._rates else None
        began = time.monotonic()
        self.best.state, self.best.unpaid = start(self.problem, hint, self.stop, begun)
        self._construction = time.monotonic() - began
        if self.stop:  # what was filled up in part is no plan to put in place of another one
            return self._undecided()
        if self.problem.counts > EXACT_FIRST:
            self.reporter.phase("bound")  # of the fleet: which steps there are depends on it
        self.best.begin()
        for number, step in enumerate(self._steps()):
            self.reporter.phase(step.phase)
            if not number:
                self._reserve()
            verdict = step.run(self.budget.part(self.budget.work * step.work, step.seconds))
            if verdict is Verdict.INFEASIBLE:
                return without_plan(
                    self.problem, self.limits.fast, self._stopped_by, self.budget, self.stop, self.reporter
                )
            if verdict is Verdict.OPTIMAL or self.stop or self.budget.spent():
                break
        return self._finished()

    def _steps(self) -> list[_Step]:
        """Return what to try in turn, each with its share of the work that is left.

        A small model, or any without a plan so far, is given a first chance to close; what does not is found better
        part by part, where the exact model then starts. Gangs on alike domains close by classes of these, so that it
        only has a glance before.
        """
        counts = self.problem.counts
        first = [_Step("cut", self._cut, 0.1)] if self.cutting else []
        gather = [_Step("gather", self._gather, _GATHER_SHARE)] if Gatherings.suits(self.problem) else []
        if counts > EXACT_VARIABLES:
            return [*first, *gather, _Step("generate", self._parts, 1.0)]
        small = counts <= EXACT_FIRST or bool(self.best.unpaid)
        glance = [_Step("exact", self._close, _GLANCE)] if gather and small else []
        close = [_Step("exact", self._close, _CLOSE_SHARE, _CLOSE_SHARE)] if small else []
        parts = _Step("generate", self._parts, *_PARTS_SHARE[small])
        whole = _Step("exact", self._exact, 1.0 - _LAST_SHARE, 1.0 - _LAST_SHARE)
        return [*first, *glance, *gather, *close, parts, whole, _Step("improve", self._once_more, 1.0)]

    @property
    def _rates(self) -> bool:
        """Whether any service asks for a rate, and not for replicas."""
        return any(shape.workload.asks_rate for shape in self.problem.shapes)

    def _cut(self, budget: Budget) -> Verdict:
        """Cut the GPUs of alike nodes all at once, and look whether the bounds close on that."""
        if self.best.unpaid or self.cutting is None:
            return Verdict.UNKNOWN
        cut = self.cutting.exactly(budget.seconds())
        self.anew.offered(construct(self.problem, cut, self.stop), budget)
        self.best.report()
        if self.problem.counts <= EXACT_VARIABLES and self.best.full_but_for(_NEARLY):
            self.best.results(last=True)
            self.best.report()
        return Verdict.OPTIMAL if self.best.close_enough() else Verdict.FEASIBLE

    def _close(self, budget: Budget) -> Verdict:
        """Try the exact model of the whole, and take what it finds only if that ends the search."""
        before = self.best.state, self.best.answers, self.best.unpaid
        verdict = self._exact(budget)
        if verdict is Verdict.FEASIBLE and not before[2]:
            self.best.state, self.best.answers, self.best.unpaid = before
        return verdict

    def _reserve(self) -> None:
        """Keep time for what follows the search: figures and reasons, as measured by what construction took.

        The last bounds take a part of the time as well.
        """
        if self.budget.deadline is not None and self.limits.time is not None:
            self.budget.deadline -= min(_AFTER * self._construction, 0.2 * self.limits.time)
            self.bounds.until = self.budget.deadline
            self.budget.deadline -= self.bounds.share * self.limits.time

    def _exact(self, budget: Budget) -> Verdict:
        """Climb the tiers on the exact model of the whole, where that is small enough."""
        if self.problem.counts > EXACT_VARIABLES:
            return Verdict.UNKNOWN
        workers = _FAST_WORKERS if self.limits.fast else 1
        start = None if self.best.unpaid else self.best.state
        bounds = self.best.told_bounds()
        found = climb_named(self.problem, self.best.searching, start, budget, self.stop, workers, bounds)
        self.budget.work -= found.work
        if found.contradiction:
            self.reporter.warning(found.contradiction)
        if found.verdict not in (Verdict.OPTIMAL, Verdict.FEASIBLE):
            return found.verdict
        verdict = self.best.take(found)
        if verdict is Verdict.FEASIBLE:  # what later tiers lack, for which there was no time, may have room
            self.best.offer(construct(self.problem, self.best.state, self.stop))
        return verdict

    def _parts(self, budget: Budget) -> Verdict:
        """Re-plan everything free at once, then part after part."""
        given = budget.work
        if self.problem.present and not self.best.unpaid:  # before bounds, which take longer
            over = budget.part(0.0, _WAY_TIME).out_of_time
            for step in _BESIDE:
                found = step(self.problem, self.best.state, self.stop, over)
                if found is not self.best.state:
                    self.best.state = found
                    self.best.begin()
        self.best.report(standing=True)
        if self.best.close_enough():
            return Verdict.OPTIMAL
        self.jobs.warm_up()
        by_count = self._rates and self.best.full_but_for(_BY_COUNT)
        led = Lead((), self.best.state) if by_count else self.at_once.follow(budget)
        self.rebuilding.run(budget)
        if not self.best.unpaid:
            self.sparing.run(budget, FULL)
        self.choosing.run(budget)
        self.anew.first(budget)
        self.repacking.run(budget, self._construction)
        mixed = Mixed([], Counter()) if by_count else self.at_once.mix(budget, led, self._construction)
        if self.at_once.astray(led, mixed.worth) and not budget.spent():
            led = self.at_once.follow(budget, exact=True)
            mixed = self.at_once.mix(budget, led, self._construction, astray=True)
        budget.work -= self.best.tell_apart(_APART_SHARE * budget.work)
        if self.choosing.due(budget):  # for which that broke off
            self.choosing.run(budget)
            mixed = self.at_once.mix(budget, led, self._construction)
        before = self.best.state
        self.reporter.phase("improve")
        before_it = budget.part(budget.work * (1.0 - self.anew.late), 1.0 - self.anew.late)
        budget.work -= before_it.work
        in_turns(self._ways(before_it, mixed), before_it)
        budget.work += before_it.work
        in_turns([self.anew.idling(budget)] if self.anew.late else [], budget)
        changed = self.best.state is not before and not budget.out_of_time()
        if self.problem.counts <= EXACT_VARIABLES or changed:
            self.best.offer(construct(self.problem, self.best.state, self.stop))
        self.budget.work -= given - budget.work
        self.planned = self.best.state
        return Verdict.OPTIMAL if self.best.close_enough() else Verdict.FEASIBLE

    def _once_more(self, budget: Budget) -> Verdict:
        """Plan parts again where the exact model found more of one tier, and had no time for those after it."""
        if self.best.unpaid or self.best.state is self.planned:
            return Verdict.FEASIBLE
        self.best.report()
        parts = Improving(self.problem, self.jobs, self.stop, self.best)
        in_turns([self.anew.admitting(budget), parts.exactly(budget)], budget)
        return Verdict.OPTIMAL if self.best.close_enough() else Verdict.FEASIBLE

    def _ways(self, budget: Budget, mixed: Mixed) -> list[Iterator[bool]]:
        """Return the ways to make the best state better, in the order of their turns.

        Parameters
        ----------
        mixed : what mixing patterns of all nodes came to.
        """
        anew = self.anew
        improving = Improving(self.problem, self.jobs, self.stop, self.best)
        exactly, around = improving.exactly(budget), improving.around(budget)
        if self.best.unpaid:
            return [exactly]
        sets = Mixing(self.best, self.jobs, self.stop, self.sparing).run(budget, mixed, self._construction)
        waiting, tidying = self.choosing.waiting(budget), self._tidying(budget)
        early = [self.rebuilding.steps(budget), anew.admitting(budget), anew.displacing(budget), anew.homing(budget)]
        early += [anew.keeping(budget), self.repacking.saving(budget, self._construction)]
        early += [] if anew.late else [anew.idling(budget)]
        if self.at_once.many:  # what looks at all nodes takes long, and sets lead furthest
            return [waiting, *early, sets, exactly, around, tidying, anew.saving(budget)]
        tidied = [self._tidying(budget)] if mixed.states else []
        late = [] if mixed.settled else [self.at_once.late(budget, self._construction)]
        return [waiting, *tidied, *early, anew.saving(budget), sets, tidying, *late, exactly, around]

    def _gather(self, budget: Budget) -> Verdict:
        """Place gangs by classes of domains, where nothing runs that this would have to mind."""
        self.best.report()
        if self.best.unpaid or self.best.close_enough():
            return Verdict.UNKNOWN if self.best.unpaid else Verdict.OPTIMAL
        found = settle(self.problem, budget, self.stop, _FAST_WORKERS if self.limits.fast else 1)
        self.budget.work -= found.work
        self.bounds.learn(found.tiers, found.relaxed)
        for state in found.states:
            self.best.offer(state)
        self.best.report()
        return Verdict.OPTIMAL if self.best.close_enough() else Verdict.FEASIBLE

    def _tidying(self, budget: Budget) -> Iterator[bool]:
        """Let replicas make way, and empty nodes, as long as that is better."""
        while self._tidy(budget):
            yield True

    def _tidy(self, budget: Budget) -> bool:
        """Let replicas make way, and empty nodes; tell whether that is better."""
        if budget.out_of_time():
            return False
        over = budget.part(0.0, _WAY_TIME).out_of_time
        return self.best.offer(tidied(self.problem, self.best.state, self.stop, over))

    def _admitting(self, problem: Problem, state: State, budget: Budget) -> Record:
        """Plan another Problem by the same steps, from a state on, until all is admitted that can be."""
        bounds = Bounds(problem, self.stop)
        bounds.until = budget.deadline
        best = Record(problem, bounds, Reporter(), forget, _ALL_THERE)
        best.state = construct(problem, state, self.stop)
        inner = _Search(problem, self.limits, budget, Reporter(), self.stop, self.jobs, bounds, best)
        inner.choosing.done = True
        inner._parts(budget)
        best.report()
        return best

    def _finished(self) -> Plan:
        problem = self.problem
        if not self.best.unpaid:
            go_back(self.best, self.stop)
        if owed(problem, self.best.state, self.best.unpaid):
            if (bare := untouched(problem)) is None:
                return self._undecided()
            self.best.state, self.best.unpaid, self.best.answers = bare, frozenset(), ()
        view = view_of(problem, self.best.state)
        self.best.hand_out()
        self.reporter.phase("bound")
        results = self.best.results(last=True)
        tiers = results.tiers
        self.best.hand_out(tiers)
        proved = all(tier.proved for tier in tiers)
        stopped = None if proved else self._stopped_by()
        outcome = Outcome("optimal" if proved else "feasible", stopped, self.limits.fast)
        return attached(finish(problem.context, view.places, tiers, outcome, held=view.held), results.proofs)

    def _undecided(self) -> Plan:
        return finish(self.problem.context, {}, (), Outcome("unknown", self._stopped_by(), self.limits.fast))

    def _stopped_by(self) -> str:
        if self.stop:
            return "interrupt"
        if self.budget.out_of_time() or self.budget.clock.cut:  # plans may differ then
            return "time"
        return "gap" if self.limits.gap and self.best.now and self.best.close_enough() else "work"
