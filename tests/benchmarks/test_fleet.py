"""Synthetic fleets are what their description says, and the same for the same arguments."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path

import pytest
from benchmarks import fleet as command
from benchmarks.fleet import fleet, later, write
from benchmarks.measure import dovetail
from benchmarks.synthetic.batch import HIGH, batch
from benchmarks.synthetic.deadlines import AS_OF
from benchmarks.synthetic.documents import ALL
from benchmarks.synthetic.instances import NEW, instances
from benchmarks.synthetic.losses import without_zone
from benchmarks.synthetic.shares import shares

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.problem import Problem, compile_problem
from dovetail.rules import context_of
from dovetail.spec import Spec

LOADS = (0.85, 1.0, 1.15)
DAY = dt.date(2026, 1, 1)


def spec_of(project: Path) -> Spec:
    return build(load_project(project), as_of=DAY)


def made(tmp_path: Path, gpus: int, seed: int = 1, load: float = 1.0) -> Spec:
    write(fleet(gpus, seed, load), tmp_path)
    return spec_of(tmp_path)


def problem_of(spec: Spec) -> Problem:
    return compile_problem(context_of(spec))


def capacity(spec: Spec) -> int:
    return 1000 * sum(len(node.healthy_gpus()) for node in spec.cluster.nodes)


def asked(spec: Spec) -> int:
    return sum(role.replicas * role.request.gpu_milli for workload in spec.workloads for role in workload.roles)


def test_equal_arguments_give_equal_bytes_and_another_seed_does_not() -> None:
    assert fleet(1000, 7, 1.0) == fleet(1000, 7, 1.0)
    assert fleet(1000, 7, 1.0) != fleet(1000, 8, 1.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("load", LOADS)
def test_the_load_is_what_is_asked_for_over_what_is_healthy(tmp_path: Path, seed: int, load: float) -> None:
    spec = made(tmp_path, 1000, seed, load)
    assert asked(spec) / capacity(spec) == pytest.approx(load, abs=0.002)


@pytest.mark.parametrize("gpus", [200, 1000, 1003, 10_000])
def test_a_fleet_has_the_gpus_asked_for_of_three_types_in_four_zones(tmp_path: Path, gpus: int) -> None:
    nodes = made(tmp_path, gpus).cluster.nodes
    assert sum(node.gpus for node in nodes) == gpus
    assert len({node.accelerator for node in nodes}) == 3
    assert len({node.domains["zone"] for node in nodes}) == 4
    assert max(Counter(node.domains["rack"] for node in nodes).values()) <= 32


def test_loads_change_how_much_is_asked_for_and_nothing_else() -> None:
    low, high = fleet(1000, 1, 0.85), fleet(1000, 1, 1.15)
    assert {name for name in low if low[name] != high[name]} == {
        name for name in low if name.startswith("workloads/")
    }


@pytest.mark.parametrize("seed", [1, 2, 32, 79])  # of the last two, a family has one part of a GPU very often
def test_shapes_and_kinds_of_nodes_stay_few_however_large_the_fleet(tmp_path: Path, seed: int) -> None:
    problem = problem_of(made(tmp_path, 10_000, seed))
    requests = [shape.request for shape in problem.shapes]
    assert sum(request.gpus > 0 for request in requests) == 300
    assert sum(request.share is not None for request in requests) == 100
    assert sum(request.gpu_milli == 0 for request in requests) == 24
    assert len(problem.classes) < 60


@pytest.mark.parametrize("load", LOADS)
def test_values_within_a_band_differ_by_at_most_a_hundred_to_one(tmp_path: Path, load: float) -> None:
    spec = made(tmp_path, 1000, 1, load)
    values: dict[int, list[int]] = {}
    for workload in spec.workloads:
        values.setdefault(spec.band_of(workload), []).extend(role.value for role in workload.roles)
    assert len(values) == 3
    assert all(max(band) <= 100 * min(band) for band in values.values())


def test_every_replica_fits_some_node(tmp_path: Path) -> None:
    problem = problem_of(made(tmp_path, 1000))
    hosted = {shape for shapes in problem.hosted for shape in shapes}
    assert hosted == {shape.index for shape in problem.shapes}


def test_every_kind_of_rule_is_there_and_can_be_left_out(tmp_path: Path) -> None:
    assert {policy.rule.kind for policy in made(tmp_path, 1000).policies} == ALL
    write(fleet(1000, 1, 1.0, ALL - {"quota", "spread"}), tmp_path)
    assert {policy.rule.kind for policy in spec_of(tmp_path).policies} == ALL - {"quota", "spread"}


def test_some_nodes_are_cut_alike_and_some_shared_by_equal_parts_where_that_is_asked_for(tmp_path: Path) -> None:
    write(fleet(1000, 1, 1.0, also=("slices", "single", "modes")), tmp_path)
    spec = spec_of(tmp_path)
    cut = {node.accelerator for node in spec.cluster.nodes if node.mig_strategy == "single"}
    parts = {node.accelerator for node in spec.cluster.nodes if node.sharing}
    assert (cut, parts) == ({"A100-80GB", "H100-80GB"}, {"L40S-48GB"})
    assert {policy.rule.kind for policy in spec.policies} >= ALL | {"sharing"}


def test_services_survive_the_loss_of_a_rack_where_that_is_asked_for(tmp_path: Path) -> None:
    write(fleet(200, 1, 1.0, also=("survive",)), tmp_path)
    spec = spec_of(tmp_path)
    rules = {policy.rule.kind: policy for policy in spec.policies}
    assert {w.type for w in spec.matched(rules["survive"])} == {"service"}


def test_places_are_held_free_where_that_is_asked_for(tmp_path: Path) -> None:
    write(fleet(200, 1, 0.85, also=("spares",)), tmp_path)
    spec = spec_of(tmp_path)
    assert {one.holds for one in spec.placeholders} == {"spare-nodes", "spare-rack", "spare-halves"}
    plain = fleet(200, 1, 0.85)
    changed = {name for name, text in fleet(200, 1, 0.85, also=("spares",)).items() if text != plain[name]}
    assert changed == {"policies.yaml"}


def test_jobs_have_deadlines_that_some_accelerators_meet_sooner_where_that_is_asked_for(tmp_path: Path) -> None:
    write(fleet(200, 1, 0.85, also=("deadlines",)), tmp_path)
    spec = build(load_project(tmp_path), as_of=AS_OF)
    assert spec.objective.tiers[:3] == ("mend", "admitted", "slo")
    jobs = [w for w in spec.workloads if w.type == "job" and w.roles[0].request.gpus]
    promised = [w for w in jobs if w.slo is not None]
    assert 0.4 * len(jobs) < len(promised) < 0.6 * len(jobs)
    speeds = [set(w.slo.rates.values()) for w in promised if w.slo is not None]
    assert any(len(of_one) > 1 for of_one in speeds)


def test_gangs_are_elastic_where_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(fleet(2000, 1, 1.0, also=("gangs", "elastic")), tmp_path)
    gangs = [w for w in spec_of(tmp_path).workloads if w.type == "gang"]
    assert gangs
    assert all(w.roles[0].elastic for w in gangs)
    with pytest.raises(SystemExit):
        command.main(["--gpus", "200", "--also", "elastic", "--out", str(tmp_path)])
    assert "goes with gangs" in capsys.readouterr().err


def test_the_command_writes_a_project_and_refuses_nonsense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--gpus", "200", "--seed", "3", "--load", "0.85", "--out", str(tmp_path)]) == 0
    assert len(spec_of(tmp_path).workloads) > 100
    with pytest.raises(SystemExit):
        command.main(["--gpus", "10", "--out", str(tmp_path)])
    assert "100 GPUs or more" in capsys.readouterr().err


def test_days_later_most_is_running_and_a_hundredth_has_changed(tmp_path: Path) -> None:
    before = made(tmp_path / "before", 200, 1, 1.15)
    write(later(tmp_path / "before", None, 1), tmp_path / "after")
    after = spec_of(tmp_path / "after")
    taken = sum(before.by_id[row.replica.workload].roles[0].request.gpu_milli for row in after.current.replicas)
    assert 0.8 <= taken / capacity(before) <= 0.9
    assert sum(not node.healthy_gpus() for node in after.cluster.nodes) == 1
    running = Counter(row.replica.workload for row in after.current.replicas)
    same = [workload for workload in after.workloads if workload.replicas == running[workload.id]]
    assert len(after.workloads) - len(same) >= 2
    assert len(same) >= 0.95 * len(after.workloads)
    assert all(place in context_of(after).today.places for place in context_of(after).today.protected)


def test_days_later_an_elastic_gang_asks_for_any_width_as_before(tmp_path: Path) -> None:
    write(fleet(1000, 1, 0.9, also=("gangs", "elastic")), tmp_path / "before")
    write(later(tmp_path / "before", _planned(tmp_path), 1), tmp_path / "after")
    before, after = spec_of(tmp_path / "before"), spec_of(tmp_path / "after")
    kept = [w for w in after.workloads if w.type == "gang" and w.id in before.by_id]
    assert kept
    assert all(w.roles == before.by_id[w.id].roles for w in kept)


def test_days_later_instances_and_gangs_run_and_a_gang_has_lost_a_node(tmp_path: Path) -> None:
    write(fleet(400, 1, 0.9, also=("gangs", "slices")), tmp_path / "before")
    write(later(tmp_path / "before", _planned(tmp_path), 1), tmp_path / "after")
    assert dovetail("validate", tmp_path / "after").code == 0
    after = spec_of(tmp_path / "after")
    today = context_of(after).today
    assert any(place.instance for place in today.places.values())
    assert today.layouts
    assert any(after.by_id[replica.workload].type == "gang" for replica in today.lost)


def _planned(tmp_path: Path) -> Path:
    plan = tmp_path / "plan.yaml"
    run = dovetail("plan", tmp_path / "before", "--work", "0.1", "--time-limit", "1s", "--out", plan)
    assert run.code == 0, run.err
    return plan


def test_a_small_fleet_plans_and_verifies(tmp_path: Path) -> None:
    write(fleet(200, 2, 1.0), tmp_path / "project")
    plan = tmp_path / "plan.yaml"
    run = dovetail("plan", tmp_path / "project", "--work", "0.1", "--time-limit", "1s", "--out", plan)
    assert run.code == 0, run.err
    assert dovetail("verify", plan, tmp_path / "project").code == 0


def test_a_lost_zone_leaves_no_node_of_it_and_all_others_as_they_are(tmp_path: Path) -> None:
    texts = fleet(1000, 1)
    write(texts, tmp_path / "before")
    write(without_zone(texts, "zd"), tmp_path / "after")
    before, after = spec_of(tmp_path / "before").cluster, spec_of(tmp_path / "after").cluster
    lost = {node.name for node in before.nodes if node.domains["zone"] == "zd"}
    larger = without_zone(fleet(10_000, 1), "zd")["cluster.yaml"].partition("\n  nodes:\n")[2].splitlines()
    assert len({line.partition(":")[0] for line in larger}) == len(larger)
    assert {node.name for node in after.nodes if node.down} == lost
    assert [n for n in after.nodes if not n.down] == [n for n in before.nodes if n.domains["zone"] != "zd"]


def test_a_fleet_full_of_shares_has_no_idle_node_and_room_in_all_for_new_work(tmp_path: Path) -> None:
    assert shares(1000, 3) == shares(1000, 3) != shares(1000, 4)
    write(shares(1000, 3), tmp_path)
    problem = problem_of(spec_of(tmp_path))
    today, nodes = problem.context.today, problem.spec.cluster.nodes
    assert not today.lost
    assert {place.node for place in today.places.values()} == {node.name for node in nodes}
    assert len(today.places) == len(problem.spec.current.replicas)
    assert asked(problem.spec) < 0.9 * capacity(problem.spec)
    waiting = {w.name for w in problem.spec.workloads if not any(r.workload == w.id for r in today.places)}
    assert waiting == {"new-whole", "new-half"}


@pytest.mark.parametrize("gpus", [64, 1000])
def test_a_fleet_full_of_instances_runs_what_it_tells_and_new_work_has_to_wait(tmp_path: Path, gpus: int) -> None:
    assert instances(gpus, 1) == instances(gpus, 1)
    write(instances(gpus, 1), tmp_path)
    problem = problem_of(spec_of(tmp_path))
    running = problem.running.total()
    assert running == len(problem.spec.current.replicas) > gpus
    assert {s.workload.name for s in problem.shapes if problem.running[s.index] < s.demand} == set(NEW)
    idle = sum(len(layout) for layouts in problem.layouts for layout in layouts.values())
    on_instances = sum(bool(place.instance) * n for own in problem.present.values() for place, n in own.items())
    assert 0.8 < on_instances / idle < 0.97


@pytest.mark.parametrize("gpus", [16, 64, 1000])
def test_a_fleet_full_of_batch_work_has_more_that_gives_way_than_new_work_asks_for(tmp_path: Path, gpus: int) -> None:
    assert batch(gpus, 1) == batch(gpus, 1) != batch(gpus, 2)
    write(batch(gpus, 1), tmp_path)
    problem = problem_of(spec_of(tmp_path))
    assert not problem.context.today.lost
    assert problem.running.total() == len(problem.spec.current.replicas)
    waiting = [s for s in problem.shapes if problem.running[s.index] < s.demand]
    assert {shape.workload.name.partition("-")[0] for shape in waiting} == {"new"}
    assert {problem.spec.band_of(shape.workload) for shape in waiting} == {HIGH}
    gives_way = sum(
        problem.shapes[shape].request.gpus * count
        for shape, count in problem.running.items()
        if problem.shapes[shape].workload.preemptible
    )
    assert sum(shape.request.gpus * shape.demand for shape in waiting) < gives_way
