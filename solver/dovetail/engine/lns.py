"""Improvement over small parts of the cluster, each part exact with all rules (E3).

A part's objective is the tiers themselves, weighed so that an earlier one is never traded for a later one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dovetail.engine.answer import Effort, Verdict
from dovetail.engine.cpsat import CpSat
from dovetail.linear import Linear
from dovetail.model.part import PartModel
from dovetail.model.score import score
from dovetail.model.state import State
from dovetail.objectives import Tier
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.spec.workload import MILLI

_SMALLEST, _LARGEST = 3, 24  # nodes of a part
_PATIENCE = 4  # parts solved to proof in a row before larger ones are tried
_WIDEST = 1 << 48  # beyond this a combined objective loses exactness inside LP relaxations


@dataclass(frozen=True, slots=True)
class Step:
    """What re-planning a part gave: the state, and whether the part was solved to proof."""

    state: State
    closed: bool
    work: float


def improve_part(
    problem: Problem,
    state: State,
    nodes: Sequence[int],
    tiers: Sequence[Tier],
    effort: Effort,
    stop: Stop,
    relaxed: frozenset[str] = frozenset(),
) -> Step:
    """Re-plan some nodes exactly, what they hold now as the incumbent: the result is never worse."""
    part = PartModel(problem, nodes, state, relaxed)
    engine = CpSat(part.model)
    hint = part.variables.hint(state)
    values, closed, work = None, True, 0.0
    for objective in windows(part, tiers):
        answer = engine.solve(objective, "max", replace(effort, work=max(effort.work - work, 0.05)), hint, stop)
        work += answer.work
        closed = closed and answer.verdict is Verdict.OPTIMAL
        if answer.values is None:
            break
        values, hint = answer.values, dict(enumerate(answer.values))
        part.model.require(objective, lower=objective.value(values))
    fills = None if values is None else part.variables.fills(values)
    if fills is None or all(fill == state.fill(node) for node, fill in fills.items()):
        return Step(state, closed, work)
    found = state.with_fills(fills)
    if (relaxed or not closed) and score(problem, found, relaxed) < score(problem, state, relaxed):
        return Step(state, closed, work)
    return Step(found, closed, work)


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
    expression = tier.encode(part)
    return expression if tier.sense == "max" else expression.scaled(-1)


class Neighbourhoods:
    """Draws parts of the cluster to re-plan, reproducibly from a seed, their size fitted to what closes.

    Half the parts are random nodes; the others lean to nodes with idle GPU, whose odd remainders can be traded.
    """

    def __init__(self, problem: Problem, size: int = 6, seed: int = 1) -> None:
        self.problem = problem
        self.size = size
        self._random = random.Random(seed)
        self._wide = False
        self._streak = 0

    def draw(self, state: State) -> list[int]:
        """Return node indices, all of them where there are no more than the size."""
        count = len(self.problem.nodes)
        if self.size >= count:
            return list(range(count))
        self._wide = not self._wide
        if self._wide:
            return sorted(self._random.sample(range(count), self.size))
        idle = [idle_milli(self.problem, state, node) + 50 for node in range(count)]
        keys = [self._random.random() ** (1.0 / weight) for weight in idle]
        return sorted(sorted(range(count), key=lambda node: -keys[node])[: self.size])

    def learn(self, closed: bool) -> None:
        """Try larger parts after several in a row that were solved to proof, smaller ones after one that was not."""
        self._streak = self._streak + 1 if closed else 0
        if not closed:
            self.size = max(self.size - 1, _SMALLEST)
        elif self._streak >= _PATIENCE:
            self.size, self._streak = min(self.size + 1, _LARGEST), 0


def idle_milli(problem: Problem, state: State, node: int) -> int:
    """Return the milli-GPU of a node's healthy GPUs that nothing uses."""
    used = sum(count * problem.shapes[slot.shape].request.gpu_milli for slot, count in state.fill(node).slots.items())
    return MILLI * len(problem.nodes[node].healthy_gpus()) - used
