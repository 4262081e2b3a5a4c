"""Rivals keep every hard rule, and solve small fleets as well as their models allow."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from benchmarks import plain, rivals
from benchmarks.fleet import fleet, write
from benchmarks.fleets import first_of, worst
from benchmarks.specs import Case, case_of

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.spec import Spec
from dovetail.verify import verify

SMALL = """\
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: small}
spec:
  levels: [{name: zone}, {name: node}]
  nodeGroups:
  - name: a
    count: 1
    accelerator: L40S-48GB
    gpus: 4
    cpu: 32
    memory: 256Gi
    domains: {zone: {name: z0}}
    sharing: {mechanism: fraction}
  - {name: b, count: 1, accelerator: L40S-48GB, gpus: 2, cpu: 32, memory: 256Gi, domains: {zone: {name: z1}}}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: even, namespace: x, labels: {even: "yes"}}
spec: {type: service, replicas: 6, request: {gpus: 1, cpu: 2}}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: half, namespace: y}
spec: {type: job, replicas: 3, request: {share: {compute: 0.5}, cpu: 2}}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: half, namespace: z}
spec: {type: job, replicas: 3, request: {share: {compute: 0.5}, cpu: 2}}
---
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: even-zones}
spec: {match: {workloads: {matchLabels: {even: "yes"}}}, rule: {spread: {over: zone, maxSkew: 0}}, enforcement: hard}
---
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: no-shared-card}
spec: {rule: {separate: {by: tenant, at: gpu}}, enforcement: hard}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fleet")
    write(fleet(120, 1, 1.0), out)
    return out


@pytest.fixture(scope="module")
def spec(project: Path) -> Spec:
    return build(load_project(project), as_of=dt.date(2026, 1, 1))


@pytest.fixture(scope="module")
def case(spec: Spec) -> Case:
    return case_of(spec)


@pytest.mark.parametrize(
    "rival", ["first fit decreasing", "best fit", "FGD", "HiGHS per shape and node", "random parts"]
)
def test_what_a_rival_places_passes_the_verifier(rival: str, spec: Spec, case: Case) -> None:
    places, _ = rivals.RIVALS[rival](case, 4.0)
    plan = case.plan(places)
    assert places
    assert verify(spec, plan).ok


@pytest.mark.parametrize("rival", ["CP-SAT per replica and node", "HiGHS per shape and node"])
def test_plain_models_know_every_rule(rival: str, tmp_path: Path) -> None:
    # Two even replicas in each zone, so two GPUs of the larger node are left: a tenant's halves on each.
    (tmp_path / "all.yaml").write_text(SMALL, encoding="utf-8")
    small = build(load_project(tmp_path), as_of=dt.date(2026, 1, 1))
    case = case_of(small)
    plan = case.plan(rivals.RIVALS[rival](case, 10.0)[0])
    assert verify(small, plan).ok
    assert {tier.name: tier.value for tier in plan.tiers}["admitted[0]"] == 6000


def test_a_model_that_is_too_large_is_not_built_and_says_how_large_it_is(case: Case) -> None:
    scope = plain.whole(case, single=True)
    with pytest.raises(plain.TooLarge) as caught:
        plain.build(scope, 100)
    assert caught.value.variables == plain.size_of(scope) > 100


def test_a_rival_that_runs_out_of_time_says_what_it_left(case: Case) -> None:
    _, note = rivals.RIVALS["first fit decreasing"](case, 0.0)
    assert note == f"time up with {len(case.pods):,} of {len(case.pods):,} replicas not looked at"


def test_the_widest_gap_over_time_is_that_of_the_tiers_in_question() -> None:
    def entry(at: float, tier: str, value: int | None, bound: int | None) -> dict[str, object]:
        return {"at": at, "tier": tier, "value": value, "bound": bound}

    history = [
        entry(1.0, "admitted[9]", 90, 100),
        entry(2.0, "admitted[1]", 40, 50),
        entry(3.0, "cost", 10, 5),
        entry(4.0, "admitted[1]", 50, 50),
        entry(5.0, "admitted[1]", None, 50),
    ]
    assert worst(history, 1.0) == [(1.0, 10.0), (2.0, 20.0), (4.0, 10.0)]
    assert worst(history, 0.85) == [(3.0, 50.0)]


def test_the_first_plan_is_timed_from_the_start_of_solving() -> None:
    phases = [
        {"name": "load", "seconds": 2.0},
        {"name": "compile", "seconds": 1.0},
        {"name": "construct", "seconds": 4.0},
    ]
    told = {"at": 5.5, "tier": "cost", "value": 1, "bound": None}
    assert first_of({"phases": phases, "history": [told]}) == 3.5
    assert first_of({"phases": phases, "history": []}) == 5.0
    assert first_of({"phases": phases[:1], "history": []}) is None
