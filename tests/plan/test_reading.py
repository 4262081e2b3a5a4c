"""Plan files are read back exactly, and refused with every fault at its place."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from decimal import Decimal

import pytest
from tests.support.specs import place, places
from tests.verify.mutators import base

from dovetail.faults import Refused
from dovetail.placement import Place
from dovetail.plan import Outcome, Plan, SecondOpinion, current_of, read, to_document, write
from dovetail.rules.base import Told
from dovetail.spec import Options, PresentReplica, ReplicaId, Setting

DIGEST = "sha256:" + 64 * "0"


def test_a_full_plan_reads_back() -> None:
    _, plan = base()
    opinion = SecondOpinion("other", False, {"cost": None}, conclusive=False)
    plan = replace(plan, second_opinion=opinion, outcome=Outcome("feasible", "work", True))
    plan = replace(plan, current=DIGEST, options=Options(0, ("x/svc", "y/run")))
    assert read(write(plan), "plan.yaml") == plan
    assert read(json.dumps(to_document(plan)), "plan.json") == plan


@pytest.mark.parametrize(
    ("options", "row"),
    [
        (Options(3), "{maxMoves: 3}"),
        (Options(0), "{maxMoves: 0}"),
        (Options(pins=("a/b", "c")), "{pins: [a/b, c]}"),
        (Options(3, ("c",)), "{maxMoves: 3, pins: [c]}"),
    ],
)
def test_limits_of_the_command_line_are_told_where_there_are_any(options: Options, row: str) -> None:
    plan = Plan("p", DIGEST, Outcome("unknown"), current=DIGEST, options=options)
    assert f"  inputs: {DIGEST}\n  current: {DIGEST}\n  options: {row}\n  outcome:" in write(plan)
    assert read(write(plan), "plan.yaml") == plan
    assert "options" not in write(replace(plan, options=Options()))


def test_ranges_and_singles_mean_the_same() -> None:
    def text(rows: str) -> str:
        return write(Plan("p", DIGEST, Outcome("feasible"))).replace("placements: {}", f"placements: {rows}")

    spelled = read(text("{w#0: {node: n}, w#1: {node: n}, w#2: {node: n}}"), "plan.yaml")
    assert read(text("{w#0-2: {node: n}}"), "plan.yaml") == spelled
    assert write(spelled) == text("{w#0-2: {node: n}}").replace(" {w#0-2: {node: n}}", "\n    w#0-2: {node: n}")


def test_figures_are_exact_whatever_they_were_written_like() -> None:
    empty = write(Plan("p", DIGEST, Outcome("feasible")))
    text = empty.replace("summary: {}", "summary: {gpusTotal: 3.0, gpusUsed: 1.50}")
    summary = read(text, "plan.yaml").summary
    assert summary == {"gpusUsed": Decimal("1.5"), "gpusTotal": 3}
    assert isinstance(summary["gpusTotal"], int)


def test_figures_are_exact_however_many_digits_they_have() -> None:
    empty = write(Plan("p", DIGEST, Outcome("feasible")))
    text = empty.replace("summary: {}", f"summary: {{gpusTotal: 24.{39 * '0'}1}}")
    assert read(text, "plan.yaml").summary["gpusTotal"] != 24


@pytest.mark.parametrize("file", ["plan.yaml", "plan.json"])
def test_rates_are_told_in_whole_thousandths(file: str) -> None:
    def text(served: str) -> str:
        empty = to_document(Plan("p", DIGEST, Outcome("feasible")))
        rows = {"w": {"state": "none", "replicas": 0, "of": 1, "served": "S", "rate": 9}}
        promises = {"w": {"missing": 1, "served": 1, "rate": "S"}}
        spec = {**empty["spec"], "admitted": rows, "promises": promises}
        return json.dumps({**empty, "spec": spec}).replace('"S"', served)

    for served, thousandths in (("2", 2000), ("2.0", 2000), ("1.667", 1667), ("1.6670", 1667), ("5e-1", 500)):
        plan = read(text(served), file)
        assert (plan.admitted["w"].served, plan.admitted["w"].rate) == (thousandths, 9000)
        assert (plan.promises["w"].served, plan.promises["w"].rate) == (1000, thousandths)
    for served in ("2.0001", "25.5001", f"2.{40 * '0'}1", "1e-999"):
        with pytest.raises(Refused) as refused:
            read(text(served), file)
        assert [fault.code for fault in refused.value.faults] == ["DT2012", "DT2012"]


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "column"),
    [
        ("w#1: {node: n}", "w#0: {node: n, gpus: [1]}", "DT1005", 10, 5),
        ("w#1: {node: n}", "w#0-2: {node: n}", "DT2002", 10, 5),
        ("w#1: {node: n}", "w#3-1: {node: n}", "DT2003", 10, 5),
        ("w#1: {node: n}", "w#01: {node: n}", "DT2003", 10, 5),
        ("w#1: {node: n}", "w#1-9999999: {node: n}", "DT2004", 10, 5),
        ("w#1: {node: n}", "w#1: {node: n, gpus: [2, 1]}", "DT2005", 10, 26),
        ("w#1: {node: n}", "w#1: {node: n, gpus: [1000000000000]}", "DT1106", 10, 27),
        ("gap: 0.5", "gap: 0.25", "DT2006", 7, 49),
        ("value: 1", "value: 2", "DT2006", 7, 49),
        ("summary: {}", "summary: {moves: many}", "DT1103", 8, 20),
        ("summary: {}", "summary: {gpusTotal: 1e400}", "DT2011", 8, 24),
        ("summary: {}", "summary: {}\n  promises: {w: {missing: 1, rate: 25.5001}}", "DT2012", 9, 36),
    ],
)
def test_faults_are_told_at_their_places(old: str, new: str, code: str, line: int, column: int) -> None:
    text = f"""\
apiVersion: dovetail/v1alpha1
kind: Plan
metadata: {{name: p}}
spec:
  inputs: {DIGEST}
  outcome: {{status: feasible}}
  tiers: [{{name: cost, value: 1, bound: 2, gap: 0.5, unit: u}}]
  summary: {{}}
  placements: {{w#0: {{node: n, gpus: [0]}},
    w#1: {{node: n}}}}
"""
    assert read(text, "plan.yaml").tiers[0].sense == "min"
    with pytest.raises(Refused) as refused:
        read(text.replace(old, new, 1), "plan.yaml")
    fault = refused.value.faults[0]
    assert fault.position is not None
    assert fault.position.file == "plan.yaml"
    assert (fault.code, fault.position.line, fault.position.column) == (code, line, column)


def test_a_document_of_another_kind_is_refused() -> None:
    text = "apiVersion: dovetail/v1alpha1\nkind: Project\nmetadata: {name: p}\nspec: {documents: [a.yaml]}\n"
    with pytest.raises(Refused) as refused:
        read(text, "plan.yaml")
    assert [fault.code for fault in refused.value.faults] == ["DT2001"]


def test_a_tier_told_twice_is_refused() -> None:
    _, plan = base()
    with pytest.raises(Refused) as refused:
        read(write(replace(plan, tiers=(*plan.tiers, plan.tiers[0]))), "plan.yaml")
    assert [fault.code for fault in refused.value.faults] == ["DT2007"]


HELD = "  held:\n    h: [{node: n, gpus: [0], instance: 3g.40gb@4}, {domain: west/r1}]\n"


def test_instances_held_free_read_back() -> None:
    empty = write(Plan("p", DIGEST, Outcome("feasible")))
    plan = read(empty + HELD, "plan.yaml")
    assert plan.held == {"h": Told((Place("n", (0,), "3g.40gb@4"),), ("west/r1",))}
    assert read(write(plan), "plan.yaml") == plan


@pytest.mark.parametrize(("old", "new"), [("@4", ""), ("gpus: [0]", "gpus: [0, 1]")])
def test_an_instance_held_free_is_on_one_gpu_and_has_a_start(old: str, new: str) -> None:
    empty = write(Plan("p", DIGEST, Outcome("feasible")))
    with pytest.raises(Refused) as refused:
        read(empty + HELD.replace(old, new), "plan.yaml")
    assert [fault.code for fault in refused.value.faults] == ["DT2009"]


SHARED = "  gpus: {n/0: {mode: mps, clients: 3}, n/1: {mode: mig, instances: [3g.40gb@4]}}\n"


def test_modes_of_gpus_read_back() -> None:
    plan = read(write(Plan("p", DIGEST, Outcome("feasible"))) + SHARED, "plan.yaml")
    assert plan.shared == {"n/0": Setting("mps", 3)}
    assert list(plan.gpus) == ["n/1"]
    assert read(write(plan), "plan.yaml") == plan


@pytest.mark.parametrize(("old", "new"), [(", clients: 3", ""), ("mps", "mig"), ("[3g.40gb@4]", "[], clients: 2")])
def test_a_mode_is_told_in_full(old: str, new: str) -> None:
    with pytest.raises(Refused) as refused:
        read(write(Plan("p", DIGEST, Outcome("feasible"))) + SHARED.replace(old, new), "plan.yaml")
    assert [fault.code for fault in refused.value.faults] == ["DT2010"]


@pytest.mark.parametrize("text", ["", "---\n", "{}\n"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        read(text, "plan.yaml")


def test_two_plans_in_one_file_are_refused() -> None:
    one = write(Plan("p", DIGEST, Outcome("unknown")))
    with pytest.raises(Refused) as refused:
        read(f"{one}---\n{one}", "plan.yaml")
    assert [fault.code for fault in refused.value.faults] == ["DT2001"]


def test_a_base_plan_is_a_current_state() -> None:
    plan = Plan("p", DIGEST, Outcome("feasible"), placements=places({"w#1": place("b", 2), "w#0": place("a")}))
    current = current_of(plan)
    assert current.replicas == (
        PresentReplica(ReplicaId("w", "", 0), "a"),
        PresentReplica(ReplicaId("w", "", 1), "b", (2,)),
    )
    assert current.elapsed == {}
    assert current.from_outside


@pytest.mark.limits
def test_a_plan_of_100_000_rows_reads_back_in_time() -> None:
    replicas = (ReplicaId(f"t/w{i // 1000}", "", i % 1000) for i in range(100_000))
    rows = {replica: Place(f"gpu-{i % 12_500:05d}", (i % 8,)) for i, replica in enumerate(replicas)}
    plan = Plan("big", DIGEST, Outcome("feasible"), placements=rows)
    text = write(plan)
    start = time.process_time()
    assert read(text, "plan.yaml") == plan
    assert time.process_time() - start < 8
