"""Parts of a search as jobs: plain data in, plain data out, done wherever an executor takes them.

A job does not know the cluster, and its answer depends on nothing but itself, so that a search gives the same result
in one process, on many, or on a cluster of machines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Protocol, TypeVar

from dovetail.engine.processes import begin_helping, context_to_start
from dovetail.engine.solvers.answer import Effort, Verdict
from dovetail.linear import Linear, Model
from dovetail.progress import Limits, Stop

_MOST_LOSSES = 3  # rounds that may be lost before everything is done in this process
_TICK = 0.1
_OVERRUN = 1.0  # seconds beyond the deadline until what still runs is given up


Answer_co = TypeVar("Answer_co", covariant=True)
Answer = TypeVar("Answer")


class Job(Protocol[Answer_co]):
    """Plain data that can be sent to another process and worked on there."""

    def run(self, stop: Stop) -> Answer_co:
        """Return the answer: to the same job always the same, unless time or `stop` cuts it off."""


@dataclass(frozen=True, slots=True)
class SolveJob:
    """A model, and expressions to maximise one after the other, each held while the next is improved.

    Parameters
    ----------
    hint : values of variables to start from.
    effort : what all expressions together may take.
    """

    model: Model
    objectives: tuple[Linear, ...]
    hint: Mapping[int, int]
    effort: Effort

    def run(self, stop: Stop) -> JobAnswer:
        """Return the best values found."""
        from dovetail.engine.solvers.cpsat import CpSat

        model = replace(self.model, rows=list(self.model.rows))
        engine, hint = CpSat(model), self.hint
        values, closed, work = None, True, 0.0
        for objective in self.objectives:
            effort = replace(self.effort, work=max(self.effort.work - work, 0.05))
            answer = engine.solve(objective, "max", effort, hint, stop)
            work += answer.work
            closed = closed and answer.verdict is Verdict.OPTIMAL
            if answer.values is None:
                break
            values, hint = answer.values, dict(enumerate(answer.values))
            model.require(objective, lower=objective.value(values))
        return JobAnswer(values, closed, work)


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """The best values found, None without any; whether every expression was solved to proof; the work it took."""

    values: list[int] | None
    closed: bool
    work: float


def _run(job: Job[Answer]) -> Answer:
    return job.run(Stop())


def _unheard(message: str) -> None:
    """Tell nobody."""


def process_pool(processes: int, private: Connection | None = None) -> Executor:
    """Return an executor that solves jobs in processes of this machine, which end with this one.

    Parameters
    ----------
    private : a connection whose other end must see that it is closed when this process ends.
    """
    context = context_to_start()
    copied = (private,) if context.get_start_method() == "fork" else ()
    return ProcessPoolExecutor(processes, mp_context=context, initializer=begin_helping, initargs=copied)


def _nothing() -> None:
    """Make a pool start its processes."""


def _import_solver() -> None:
    """Make a process import the solver before it is needed."""
    import dovetail.engine.solvers.cpsat  # noqa: F401


@dataclass(slots=True)
class Jobs:
    """Where a search has its jobs solved.

    Parameters
    ----------
    make : makes an executor, and another one where that breaks; None solves in this process.
    processes : how many jobs the executor can solve side by side.
    owned : whether the executor is closed with this.
    warn : is told what was lost.
    """

    make: Callable[[], Executor] | None = None
    processes: int = 1
    owned: bool = True
    warn: Callable[[str], None] = _unheard
    _executor: Executor | None = None
    _losses: int = 0

    @classmethod
    def for_limits(cls, limits: Limits, private: Connection | None = None) -> Jobs:
        """Return jobs on as many processes as a search may have; `private` is not theirs to hold."""
        processes = limits.processes
        return cls((lambda: process_pool(processes, private)) if processes > 1 else None, processes)

    @classmethod
    def on(cls, executor: Executor, processes: int) -> Jobs:
        """Return jobs on an executor of the caller's, who closes it too."""
        return cls(lambda: executor, processes, owned=False)

    def start(self) -> None:
        """Start the processes, best while nothing else runs in this one that a fork could catch at a bad moment."""
        if self._executor is None and self.make is not None:
            try:
                self._executor = self.make()
                self._executor.submit(_nothing)
            except (OSError, BrokenExecutor) as error:
                self._lost(error)

    def warm_up(self) -> None:
        """Let the processes import the solver while this one is busy with something else."""
        self.start()
        if self._executor is None:
            return
        try:
            for _ in range(self.processes):
                self._executor.submit(_import_solver)
        except (OSError, BrokenExecutor) as error:
            self._lost(error)

    def solve(self, jobs: Iterable[Job[Answer]], stop: Stop, deadline: float | None = None) -> list[Answer | None]:
        """Return an answer per job, in order: None where it was lost or came too late, fewer where none was taken.

        Parameters
        ----------
        jobs : taken one by one, so that the first is solved while the next is made.
        deadline : on the monotonic clock; what runs long beyond it is given up.
        """
        self.start()
        if self._executor is None:
            return [None if stop else job.run(stop) for job in jobs]
        try:
            futures = [self._executor.submit(_run, job) for job in jobs]
        except (OSError, BrokenExecutor) as error:
            self._lost(error)
            return []
        _await(futures, stop, deadline)
        return self._answers(futures)

    def _answers(self, futures: list[Future[Answer]]) -> list[Answer | None]:
        answers: list[Answer | None] = []
        failure: BaseException | None = None
        for future in futures:
            error = future.exception() if future.done() else None
            failure = failure or error
            answers.append(future.result() if future.done() and error is None else None)
            future.cancel()
        if failure is not None:
            self._lost(failure)
        return answers

    def _lost(self, error: BaseException) -> None:
        """Give up an executor that lost a job; after several of them solve in this process."""
        self._losses += 1
        self.close()
        if self._losses >= _MOST_LOSSES:
            self.make = None
        rest = "it is started anew" if self.make else "the search goes on in one process"
        self.warn(f"a process that solves parts of the problem was lost ({type(error).__name__}); {rest}")

    def close(self) -> None:
        """Let the processes go."""
        if self._executor is not None and self.owned:
            self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = None


def _await(futures: list[Future[Answer]], stop: Stop, deadline: float | None) -> None:
    """Wait until all are done, or until the search is to stop or too late."""
    waiting = set(futures)
    while waiting and not stop:
        if deadline is not None and time.monotonic() > deadline + _OVERRUN:
            return
        waiting = wait(waiting, timeout=_TICK).not_done
