"""What is planned of all free nodes at once, before a few at a time: the LP over kinds followed, patterns mixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from dovetail.engine.budget import Budget
from dovetail.engine.choosing import Choosing
from dovetail.engine.construction.holding import held_shapes
from dovetail.engine.construction.moving import tidied
from dovetail.engine.construction.tier_order import leaves_idle
from dovetail.engine.contents.patterns import MANY_NODES
from dovetail.engine.fleet.pursuit import WIDE
from dovetail.engine.generation.generate import Generation, Mixed, worth_of
from dovetail.engine.generation.guided import Lead, lead
from dovetail.engine.generation.thrift import roomy
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.record import Record
from dovetail.engine.sparing import FULL
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.problem.steps import EXACT_VARIABLES
from dovetail.progress import Stop

_GENERATE_TIME = 0.6, 0.95  # of the time, to mix patterns: sets and parts gain little on many nodes
_SAVING_TIME = 0.75  # the same where cost is left to decide
_CROWDED_SHARE = 0.35  # of the time and work, where few nodes have many sides: sets gain as much there
_FEW_NODES = 1000
_VISITS = 100  # to see whether cost is left to decide by now
_AMPLE = 60.0  # units of work, or seconds: with more, a dive for the least cost ends well on few nodes of many sides
_GENERATE_SHARE = 0.8
_TIDYING_TIME = 0.5  # of what is left of these, for what patterns leave out and for nodes that hold little
_FOLLOW_TIME = 0.1, 0.25  # of the time, without gangs and with them: each way places them otherwise
_FOLLOW_SHARE = 0.2
_ASTRAY = 0.005  # a gap of what is admitted, from which on gangs are placed in another way


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Plans of all free nodes for one search.

    Parameters
    ----------
    choosing : for which mixing breaks off once it is time to.
    """

    best: Record
    jobs: Jobs
    stop: Stop
    choosing: Choosing

    def follow(self, budget: Budget, *, exact: bool = False) -> Lead:
        """Follow the LP over kinds of nodes, where nothing runs nor did; return what it leads to.

        Parameters
        ----------
        exact : whether gangs are on the kinds of nodes where the LP has them, whatever domains that makes them span.
        """
        if not self._problem.fresh or self.best.unpaid or all(tier.proved for tier in self.best.now):
            return Lead((), self.best.state)
        if self.many and not (self._gangs or held_shapes(self._problem, hard=True)):
            return Lead((), self.best.state)  # patterns are as good mixed without
        lp = self.best.bounds.fleet.target({tier.name: tier.value for tier in self.best.now}, budget.seconds())
        if not lp.solved or budget.spent():
            return Lead((), self.best.state)
        each = lp.work
        ways = ceil(budget.work * _FOLLOW_SHARE / each)
        if self._straight(budget):
            ways = 0 if self._problem.counts > EXACT_VARIABLES else 1
        led = lead(lp, self.best.state, self.stop, ways, budget.part(0.0, _FOLLOW_TIME[self._gangs]), exact=exact)
        for state in led.states:
            self.best.offer(state)
            budget.work -= each
            if self._straight(budget):
                break
        return led

    def _straight(self, budget: Budget) -> bool:
        """Tell whether to mix patterns without several ways to follow the LP before.

        Where few nodes have many sides only for the least cost, and with ample time for it.
        """
        return not self.crowded or (self._saves and not self._brief(budget))

    def _brief(self, budget: Budget) -> bool:
        """Tell whether there is too little time for the least cost, so that sets do as well."""
        return self.crowded and budget.units() <= _AMPLE

    def mix(
        self, budget: Budget, led: Lead, construction: float, *, full: bool = False, astray: bool = False
    ) -> Mixed:
        """Mix node patterns, those known among them, around gangs of a base, with a part of the work and time.

        Parameters
        ----------
        construction : seconds that it takes, to fill nodes as patterns say.
        full : whether nothing is asked for beyond what the best state has.
        astray : whether to go on after the first state where gangs are in the way of what the LP has.
        """
        saves, brief, found = self._saves, self._brief(budget), list[State]()
        if saves and brief:
            return Mixed(found, led.planned)
        work, seconds = _GENERATE_SHARE, _SAVING_TIME if saves else _GENERATE_TIME[self.many]
        if self.crowded and not saves:
            work = seconds = _CROWDED_SHARE
        given = budget.part(budget.work * work, seconds)
        before = given.work
        generation = Generation(
            self._problem,
            led.base,
            self.best.bounds.fleet.rows,
            self.stop,
            self.best.state,
            self.jobs,
            full=full or self.best.full,
            roomy=saves,
            brief=brief,
        )
        for candidate in generation.run(given, led.known, construction):
            if generation.spares:
                candidate = tidied(self._problem, candidate, self.stop, given.part(0.0, _TIDYING_TIME).out_of_time)
            self.best.offer(candidate)
            found.append(candidate)
            if self.best.close_enough() or budget.out_of_time() or self.choosing.due(budget):
                break
            if not astray and self.astray(led, generation.worth):
                break
        budget.work -= before - given.work
        idle = leaves_idle(self._problem)  # of which mixtures for what is admitted know nothing
        settled = saves or not (self.crowded or idle)
        return Mixed(found, generation.planned or led.planned, settled, generation.worth)

    def astray(self, led: Lead, worth: Mapping[int, float]) -> bool:
        """Tell whether patterns have far less of a band than the LP that was followed: for where gangs are, it seems.

        Of several bands the last one is left out, which may have what earlier ones lack.
        """
        if not (self._gangs and led.admitted and worth):
            return False
        there, bands = worth_of(self._problem, led.admitted), self._problem.spec.bands
        return any(worth[band] < (1 - _ASTRAY) * there[band] for band in bands[:-1] or bands)

    def late(self, budget: Budget, construction: float) -> Iterator[bool]:
        """Wait until hardly anything but cost is left to decide, and mix patterns for the least, if there is time.

        Yields whether it has been.
        """
        for _ in range(_VISITS):
            if budget.units() <= _AMPLE or self.best.close_enough():
                return
            if self._saves and self.best.full_but_for(WIDE):
                self.mix(budget, Lead((), self.best.state), construction, full=True)
                yield True
                return
            yield False

    @property
    def _problem(self) -> Problem:
        return self.best.problem

    @property
    def _saves(self) -> bool:
        """Whether cost is left to decide."""
        return roomy(self._problem, self.best.now, FULL)

    @property
    def many(self) -> bool:
        """Whether there are so many nodes that placing replicas takes longer than mixing patterns."""
        return len(self._problem.nodes) > MANY_NODES

    @property
    def crowded(self) -> bool:
        """Whether few nodes have many sides and domains, so that most patterns are used in part."""
        return self.best.bounds.fleet.large and len(self._problem.nodes) <= _FEW_NODES

    @property
    def _gangs(self) -> bool:
        return any(shape.workload.joint for shape in self._problem.shapes)
