"""The ladder from a Spec to a proved plan: start, exact where it closes, else part by part, bounds, names."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil

from dovetail.engine.bounds import Bounds, Results
from dovetail.engine.budget import DEFAULT_WORK, Budget
from dovetail.engine.construction import cutting
from dovetail.engine.construction.clearing import with_room
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.moving import tidied
from dovetail.engine.construction.served import without_surplus
from dovetail.engine.exact import Climb, TierAnswer, climb
from dovetail.engine.fleet.aside import Aside
from dovetail.engine.gathering.gatherings import Gatherings
from dovetail.engine.gathering.settling import settle
from dovetail.engine.generation.generate import Generation
from dovetail.engine.generation.guided import Suggested, lead
from dovetail.engine.generation.patterns import MANY_NODES
from dovetail.engine.incumbent import Keep, forget
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.parts.lns import Neighbourhoods
from dovetail.engine.parts.rounds import Task, improve
from dovetail.engine.refusal import without_plan
from dovetail.engine.solvers.answer import Effort, Verdict
from dovetail.engine.sparing import ALMOST_FULL, FULL, sparing
from dovetail.engine.start import start, untouched
from dovetail.model.legal import legalise
from dovetail.model.part import PartModel
from dovetail.model.score import better, debt, hard_policies, owed, score, sound, view_of
from dovetail.model.state import State, newcomers
from dovetail.placement import Places
from dovetail.plan import finish
from dovetail.plan.model import Outcome, Plan, TierResult
from dovetail.problem import Problem, compile_problem
from dovetail.problem.steps import EXACT_FIRST, EXACT_VARIABLES
from dovetail.progress import Limits, Reporter, Stop
from dovetail.proof.attach import attached
from dovetail.rules import context_of
from dovetail.spec import Spec

_BOUND_SHARE = 0.2, 0.3  # of the time, for the last bounds of a large fleet, and of one with many nodes
_PURSUED_SHARE = 0.05  # of the time, where another process looks for them meanwhile
_AFTER = 0.6  # of the time that construction takes, for names, figures and reasons
_PART_WORK = 0.2  # of each part: what does not close in that seldom gets better, and holds up a round
_ROUND = 4  # parts planned side by side; fixed, so that plans do not depend on the number of processes
_NODES_PER_ROUND = 1000  # a measure of the whole takes as long as a round of parts on so many nodes, or longer
_GENERATE_TIME = 0.8, 0.95  # of the time, to mix patterns: parts gain little on many nodes
_GENERATE_SHARE = 0.8
_FOLLOW_TIME, _FOLLOW_SHARE = 0.25, 0.2
_FOLLOW_WORK = 1e-4  # of an LP's solution, per column
_GATHER_TIME, _GATHER_SHARE = 0.6, 0.4
_GLANCE = 0.01  # of the work, for the exact model before gangs are placed by classes of domains
_CLEAR_TIME = 0.5  # to let some of what runs make way
_TIDY_TIME = 0.5  # after that, to let replicas make way and empty nodes
_FAST_WORKERS = 8


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
    hint : places that may serve as a start for work that does not run today.
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
        return _Search(problem, limits, budget, reporter, stop, own, keep or forget, bounds).run(hint)
    finally:
        if aside is not None:
            aside.close()
        if jobs is None:
            own.close()


_Step = tuple[str, Callable[[Budget], Verdict], float]  # the phase, what to try, and its share of the work left


@dataclass(slots=True)
class _Search:
    """One search: its limits, and the best state so far with what is proved about it."""

    problem: Problem
    limits: Limits
    budget: Budget
    reporter: Reporter
    stop: Stop
    jobs: Jobs
    keep: Keep
    bounds: Bounds
    state: State = field(default_factory=State)
    answers: tuple[TierAnswer, ...] = ()
    unpaid: frozenset[str] = frozenset()
    now: tuple[TierResult, ...] = ()
    _construction: float = 0.0  # seconds that it took

    @property
    def _many(self) -> bool:
        return len(self.problem.nodes) > MANY_NODES

    def run(self, hint: Places | None) -> Plan:
        """Climb the ladder as far as the limits allow."""
        self.reporter.phase("construct")
        began = time.monotonic()
        self.state, self.unpaid = start(self.problem, hint, self.stop)
        self._keep()
        self._construction = time.monotonic() - began
        for number, (phase, step, share) in enumerate(self._steps()):
            self.reporter.phase(phase)
            if not number:
                self._reserve()
            verdict = step(self.budget.part(self.budget.work * share))
            if verdict is Verdict.INFEASIBLE:
                return without_plan(
                    self.problem, self.limits.fast, self._stopped_by, self.budget, self.stop, self.reporter
                )
            if verdict is Verdict.OPTIMAL or self.stop or self.budget.spent():
                break
        return self._finished()

    def _steps(self) -> list[_Step]:
        """Return what to try in turn, each with its share of the work that is left.

        A small model is given a first chance to close; what does not is found better part by part, where the exact
        model then starts. Gangs on alike domains close by classes of these, so that it only has a glance before.
        """
        counts = self.problem.counts
        cut = cutting.suits(self.problem) and not self.bounds.fleet.large  # there the LP over kinds leads further
        first: list[_Step] = [("cut", self._cut, 0.1)] if cut else []
        gather: list[_Step] = [("gather", self._gather, _GATHER_SHARE)] if Gatherings.suits(self.problem) else []
        if counts > EXACT_VARIABLES:
            return [*first, *gather, ("generate", self._parts, 1.0)]
        glance: list[_Step] = [("exact", self._close, _GLANCE)] if gather and counts <= EXACT_FIRST else []
        close: list[_Step] = [("exact", self._close, 0.2)] if counts <= EXACT_FIRST else []
        return [*first, *glance, *gather, *close, ("generate", self._parts, 0.5), ("exact", self._exact, 1.0)]

    def _cut(self, budget: Budget) -> Verdict:
        """Cut the GPUs of alike nodes all at once, and look whether the bounds close on that."""
        if self.unpaid:
            return Verdict.UNKNOWN
        self._offer(construct(self.problem, cutting.cut_all(self.problem, self.stop, budget.seconds()), self.stop))
        if self.problem.counts <= EXACT_VARIABLES:
            self._results(last=True)
        self._report()
        return Verdict.OPTIMAL if self._close_enough() else Verdict.FEASIBLE

    def _close(self, budget: Budget) -> Verdict:
        """Try the exact model of the whole, and take what it finds only if that ends the search."""
        before = self.state, self.answers, self.unpaid
        verdict = self._exact(budget)
        if verdict is Verdict.FEASIBLE and not before[2]:
            self.state, self.answers, self.unpaid = before
        return verdict

    def _reserve(self) -> None:
        """Keep time for what follows the search: figures and reasons, as measured by what construction took.

        Bounds of large fleets take a part of the time as well.
        """
        if self.budget.deadline is not None and self.limits.time is not None:
            self.budget.deadline -= min(_AFTER * self._construction, 0.2 * self.limits.time)
            self.bounds.until = self.budget.deadline
            if self.problem.counts > EXACT_VARIABLES and self.bounds.fleet.large:
                share = _PURSUED_SHARE if self.bounds.pursued else _BOUND_SHARE[self._many]
                self.budget.deadline -= share * self.limits.time

    @property
    def _searching(self) -> frozenset[str]:
        policies = {policy.name for policy in self.problem.spec.policies if policy.rule.searches}
        return hard_policies(self.problem) & policies

    def _holds(self, state: State) -> bool:
        """Tell whether a state keeps what a model of a part may know less of."""
        kept = self._searching - self.unpaid
        return not kept or not debt(self.problem, view_of(self.problem, state), kept)

    def _exact(self, budget: Budget) -> Verdict:
        """Climb the tiers on the exact model of the whole, where that is small enough."""
        if self.problem.counts > EXACT_VARIABLES:
            return Verdict.UNKNOWN
        workers = _FAST_WORKERS if self.limits.fast else 1
        part = PartModel(self.problem, range(len(self.problem.nodes)), State())
        start = None if self.unpaid else self.state
        reached = None if start is None else score(self.problem, start)[1:]
        found = climb(part, self.problem.search_tiers, start, reached, budget, self.stop, workers)
        self.budget.work -= found.work
        if found.contradiction:
            self.reporter.warning(found.contradiction)
        if found.verdict in (Verdict.OPTIMAL, Verdict.FEASIBLE):
            return self._measured(found)
        return found.verdict

    def _measured(self, found: Climb) -> Verdict:
        """Take what an exact search found and proved, the state only if it keeps what the model merely counts."""
        before, self.state, self.answers = self.state, found.state, found.tiers
        broken = owed(self.problem, self.state, self._searching)
        if not self.unpaid and (broken or not sound(self.problem, view_of(self.problem, found.state))):
            self.state = before
            return Verdict.FEASIBLE
        self.unpaid = broken
        return found.verdict

    def _parts(self, budget: Budget) -> Verdict:
        """Re-plan everything free at once, then part after part."""
        given = budget.work
        if self.problem.present and not self.unpaid:  # before bounds, which take longer
            over = budget.part(0.0, _CLEAR_TIME).out_of_time
            self.state = with_room(self.problem, self.state, self.stop, over)
        self._report(standing=True)
        if self._close_enough():
            return Verdict.OPTIMAL
        self.jobs.warm_up()
        led = self._follow_targets(budget)
        spared = not self.unpaid and self._spare(budget, FULL)
        self._generate(budget, *led)
        large = self.problem.counts > EXACT_VARIABLES  # parts tidy up smaller ones
        if large and not self.unpaid and not budget.out_of_time():
            self._offer(tidied(self.problem, self.state, self.stop, budget.part(0.0, _TIDY_TIME).out_of_time))
            if not spared:
                self._spare(budget, ALMOST_FULL)
        before = self.state
        self.reporter.phase("improve")
        verdict = self._improve(budget)
        if not large or self.state is not before:
            self._offer(construct(self.problem, self.state, self.stop))
        self.budget.work -= given - budget.work
        return verdict

    def _gather(self, budget: Budget) -> Verdict:
        """Place gangs by classes of domains, where nothing runs that this would have to mind."""
        self._report()
        if self.unpaid or self._close_enough():
            return Verdict.UNKNOWN if self.unpaid else Verdict.OPTIMAL
        given = budget.part(budget.work, _GATHER_TIME)
        found = settle(self.problem, given, self.stop, _FAST_WORKERS if self.limits.fast else 1)
        self.budget.work -= found.work
        self.bounds.learn(found.tiers, found.relaxed)
        for state in found.states:
            self._offer(state)
        self._report()
        return Verdict.OPTIMAL if self._close_enough() else Verdict.FEASIBLE

    def _follow_targets(self, budget: Budget) -> tuple[State, Sequence[Suggested]]:
        """Follow the LP over kinds of nodes, where nothing runs; return what to mix patterns around, and contents."""
        if self.problem.present or self.unpaid or all(tier.proved for tier in self.now):
            return self.state, ()
        if self._many and not any(shape.workload.joint for shape in self.problem.shapes):
            return self.state, ()  # patterns are as good mixed without
        lp = self.bounds.fleet.target({tier.name: tier.value for tier in self.now}, budget.seconds())
        if not lp.solved or budget.spent():
            return self.state, ()
        each = _FOLLOW_WORK * lp.columns
        ways = ceil(budget.work * _FOLLOW_SHARE / each)
        if Generation.suits(self.bounds.fleet):
            ways = 0 if self._many else 1
        led = lead(lp, self.state, self.stop, ways, budget.part(0.0, _FOLLOW_TIME))
        for state in led.states:
            self._offer(state)
            budget.work -= each
        return led.base, led.known

    def _generate(self, budget: Budget, base: State, known: Sequence[Suggested]) -> None:
        """Mix node patterns, those known among them, around gangs of a base, with a part of the work and time."""
        if not Generation.suits(self.bounds.fleet):
            return
        given = budget.part(budget.work * _GENERATE_SHARE, _GENERATE_TIME[self._many])
        before = given.work
        generation = Generation(self.problem, base, self.bounds.fleet.rows, self.stop, self.state, self.jobs)
        for candidate in generation.run(given, known, self._construction):
            self._offer(candidate)
            if self._close_enough() or budget.out_of_time():
                break
        budget.work -= before - given.work

    def _spare(self, budget: Budget, part: float) -> bool:
        """Look for the least cost; tell whether anything cheaper was found."""
        return any(map(self._offer, sparing(self.bounds, self.state, self.now, budget, self.stop, part)))

    def _offer(self, candidate: State) -> bool:
        """Take a state if it is better than the one at hand; tell whether it is."""
        candidate = legalise(self.problem, candidate)
        spared = without_surplus(self.problem, candidate)
        taken = False
        for state in (spared,) if spared is candidate else (spared, candidate):
            if better(self.problem, state, self.state, self.unpaid):
                self.state, taken = state, True
                self._report()
        return taken

    def _improve(self, budget: Budget) -> Verdict:
        """Re-plan parts, round after round, until work or time runs out, or the gap asked for is reached."""
        neighbourhoods = Neighbourhoods(self.problem)
        turn = 0
        while not self.stop and not budget.spent() and not self._close_enough():
            effort = Effort(min(_PART_WORK, budget.work / _ROUND))
            parts = neighbourhoods.draw(self.state, _ROUND)
            task = Task(self.problem, self.problem.search_tiers, self.unpaid)
            done = improve(task, self.state, parts, effort, self.jobs, self.stop, budget.deadline, turn)
            turn += 1
            for closed in done.closed:
                neighbourhoods.learn(closed)
            budget.work -= max(done.work, 0.01)
            if done.state is not self.state and self._holds(done.state):
                self.state = done.state
                if self.unpaid:
                    self.unpaid = owed(self.problem, self.state, self.unpaid)
                self._keep()
                if turn % (1 + len(self.problem.nodes) // _NODES_PER_ROUND) == 0:
                    self._report()
            if done.closed == (True,) and len(parts[0]) == len(self.problem.nodes):
                break
        return Verdict.OPTIMAL if self._close_enough() else Verdict.FEASIBLE

    def _results(self, *, standing: bool = False, last: bool = False) -> Results:
        view = view_of(self.problem, self.state)
        values = [tier.measure(view, self.problem.context) for tier in self.problem.tiers]
        if (standing or last) and self.problem.present and not self.unpaid:
            self.bounds.stand(values, newcomers(self.problem, self.state))
        if last:
            self.bounds.sharpen(values, self.answers)
            return self.bounds.results(values, self.answers)
        return self.bounds.pursue(values, self.answers)

    def _report(self, *, standing: bool = False) -> None:
        """Tell values, bounds and gaps as they stand, after a look beside what runs today where that is asked for."""
        self.now = self._results(standing=standing).tiers
        self._keep(self.now)
        for tier in self.now:
            self.reporter.tier(tier.name, tier.unit, tier.value, tier.bound)

    def _keep(self, tiers: Sequence[TierResult] = ()) -> None:
        """Hand out the state at hand, if it is a plan."""
        if not self.unpaid:
            self.keep(self.state, tiers)

    def _close_enough(self) -> bool:
        """Tell whether every tier is proved, or the admitted ones are within the gap asked for."""
        if self.unpaid:
            return False
        if all(tier.proved for tier in self.now):
            return True
        gaps = [tier.gap or 0.0 for tier in self.now if tier.name.startswith("admitted")]
        return 0 < self.limits.gap >= max(gaps, default=0.0)

    def _finished(self) -> Plan:
        problem = self.problem
        if owed(problem, self.state, self.unpaid):
            if (bare := untouched(problem)) is None:
                return finish(problem.context, {}, (), Outcome("unknown", self._stopped_by(), self.limits.fast))
            self.state, self.unpaid, self.answers = bare, frozenset(), ()
        view = view_of(problem, self.state)
        self._keep()
        self.reporter.phase("bound")
        results = self._results(last=True)
        tiers = results.tiers
        self._keep(tiers)
        proved = all(tier.proved for tier in tiers)
        stopped = None if proved else self._stopped_by()
        outcome = Outcome("optimal" if proved else "feasible", stopped, self.limits.fast)
        return attached(finish(problem.context, view.places, tiers, outcome, held=view.held), results.proofs)

    def _stopped_by(self) -> str:
        if self.stop:
            return "interrupt"
        if self.budget.out_of_time() or self.budget.clock.cut:  # plans may differ then
            return "time"
        return "gap" if self.limits.gap and self.now and self._close_enough() else "work"
