"""What is proved of the best state of a search stays proved."""

from __future__ import annotations

from tests.support.specs import make_spec, node, workload

from dovetail.engine.bounds import Bounds
from dovetail.engine.exact import Climb, TierAnswer
from dovetail.engine.incumbent import forget
from dovetail.engine.record import Record
from dovetail.engine.solvers.answer import Verdict
from dovetail.engine.start import start
from dovetail.problem import compile_problem
from dovetail.progress import Reporter, Stop
from dovetail.rules import context_of


def test_what_a_search_took_as_told_keeps_the_bound_of_the_search_before() -> None:
    spec = make_spec([node("a", 3)], [workload("g", 2, type="gang", gpus=2), workload("j", 1, gpus=2)])
    problem = compile_problem(context_of(spec))
    best = Record(problem, Bounds(problem, Stop()), Reporter(), forget, 0.0)
    best.state, _ = start(problem, None, Stop())
    tier = problem.tiers[0]
    found = [
        Climb(Verdict.FEASIBLE, best.state, (TierAnswer(tier, 2000, bound, True),), 0.0) for bound in (2000, None)
    ]
    for climb in found:
        best.take(climb)
    assert [answer.bound for answer in best.answers] == [2000]
    worse = Climb(Verdict.FEASIBLE, best.state, (TierAnswer(tier, 1000, None, False),), 0.0)
    best.take(worse)
    assert [answer.bound for answer in best.answers] == [None]
