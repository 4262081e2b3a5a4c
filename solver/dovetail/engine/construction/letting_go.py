"""What runs where a hard policy would not have it goes if it is preemptible, or others go for it (S4.5, S5.1).

What today breaks is mended before anything else, so that who may go without a place does so rather than stay where it
must not be, and who may not has the place of somebody who may. Both only where there is no other place (`mending`).
"""

from __future__ import annotations

from collections.abc import Callable

from dovetail.engine.construction.clearing import allowance
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.journal import Journal
from dovetail.engine.construction.leavers import Leaver
from dovetail.engine.construction.mending import Excess, broken_today
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.preempting import Preempting
from dovetail.model.legal import legalise
from dovetail.model.score import better
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop


def with_misplaced_gone(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state without preemptible work where hard policies would not have it, where that is a better plan.

    Parameters
    ----------
    state : one that breaks no hard policy beyond what is excused.
    over : tells when time has run out.
    """
    if not (broken_today(problem) and problem.context.today.preemptible) or stop or over():
        return state
    outlooks = Outlooks(Field(problem, state))
    excess = Excess(outlooks.field)
    left = excess.running()
    if not left:
        return state
    (budget, pinned), journal = allowance(problem, state), Journal(outlooks)
    # Whatever its band: what is broken comes before what is admitted.
    above = max(problem.spec.bands) + 1
    preempting = Preempting(journal, above, pinned, lambda: bool(stop) or over(), budget)
    moved, must = 0, list[Leaver]()
    for leaver in left:
        workload = problem.shapes[leaver.shape].workload
        if not workload.preemptible or workload.id in pinned:
            must.append(leaver)
        elif excess.any_of(leaver):
            journal.leave(leaver)
    journal.keep()
    for leaver in must:
        # Who made room for one before it is elsewhere already.
        if not (_there(outlooks.field, leaver) and preempting.victims.may_move(leaver) and excess.any_of(leaver)):
            continue
        journal.leave(leaver)
        if preempting.place(leaver.shape) and moved + leaver.moves + preempting.moves <= budget:
            moved += leaver.moves
            journal.keep()
        else:
            journal.undo()
    found = legalise(problem, construct(problem, legalise(problem, outlooks.field.state()), stop))
    return found if better(problem, found, state, frozenset()) else state


def _there(field: Field, leaver: Leaver) -> bool:
    """Tell whether a replica still stays where it runs."""
    fill = field.fills.get(leaver.put[0])
    return fill is not None and leaver.place is not None and fill.kept[leaver.place] > 0
