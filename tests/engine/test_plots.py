"""Once gangs are placed, nobody else is told apart by what only gangs ask for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.engine.test_gatherings import gangs, problem_of, ragged
from tests.support.specs import make_spec, policy, workload

from dovetail.engine.fleet.plots import dealt, widened
from dovetail.engine.generation.fleet_rows import fleet_rows
from dovetail.model.state import Fill, Slot, State
from dovetail.problem import Problem
from dovetail.proof.fleet import FleetModel
from dovetail.rules.spread import Spread
from dovetail.spec import Topology, WorkloadSelector

RACKS = [3, 2, 4]


def problem(*, spread: bool) -> Problem:
    """Return racks, a gang that has to be within one, and a service that may have to be spread over them."""
    over = replace(policy("few", Spread(over="rack", max_per_domain=1)), workloads=WorkloadSelector(names=("s",)))
    gang = replace(gangs(2)[0], topology=Topology(within="rack"))
    return problem_of(make_spec(ragged(RACKS), [gang, workload("s", 3, gpus=1)], (over,) if spread else ()))


@pytest.mark.parametrize("spread", [False, True])
def test_racks_are_told_apart_only_for_who_stands_alone(spread: bool) -> None:
    fleet = FleetModel(problem(spread=spread))
    assert [len(plot.members) for plot in fleet.plots_of[0]] == RACKS
    plots, of = widened(fleet, 0)
    assert [len(plot.members) for plot in plots] == (RACKS if spread else [sum(RACKS)])
    assert of == ([0, 1, 2] if spread else [0, 0, 0])
    lots = fleet_rows(fleet, State(), range(sum(RACKS))).lots
    assert [lot.nodes for lot in lots] == [plot.members for plot in plots]


def test_parts_of_cells_are_dealt_to_the_plots_around_them() -> None:
    fleet = FleetModel(problem(spread=False))
    gang = next(shape.index for shape in fleet.problem.shapes if shape.workload.joint)
    cells = fleet.cells_of[0][gang]
    values = {cell.variable: amount for cell, amount in zip(cells, (1.0, 0.0, 3.0), strict=True)}
    table = [values.get(variable, 0.0) for variable in range(max(values) + 1)]
    assert dealt(fleet.plots_of[0], (0, 1, 2), cells, table) == pytest.approx([0.25, 0.0, 0.75])
    assert dealt(fleet.plots_of[0], (0, 0, 1), cells, table) == pytest.approx([0.25, 0.75])


def test_gangs_that_stay_count_in_their_rows() -> None:
    fleet = FleetModel(problem(spread=False))
    gang = next(shape.index for shape in fleet.problem.shapes if shape.workload.joint)
    state = State({node: Fill(Counter({Slot(gang): 1})) for node in (3, 4)})
    bare, held = (fleet_rows(fleet, state, free) for free in (range(9), (0, 1, 2, 5, 6, 7, 8)))
    assert sum(bare.limits) + 2 == sum(held.limits)
    assert [lot.nodes for lot in held.lots] == [(0, 1, 2, 5, 6, 7, 8)]
