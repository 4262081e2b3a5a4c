"""A part's model is the whole model with everything outside the part held fixed."""

from __future__ import annotations

from random import Random

from tests.support.tiny_specs import tiny

from dovetail.engine.construction.construct import construct
from dovetail.engine.parts.rounds import windows
from dovetail.engine.solvers.answer import Effort, Verdict
from dovetail.engine.solvers.cpsat import CpSat
from dovetail.linear import Linear
from dovetail.model.legal import legalise
from dovetail.model.part import PartModel
from dovetail.model.score import debt, score, view_of
from dovetail.model.state import Fill, State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of

SEEDS = range(150)


class Unordered(PartModel):
    """A part whose interchangeable nodes and GPUs may hold anything in any order, as a given state has it."""

    def _add_symmetry(self) -> None:
        return


def start_of(seed: int) -> tuple[Problem, State] | None:
    """Return a tiny problem and a legal state of it, None where the seed gives none; some states hold little."""
    problem = compile_problem(context_of(tiny(seed)))
    state = today_state(problem)
    if seed % 3:
        state = construct(problem, state, Stop())
    state = legalise(problem, state)
    hard = frozenset(policy.name for policy in problem.spec.policies if policy.enforcement.kind == "hard")
    view = view_of(problem, state)
    today = problem.context.today
    stays = all(view.places.get(replica) == today.places[replica] for replica in today.fixed)
    sound = stays and today.protected <= view.places.keys() and not debt(problem, view, hard)
    return (problem, state) if sound else None


def optimum(part: PartModel, problem: Problem, state: State) -> tuple[int, ...] | None:
    """Return the score of a part's best solution, tier after tier, None where it has none."""
    engine = CpSat(part.model)
    values: list[int] | None = None
    for objective in windows(part, problem.search_tiers):
        answer = engine.solve(objective, "max", Effort(20.0), None, Stop())
        if answer.verdict is not Verdict.OPTIMAL or answer.values is None:
            return None
        values = answer.values
        part.model.require(objective, lower=objective.value(values))
    return score(problem, state.with_fills(part.variables.fills(values or [])))


def held(problem: Problem, state: State, free: set[int]) -> PartModel:
    """Return the model of the whole with every node but some held as a state has it."""
    whole = Unordered(problem, range(len(problem.nodes)), state)
    for node in set(range(len(problem.nodes))) - free:
        fill = state.fill(node)
        for slot, variable in whole.variables.slots[node].items():
            whole.model.require(Linear.of(variable), lower=fill.slots[slot], upper=fill.slots[slot])
        for place, variable in whole.variables.keeps[node].items():
            whole.model.require(Linear.of(variable), lower=fill.kept[place], upper=fill.kept[place])
    return whole


def test_the_optimum_of_a_part_is_that_of_the_whole_with_the_rest_held() -> None:
    tried = 0
    for seed in SEEDS:
        start = start_of(seed)
        if start is None or len(start[0].nodes) < 2:
            continue
        problem, state = start
        free = Random(seed).sample(range(len(problem.nodes)), Random(-seed).randint(1, len(problem.nodes) - 1))
        expected = optimum(held(problem, state, set(free)), problem, state)
        assert expected is not None
        assert optimum(PartModel(problem, free, state), problem, state) == expected, f"seed {seed}, nodes {free}"
        tried += 1
    assert tried > len(SEEDS) // 3


def test_totals_kept_along_are_those_counted_afresh() -> None:
    for seed in range(60):
        problem = compile_problem(context_of(tiny(seed)))
        one, other = today_state(problem), construct(problem, today_state(problem), Stop())
        for node in Random(seed).sample(range(len(problem.nodes)), len(problem.nodes)):
            one.totals()
            one = one.with_fills({node: other.fill(node).copy() if seed % 2 else Fill()})
            fresh = State(one.fills)
            assert one.admitted() == fresh.admitted()
            assert one.kept() == fresh.kept()
            assert {s: w for s, w in one.totals().where.items() if w} == fresh.totals().where


def test_a_hint_is_what_the_state_holds_in_an_order_that_every_row_allows() -> None:
    for seed in range(150):
        start = start_of(seed)
        if start is None:
            continue
        problem, state = start
        part = PartModel(problem, range(len(problem.nodes)), state)
        hint = part.variables.hint(state)
        for row in part.model.rows:
            if row.when is None and all(variable in hint for variable in row.variables):
                value = sum(c * hint[v] for v, c in zip(row.variables, row.coefficients, strict=True))
                assert row.lower is None or value >= row.lower, f"seed {seed}"
                assert row.upper is None or value <= row.upper, f"seed {seed}"
        values = [hint.get(variable, 0) for variable in range(len(part.model.lower))]
        assert score(problem, State(part.variables.fills(values))) == score(problem, state), f"seed {seed}"
