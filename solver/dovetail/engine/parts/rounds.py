"""Rounds of improvement: several disjoint parts planned anew side by side, their answers applied in order.

All parts of a round start from one state, so none knows what the others do. What waits is divided among them before,
and a later answer is judged again, by the exact rows of its part, once an earlier one has changed the state. The
result therefore does not depend on who solves the parts, nor on who is done first.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.engine.parts.jobs import JobAnswer, Jobs, SolveJob
from dovetail.engine.solvers.answer import Effort, Verdict
from dovetail.engine.solvers.cpsat import CpSat
from dovetail.linear import Linear, Model
from dovetail.model.part import PartModel
from dovetail.model.state import Fill, State
from dovetail.objectives import Tier, sign_of
from dovetail.problem import Problem
from dovetail.progress import Stop

_WIDEST = 1 << 48  # beyond this a combined objective loses exactness inside LP relaxations
_BUILT = 6.5e-5  # units of work per variable of a part, to build and to presolve it
_JUDGING = Effort(1.0)  # with every count fixed, presolve alone does it


@dataclass(frozen=True, slots=True)
class Round:
    """What came of a round: the state, per part whether it was solved to proof, the work, and whether it is better.

    A state that is as good as the one before may be another one all the same. `lost` tells whether a part had no
    solution at hand in the end, not even what its nodes hold: what is held may not be so by its rows.
    """

    state: State
    closed: tuple[bool, ...]
    work: float
    better: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """What a round is for.

    Parameters
    ----------
    relaxed : hard policies that the state breaks: less of that comes before anything else.
    held : those of the tiers of which nobody expects more, which are only kept as they are.
    """

    problem: Problem
    tiers: Sequence[Tier]
    relaxed: frozenset[str] = frozenset()
    held: Sequence[Tier] = ()


@dataclass(frozen=True, slots=True)
class _Draft:
    """The exact model of a part, and what to maximise in it one after the other."""

    part: PartModel
    objectives: Sequence[Linear]

    @classmethod
    def of(cls, task: Task, nodes: Iterable[int], state: State, share: Mapping[int, int] | None = None) -> _Draft:
        """Return the model of some nodes for a task, everything else as a state has it.

        Parameters
        ----------
        share : how much of what waits it may place, where that is not all.
        """
        part = PartModel(task.problem, nodes, state, task.relaxed)
        if share is not None:
            _hold_back(part, state, share)
        sought = [tier for tier in task.tiers if tier not in task.held or not _hold(part, tier, state)]
        return cls(part, windows(part, sought))

    def reached(self, state: State) -> list[int] | None:
        """Return what a state achieves in every objective, None where it breaks a row."""
        return _reached(self.part.model, self.objectives, self.part.variables.hint(state))


def improve(
    task: Task,
    state: State,
    parts: Sequence[Sequence[int]],
    effort: Effort,
    jobs: Jobs,
    stop: Stop,
    deadline: float | None = None,
    turn: int = 0,
) -> Round:
    """Plan disjoint sets of nodes anew, each exactly and with what it holds now as the incumbent: never worse.

    Parameters
    ----------
    effort : for each part; `deadline` limits its seconds too.
    turn : which parts come first where what waits is divided; another number in every round is fair.
    """
    drafts: list[_Draft] = []

    def made() -> Iterator[SolveJob]:
        for nodes, share in zip(parts, divided(task.problem, state, len(parts), turn), strict=True):
            drafts.append(_Draft.of(task, nodes, state, share))
            part = drafts[-1].part
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            limited = replace(effort, seconds=left)
            unnamed = replace(part.model, names=[])  # nobody there asks for names
            yield SolveJob(unnamed, tuple(drafts[-1].objectives), part.variables.hint(state), limited)

    answers = jobs.solve(made(), stop, deadline)
    now, closed, work, gained, lost = state, [], 0.0, False, False
    for draft, answer in zip(drafts, answers, strict=False):
        if answer is not None:
            now, better = _applied(task, state, now, draft, answer)
            gained |= better
            lost |= answer.values is None
            closed.append(answer.closed)
            work += answer.work + _BUILT * len(draft.part.model.lower)
    return Round(now, tuple(closed), work, gained, lost)


def divided(problem: Problem, state: State, parts: int, turn: int = 0) -> Sequence[Mapping[int, int]]:
    """Return per part how many waiting replicas of each shape it may place.

    Replicas that count together only, as those of a gang do, are not divided.
    """
    shares: list[dict[int, int]] = [{} for _ in range(parts)]
    admitted = state.totals().admitted
    for shape in problem.shapes:
        waiting = shape.demand - admitted[shape.index]
        if waiting > 0 and shape.workload.joint:
            first = problem.shapes_of_workload[shape.workload.id][0]
            shares[(first + turn) % parts][shape.index] = waiting
        elif waiting > 0:
            least, more = divmod(waiting, parts)
            for position, share in enumerate(shares):
                share[shape.index] = least + ((position + shape.index + turn) % parts < more)
    return shares


def _hold(part: PartModel, tier: Tier, state: State) -> bool:
    """Keep a tier no worse than in a state, if counts alone say what that is; tell whether they do."""
    expression, counts = _ascending(part, tier), part.variables.hint(state)
    if not expression.terms.keys() <= counts.keys():
        return False
    part.model.require(expression, lower=expression.value(counts))
    return True


def _hold_back(part: PartModel, state: State, share: Mapping[int, int]) -> None:
    """Keep a part from placing more of what waits than its share."""
    model, admitted = part.model, state.totals().admitted
    for shape, counts in part.variables.of_shape.items():
        waiting = part.problem.shapes[shape].demand - admitted[shape]
        if share.get(shape, 0) >= waiting:
            continue
        most = admitted[shape] - part.variables.taken[shape] + share.get(shape, 0)
        for _, variable in counts:
            model.upper[variable] = min(model.upper[variable], most)
        model.require(Linear({variable: 1 for _, variable in counts}), upper=most)


def windows(part: PartModel, tiers: Sequence[Tier]) -> list[Linear]:
    """Return expressions to maximise one after the other, which together rank a part's solutions as the tiers do.

    Each joins as many tiers as fit exact arithmetic, an earlier one weighed beyond all that follow.
    """
    found: list[Linear] = []
    width = _WIDEST + 1
    for expression in [part.debt.scaled(-1), *(_ascending(part, tier) for tier in tiers)]:
        low, high = part.model.range_of(expression)
        if low == high:
            continue
        if width * (high - low + 1) > _WIDEST:
            found.append(expression)
            width = high - low + 1
        else:
            found[-1] = found[-1].scaled(high - low + 1).add(expression)
            width *= high - low + 1
    return found or [Linear()]


def _ascending(part: PartModel, tier: Tier) -> Linear:
    return tier.encode(part).scaled(sign_of(tier.sense))


def _applied(task: Task, start: State, now: State, draft: _Draft, answer: JobAnswer) -> tuple[State, bool]:
    """Return the state with a part as the answer has it, or as it was where that does no good any more.

    And whether it is better than before.
    """
    part = draft.part
    fills = None if answer.values is None else part.variables.fills(answer.values)
    if fills is None or all(fill == now.fill(node) for node, fill in fills.items()):
        return now, False
    found = now.with_fills(fills)
    if now is not start:
        draft = _Draft.of(task, part.free, now)
        if not _can_hold(draft.part, fills):
            return now, False
    wanted, held = draft.reached(found), draft.reached(now)
    better = wanted is not None and held is not None and wanted > held
    if now is start and answer.closed and not task.relaxed:
        return found, better  # what the part's own rows say is proved
    return (found, better) if wanted is not None and held is not None and wanted >= held else (now, False)


def _can_hold(part: PartModel, fills: Mapping[int, Fill]) -> bool:
    """Tell whether a part has variables for all that its nodes are to hold."""
    slots, keeps = part.variables.slots, part.variables.keeps
    return all(
        fill.slots.keys() <= slots[n].keys() and fill.kept.keys() <= keeps[n].keys() for n, fill in fills.items()
    )


def _reached(model: Model, objectives: Sequence[Linear], counts: Mapping[int, int]) -> list[int] | None:
    """Return what counts achieve in every objective, None where they break a row."""
    if any(not model.lower[v] <= count <= model.upper[v] for v, count in counts.items()):
        return None
    lower, upper = list(model.lower), list(model.upper)
    for variable, count in counts.items():
        lower[variable] = upper[variable] = count
    fixed = Model(lower, upper, [], list(model.rows), model.infeasible)
    engine, found = CpSat(fixed), []
    for objective in objectives:
        answer = engine.solve(objective, "max", _JUDGING, None, Stop())
        if answer.values is None or answer.verdict is not Verdict.OPTIMAL:
            return None
        found.append(objective.value(answer.values))
        fixed.require(objective, lower=found[-1])
    return found
