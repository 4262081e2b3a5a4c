"""A model that was written means what the engine solves: read back by other solvers it has the same optima."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import highspy
import pytest
from ortools.sat import cp_model_pb2
from ortools.sat.python import cp_model
from tests.oracle.brute import Optimum
from tests.oracle.sample import Case, cases
from tests.support.specs import make_spec, node, place, policy, workload

from dovetail.engine import solve
from dovetail.engine.write_model import FORMATS, TooLargeToWrite, write_model
from dovetail.linear import Model
from dovetail.model import written as module
from dovetail.model.formats import lp_text, mps_text
from dovetail.model.written import WrittenModel, written_model
from dovetail.problem import compile_problem
from dovetail.rules import context_of
from dovetail.rules.admission import Admission
from dovetail.rules.separate import Separate
from dovetail.spec import Spec

LEGAL = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,254}\Z")


@cache
def optima() -> list[tuple[Case, Optimum]]:
    """Tiny Specs on every theme, with what brute force finds."""
    return [(case, case.optimum) for case in cases(600, 24) if case.optimum is not None]


def written(spec: Spec) -> WrittenModel:
    return written_model(compile_problem(context_of(spec)))


def highs(folder: Path, content: bytes, suffix: str) -> Any:
    path = folder / f"model{suffix}"
    path.write_bytes(content)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_feasibility_tolerance", 1e-9)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    return solver


def highs_optima(solver: Any, model: WrittenModel) -> dict[str, int] | None:
    """Optimise tier after tier on what HiGHS has read, each held where it came out; None where nothing fits."""
    found = {}
    columns = {name: index for index, name in enumerate(solver.getLp().col_names_)}
    for index in columns.values():
        solver.changeColCost(index, 0.0)
    for tier in model.tiers:
        column = columns[model.names[tier.variable]]
        solver.changeObjectiveSense(highspy.ObjSense.kMaximize if tier.sense == "max" else highspy.ObjSense.kMinimize)
        solver.changeColCost(column, 1.0)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        found[tier.name] = round(solver.getObjectiveValue())
        solver.changeColCost(column, 0.0)
        solver.changeColBounds(column, found[tier.name], found[tier.name])
    return found


def read_proto(content: bytes) -> cp_model.CpModel:
    proto = cp_model_pb2.CpModelProto.FromString(content)
    model = cp_model.CpModel()
    model.proto.parse_text_format(str(proto))
    return model


def solved(model: cp_model.CpModel) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return solver


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_highs_reads_the_engine_s_optima_out_of_a_file(tmp_path: Path, suffix: str) -> None:
    assert len(optima()) >= 15
    for case, optimum in optima():
        model = written(case.spec)
        found = highs_optima(highs(tmp_path, write_model(case.spec, suffix), suffix), model)
        assert found is not None, f"seed {case.seed}"
        assert {name: found[name] for name in optimum.by_name} == optimum.by_name, f"seed {case.seed}"


def test_cp_sat_reads_the_first_tier_s_optimum_out_of_a_file() -> None:
    for case, optimum in optima():
        model = written(case.spec)
        if model.objective is not None:
            read = read_proto(write_model(case.spec, ".pb"))
            earlier = model.tiers[: model.tiers.index(model.objective)]
            assert all(model.model.lower[t.variable] == model.model.upper[t.variable] for t in earlier)
            assert round(solved(read).objective_value) == optimum.by_name[model.objective.name], f"seed {case.seed}"


def test_all_three_agree_on_work_of_every_kind(tmp_path: Path) -> None:
    spec = make_spec(
        [node("a", 4, price=7), node("b", 4, price=5), node("c", 2)],
        [
            workload("red/train", 2, gpus=2, type="gang", checkpoint_every=60_000),
            workload("blue/serve", 5, share=400, type="service"),
            workload("red/batch", 6, gpus=1),
            workload("blue/prep", 3, gpus=0, cpu=40_000),
        ],
        [policy("apart", Separate("tenant", "gpu")), policy("nodes", Separate("tenant", "node"), enforcement=2)],
        running={"red/batch#0": place("a", 1), "red/batch#1": place("c", 0), "blue/serve#0": place("b", 3)},
    )
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    told = {tier.name: tier.value for tier in plan.tiers}
    model = written(spec)
    assert model.objective is not None
    for suffix in (".lp", ".mps"):
        found = highs_optima(highs(tmp_path, write_model(spec, suffix), suffix), model)
        assert found is not None
        assert {name: found[name] for name in told} == told
    assert round(solved(read_proto(write_model(spec, ".pb"))).objective_value) == told[model.objective.name]


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_has_no_plan_has_none_when_read_back(tmp_path: Path, suffix: str) -> None:
    spec = make_spec([node("n", 1)], [workload("w", 2, gpus=1)], [policy("all", Admission())])
    content = write_model(spec, suffix)
    if suffix == ".pb":
        assert cp_model.CpSolver().solve(read_proto(content)) == cp_model.INFEASIBLE
    else:
        assert highs_optima(highs(tmp_path, content, suffix), written(spec)) is None


def test_every_name_is_legal_and_its_own() -> None:
    spec = make_spec(
        [node(name, 2) for name in ("e1-a", "e1.a", "e1_a", "E1-A", "1e5", "ü", "n" * 300)],
        [*(workload(f"t/w-{i}", 2, share=300) for i in range(3)), workload("u/w.0", 2, type="gang", gpus=1)],
        [policy("p-1", Separate("tenant", "gpu")), policy("p.1", Separate("namespace", "gpu"))],
        name="two\nlines \\ ü",
    )
    model = written(spec)
    for names in (model.names, model.row_names):
        assert len({name.lower() for name in names}) == len(names)
        assert [name for name in names if not LEGAL.match(name)] == []
    assert any(name.startswith("x.e1_a.t_w_0.and_") for name in model.names)
    assert {name.split(".")[0] for name in model.row_names} == {"node", "demand", "order", "policy", "tier"}
    for text in (lp_text(model), mps_text(model)):
        assert text.isascii()
        assert max(map(len, text.splitlines())) < 560
        assert "exact model of two?lines \\ ?, by dovetail" in text.splitlines()[0]


def test_the_same_documents_give_the_same_bytes() -> None:
    spec = optima()[0][0].spec
    assert all(write_model(spec, suffix) == write_model(spec, suffix) for suffix in FORMATS)


def test_what_is_too_large_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def built(self: object) -> Model:
        raise AssertionError("a model was built")

    monkeypatch.setattr(module, "LARGEST", 9)
    monkeypatch.setattr(module, "PartModel", built)
    spec = make_spec([node(f"n{i}", 4) for i in range(5)], [workload(f"w{i}", gpus=i + 1) for i in range(3)])
    with pytest.raises(TooLargeToWrite, match=r"at least 15 variables.* up to 9 are written"):
        written(spec)
