"""What documents say of service levels: tables, rates without replicas, deadlines on a day, classes (S2.8)."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from dovetail.build import assemble
from dovetail.documents import DocumentSet, load_text
from dovetail.engine import solve
from dovetail.faults import Refused
from dovetail.plan import digest, read, write
from dovetail.spec import Spec, Workload
from dovetail.verify import verify

HEAD = """
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: c}
spec:
  reconfiguration: gpu
  nodeGroups: [{name: g, count: 1, accelerator: H100-80GB, gpus: 2, cpu: 96, memory: 1Ti}]
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: w, namespace: team}
spec:
"""
SHARE = "  type: service\n  request: {share: {compute: 0.1, memory: 8Gi}}\n  isolation: fault\n"
TABLE = "performance: [{on: H100-80GB/1g.10gb, rate: 130}, {on: H100-80GB/3g.40gb, rate: 400}]"
DAY = dt.date(2026, 6, 1)


def built(body: str, as_of: dt.date = DAY, before: str = "") -> Spec:
    documents = load_text(before + HEAD + body, "w.yaml")
    return assemble(DocumentSet(tuple(documents), Path()), as_of=as_of).spec


def only(spec: Spec) -> Workload:
    (found,) = spec.workloads
    return found


def test_an_instance_has_the_largest_rate_that_it_contains() -> None:
    slo = only(built(f"{SHARE}  slo: {{rate: 900, {TABLE}}}")).slo
    assert slo is not None
    rates = {host.partition("/")[2]: rate // 1000 for host, rate in slo.rates.items()}
    plain = {name: rates.get(name) for name in ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")}
    assert plain == {"1g.10gb": 130, "1g.20gb": 130, "2g.20gb": 130, "3g.40gb": 400, "4g.40gb": 400, "7g.80gb": 400}


def test_an_instance_too_small_for_the_share_has_no_rate() -> None:
    large = SHARE.replace("0.1, memory: 8Gi", "0.3, memory: 30Gi")
    slo = only(built(f"{large}  slo: {{rate: 900, {TABLE}}}")).slo
    assert slo is not None
    assert "H100-80GB/1g.10gb" not in slo.rates
    assert slo.rates["H100-80GB/3g.40gb"] == 400_000


@pytest.mark.parametrize(
    ("more", "replicas", "least", "open_"),
    [("", 7, 1, True), ("  minReplicas: 9\n", 9, 9, True), ("  replicas: 3\n", 3, 1, False)],
)
def test_a_rate_without_replicas_leaves_them_open(more: str, replicas: int, least: int, open_: bool) -> None:
    found = only(built(f"{SHARE}{more}  slo: {{rate: 900, {TABLE}}}"))
    assert (found.replicas, found.min_replicas, found.asks_rate) == (replicas, least, open_)


@pytest.mark.parametrize("more", ["", "  minReplicas: 2\n"])
def test_all_or_nothing_takes_a_number_of_replicas(more: str) -> None:
    with pytest.raises(Refused) as refused:
        built(f"{SHARE}{more}  atomic: true\n  slo: {{rate: 900, {TABLE}}}")
    assert [fault.code for fault in refused.value.faults] == ["DT1547"]
    assert only(built(f"{SHARE}  replicas: 3\n  atomic: true\n  slo: {{rate: 900, {TABLE}}}")).min_replicas == 3


BATCH = "  type: job\n  replicas: 2\n  request: {gpus: 1}\n"


@pytest.mark.parametrize(
    ("deadline", "as_of", "rate"),
    [
        ("2026-06-01", DAY, 1_500),
        ("2026-06-01T12:00:00Z", DAY, 3_000),
        ("2026-06-01T13:00:00+01:00", DAY, 3_000),
        ("2026-06-03", DAY, 500),
        ("2026-06-03", dt.date(2026, 6, 3), 1_500),
    ],
)
def test_a_deadline_asks_for_gpus_at_once(deadline: str, as_of: dt.date, rate: int) -> None:
    found = only(built(f'{BATCH}  slo: {{work: 36h, deadline: "{deadline}"}}', as_of)).slo
    assert found is not None
    assert (found.rate, found.late) == (rate, False)
    assert found.rates == {"H100-80GB": 1000}


def test_a_deadline_that_is_over_counts_in_full() -> None:
    spec = built(f"{BATCH}  slo: {{work: 36h, deadline: 2026-05-31}}")
    plan = solve(spec)
    assert {tier.name: (tier.value, tier.bound) for tier in plan.tiers}["slo"] == (1000, 1000)
    assert plan.promises["team/w"].missing == 1000
    assert verify(spec, plan).ok


def test_only_deadlines_make_the_day_count() -> None:
    days = (DAY, DAY + dt.timedelta(days=1))
    batch = f"{BATCH}  slo: {{work: 36h, deadline: 2026-06-03}}"
    assert len({digest(built(batch, day)) for day in days}) == 2
    assert len({digest(built(f"{SHARE}  slo: {{rate: 900, {TABLE}}}", day)) for day in days}) == 1


PROJECT = """
apiVersion: dovetail/v1alpha1
kind: Project
metadata: {name: p}
spec:
  documents: ["*.yaml"]
  sloClasses: {gold: {weight: 5, admitted: 0.6, replicas: 2, rate: 0.5}}
---
"""


def test_a_plan_tells_which_promises_it_breaks_and_is_read_again() -> None:
    jobs = "  type: job\n  replicas: 8\n  request: {gpus: 1}\n  slo: {class: gold}\n"
    spec = built(jobs, before=PROJECT)
    plan = solve(spec)
    assert {tier.name: tier.value for tier in plan.tiers}["slo"] == 5 * 600  # 2 of the 5 replicas that are promised
    assert plan.promises["team/w"].missing == 600
    assert read(write(plan), "plan.yaml").promises == plan.promises
    assert verify(spec, plan).ok


def test_a_class_promises_a_part_of_the_rate() -> None:
    spec = built(f"{SHARE}  slo: {{class: gold, rate: 3000, {TABLE}}}", before=PROJECT)
    plan = solve(spec)
    assert plan.promises == {}  # 1,840 are served at the most, and three fifths are promised
    assert plan.admitted["team/w"].state == "partial"
    assert plan.admitted["team/w"].served == 1_840_000
