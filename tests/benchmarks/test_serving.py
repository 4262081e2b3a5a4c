"""Inference fleets are what they say, the autoscaler keeps to the rules, and the page tells both."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks import autoscaler, serving_page
from benchmarks.fleet import write
from benchmarks.measure import dovetail
from benchmarks.specs import case_of
from benchmarks.synthetic.deadlines import AS_OF
from benchmarks.synthetic.replan import today
from benchmarks.synthetic.serving import a_day_later, serving

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.placement import by_workload
from dovetail.spec import Spec
from dovetail.verify import verify

TWO_SERVICES = """\
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: small}
spec:
  reconfiguration: gpu
  nodeGroups:
  - {name: a100, count: 1, accelerator: A100-80GB, gpus: 1, cpu: 64, memory: 256Gi}
  - {name: h100, count: 1, accelerator: H100-80GB, gpus: 1, cpu: 64, memory: 256Gi}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: cut}
spec:
  type: service
  priority: 900
  request: {share: {compute: 0.05, memory: 4Gi}, cpu: 1}
  isolation: fault
  slo:
    rate: 1000
    performance:
    - {on: A100-80GB/1g.10gb, rate: 60}
    - {on: H100-80GB/2g.20gb, rate: 280}
    - {on: H100-80GB/1g.10gb, rate: 130}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: whole}
spec:
  type: service
  priority: 500
  request: {gpus: 1, cpu: 8}
  slo:
    rate: 300
    performance: [{on: A100-80GB, rate: 100}, {on: H100-80GB, rate: 200}]
"""


def spec_of(project: Path) -> Spec:
    return build(load_project(project), as_of=AS_OF)


def test_equal_arguments_give_equal_bytes_and_others_do_not() -> None:
    assert serving(1000, 3) == serving(1000, 3, 1.0)
    assert serving(1000, 3) != serving(1000, 4)
    low, high = serving(1000, 3, 0.8), serving(1000, 3, 1.2)
    assert {name for name in low if low[name] != high[name]} == {"workloads.yaml"}


@pytest.mark.parametrize("gpus", [200, 1000])
def test_an_inference_fleet_has_all_kinds_of_work_on_three_kinds_of_nodes(tmp_path: Path, gpus: int) -> None:
    write(serving(gpus, 1), tmp_path)
    assert dovetail("validate", tmp_path, "--as-of", str(AS_OF)).code == 0
    spec = spec_of(tmp_path)
    nodes = Counter(node.accelerator for node in spec.cluster.nodes)
    assert nodes.total() * 8 == gpus
    assert nodes["H100-80GB"] > nodes["A100-80GB"] > nodes["L40S-48GB"]
    kinds = Counter(workload.name.partition("-")[0] for workload in spec.workloads)
    assert set(kinds) == {"svc", "llm", "train", "job"}
    assert all(w.asks_rate == w.name.startswith(("svc", "llm")) for w in spec.workloads)
    dated = [w.slo for w in spec.workloads if w.slo is not None and not w.asks_rate]
    assert len(dated) == kinds["train"]
    assert all(slo.rate and not slo.late for slo in dated)


def test_single_services_grow_with_the_square_root_of_the_fleet() -> None:
    few, many = (serving(gpus, 1)["workloads.yaml"].count("kind: Workload\n") for gpus in (1000, 100_000))
    assert 7 < many / few < 14


def test_the_autoscaler_takes_what_serves_most_per_slice_then_the_next(tmp_path: Path) -> None:
    # Three instances of two slices on the H100, one of one slice beside them, and that is 970; one on the A100.
    (tmp_path / "all.yaml").write_text(TWO_SERVICES, encoding="utf-8")
    spec = spec_of(tmp_path)
    case = case_of(spec)
    places, note = autoscaler.place(case, 10.0)
    on = Counter((place.node, place.instance.partition("@")[0]) for place in places.values())
    assert on == {("h100-000", "2g.20gb"): 3, ("h100-000", "1g.10gb"): 1, ("a100-000", "1g.10gb"): 1}
    assert note == ""
    assert verify(spec, case.plan(places)).ok


def test_what_the_autoscaler_places_passes_the_verifier(tmp_path: Path) -> None:
    write(serving(200, 2, 1.2), tmp_path)
    spec = spec_of(tmp_path)
    case = case_of(spec)
    places, _ = autoscaler.place(case, 60.0)
    plan = case.plan(places)
    assert verify(spec, plan).ok
    assert {tier.name for tier in plan.tiers} >= {"admitted[900]", "admitted[500]", "admitted[100]", "slo", "cost"}
    assert {place.instance.partition("@")[0] for place in places.values()} > {"", "1g.10gb", "2g.20gb"}


def test_a_day_later_one_rate_in_five_is_another_and_the_autoscaler_goes_on_beside_what_runs(tmp_path: Path) -> None:
    before = serving(200, 2, 1.2)
    write(before, tmp_path)
    case = case_of(spec_of(tmp_path))
    places, _ = autoscaler.place(case, 60.0)
    running = {name: list(own.values()) for name, own in by_workload(places).items()}
    write(a_day_later(before, 1, today(running)), tmp_path)
    spec = spec_of(tmp_path)
    rates = {w.id: w.slo.rate for w in spec.workloads if w.slo is not None and w.asks_rate}
    was = {w.id: w.slo.rate for w in case.problem.spec.workloads if w.slo is not None and w.asks_rate}
    factors = [rates[name] / was[name] for name in rates if rates[name] != was[name]]
    assert 0.05 * len(rates) < len(factors) < 0.5 * len(rates)
    assert all(0.65 < factor < 1.35 for factor in factors)
    assert min(factors) < 1 < max(factors)
    case = case_of(spec)
    later, _ = autoscaler.place(case, 60.0)
    stays = case.context.today.places
    assert {replica: later.get(replica) for replica in stays} == stays
    assert verify(spec, case.plan(later)).ok


def test_an_autoscaler_out_of_time_says_what_it_left(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(TWO_SERVICES, encoding="utf-8")
    assert autoscaler.place(case_of(spec_of(tmp_path)), -1.0) == (
        {},
        "time up with 2 of 2 workloads not looked at",
    )


def test_the_section_tells_admission_beside_its_bound() -> None:
    def tier(name: str, value: int, bound: int) -> dict[str, object]:
        return {"name": name, "value": value, "bound": bound}

    told = [tier("admitted[900]", 990, 1000), tier("slo", 12, 3), tier("cost", 5_250_000, 5_000_000)]
    plan = {"seconds": 60, "fast": True, "took": 61.0, "failed": "", "stopped_by": "time", "first": 0.2}
    rival = {"rival": "greedy autoscaler", "seconds": 0.5, "failed": "", "note": "", "verified": False}
    values = {"admitted[900]": 900, "slo": 4000, "cost": 6_000_000}
    fleet = {"gpus": 1000, "load": 1.0, "plan": plan | {"verified": True, "tiers": told}}
    rows = "\n".join(serving_page.section([fleet | {"rivals": [rival | {"values": values}]}])).split("\n")
    assert "| 1,000 | 1 | bound | 1,000 | 3 | 5.00 | | |" in rows
    shown = "990 (99.00 %) | 12 | 5.25 | 61.0 s | first plan after 0.2 s, ended by time |"
    assert f"| 1,000 | 1 | **dovetail, 60 s, fast** | {shown}" in rows
    shown = "900 (90.00 %) | 4,000 | 6.00 | 0.5 s | (does not verify) |"
    assert f"| 1,000 | 1 | greedy autoscaler | {shown}" in rows


def test_the_section_on_changed_rates_tells_moves() -> None:
    tier = {"name": "disruption.moves", "value": 12, "bound": 3}
    plan = {"seconds": 60, "fast": True, "took": 61.0, "failed": "", "stopped_by": "time", "first": 0.2}
    fleet = {"gpus": 1000, "load": 1.0, "plan": plan | {"verified": True, "tiers": [tier]}, "rivals": []}
    rows = "\n".join(serving_page.changed([fleet])).split("\n")
    assert "| GPUs | load | planner | slo | cost/h | moves | seconds | |" in rows
    assert "| 1,000 | 1 | bound |  |  | 3 | | |" in rows
    assert (
        "| 1,000 | 1 | **dovetail, 60 s, fast** |  |  | 12 | 61.0 s | first plan after 0.2 s, ended by time |" in rows
    )


def test_a_fleet_without_a_plan_says_why() -> None:
    plan = {"seconds": 60, "fast": False, "took": 9.0, "failed": "exit 3", "tiers": []}
    rival = {
        "rival": "greedy autoscaler",
        "seconds": 0.0,
        "failed": "ended by force",
        "values": {},
        "verified": False,
    }
    rows = list(serving_page.table([{"gpus": 1000, "load": 1.0, "plan": plan, "rivals": [rival | {"note": ""}]}]))
    assert rows[2:4] == [
        "| 1,000 | 1 | **dovetail, 60 s** |  |  | 9.0 s | no plan: exit 3 |",
        "| 1,000 | 1 | greedy autoscaler |  |  | 0.0 s | ended by force |",
    ]
