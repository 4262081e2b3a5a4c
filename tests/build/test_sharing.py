"""What node groups and workloads say of GPUs that are shared by equal parts (S2.7, S3.5)."""

from __future__ import annotations

import pytest
from tests.build.text import cluster, codes, document, faults_of, project, spec_of, workload
from tests.support.plans import plan_for

from dovetail.engine import solve
from dovetail.placement import Place
from dovetail.spec import EqualParts, ReplicaId, Role, Share
from dovetail.spec.workload import Pace
from dovetail.verify import verify


def parts(sharing: str, accelerator: str = "H100-80GB") -> EqualParts | None:
    text = cluster(f"{{name: g, count: 1, accelerator: {accelerator}, gpus: 2{sharing}}}")
    return spec_of(text).cluster.nodes[0].sharing


def test_a_group_that_says_nothing_does_not_share() -> None:
    assert parts("") is None
    assert parts(", sharing: {mechanism: fraction}") is None
    assert parts(", sharing: {}") == EqualParts()


@pytest.mark.parametrize(
    ("accelerator", "mps", "clients"),
    [
        ("H100-80GB", "{}", 48),
        ("H100-80GB", '{driver: "589.12"}', 48),
        ("H100-80GB", '{driver: "590"}', 60),
        ("H100-80GB", '{driver: "600", maxClients: 50}', 50),
        ("H100-80GB", "{maxClients: 70}", 48),
        ("V100-32GB", '{driver: "600"}', 16),
    ],
)
def test_clients_of_mps_by_product_and_driver(accelerator: str, mps: str, clients: int) -> None:
    assert parts(f", sharing: {{mps: {mps}}}", accelerator) == EqualParts(mps=clients, time_slicing=0)


@pytest.mark.parametrize("driver", ["", "r580", "-580", "5" * 5000])
def test_what_is_no_driver_branch_is_told(driver: str) -> None:
    sharing = f'sharing: {{mps: {{driver: "{driver}"}}}}'
    text = cluster(f"{{name: g, count: 1, accelerator: H100-80GB, gpus: 2, {sharing}}}")
    assert codes(faults_of(text)) == ["DT1434"]


def test_time_slicing_may_promise_more_than_there_is() -> None:
    found = parts(", sharing: {mechanism: dra, replicas: 3, timeSlicing: {maxClients: 5, oversubscription: 1.5}}")
    assert found == EqualParts(mps=0, time_slicing=5, parts=3, oversubscription=1500)


@pytest.mark.parametrize(
    ("more", "barred"),
    [
        ("", ()),
        ("isolation: memory", ("time-slice",)),
        ("slo: {rate: 10, p99: 50ms, performance: [{on: H100-80GB, rate: 5}]}", ("fraction", "time-slice")),
        ("slo: {rate: 10, performance: [{on: H100-80GB, rate: 5}]}", ()),
    ],
)
def test_time_slicing_is_not_for_all(more: str, barred: tuple[str, ...]) -> None:
    work = workload(f"type: service\nreplicas: 1\nrequest: {{share: {{compute: 0.2}}}}\n{more}", "w")
    text = cluster("{name: g, count: 1, accelerator: H100-80GB, gpus: 2, sharing: {}}")
    share = spec_of(text, work).workloads[0].roles[0].request.share
    assert isinstance(share, Share)
    assert share.barred == barred


def service(table: str, more: str = "") -> Share:
    work = workload(
        "type: service\nreplicas: 2\nrequest: {share: {compute: 0.2}}\n"
        f"slo: {{rate: 10, p99: 50ms, performance: [{table}]}}\n{more}",
        "w",
    )
    text = cluster("{name: g, count: 1, accelerator: H100-80GB, gpus: 2, sharing: {}}")
    share = spec_of(text, work).workloads[0].roles[0].request.share
    assert isinstance(share, Share)
    return share


def test_a_service_takes_turns_where_its_table_says_what_it_sustains_then() -> None:
    turns = service("{on: H100-80GB/time-slice, rate: 5}, {on: A100-80GB, rate: 3}")
    assert not turns.bars("time-slice", "H100-80GB")
    assert turns.bars("time-slice", "A100-80GB")
    assert turns.rate("H100-80GB") == 5000


@pytest.mark.parametrize(("reference", "milli"), [("H100-80GB", 200), ("slow", 50), ("fast", 300), ("odd", 67)])
def test_a_share_of_a_reference_takes_as_much_as_that_is_of_its_own_gpus(reference: str, milli: int) -> None:
    speeds = (("slow", 0.25), ("fast", 1.5), ("odd", 0.333))
    cards = [document("Accelerator", name, f"memory: 40Gi\nthroughput: {speed}") for name, speed in speeds]
    work = workload(f"type: job\nrequest: {{share: {{compute: 0.2, reference: {reference}}}}}", "w")
    text = cluster("{name: g, count: 1, accelerator: H100-80GB, gpus: 2, sharing: {mechanism: fraction}}")
    role = spec_of(text, *cards, work).workloads[0].roles[0]
    assert role.request.share == Share(milli)
    assert role.value == 200


def test_an_accelerator_has_a_throughput_above_nothing() -> None:
    card = document("Accelerator", "idle", 'memory: 40Gi\nthroughput: "0"')
    work = workload("type: job\nrequest: {share: {compute: 0.2, reference: H100-80GB}}\naccelerators: [idle]", "w")
    text = cluster("{name: g, count: 1, accelerator: idle, gpus: 2, sharing: {mechanism: fraction}}")
    assert codes(faults_of(text, card, work)) == ["DT1429"]


SPEEDS = (("slow", 0.25), ("fast", 2), ("crawling", 0.1))
MIXED = cluster(
    "\n".join(
        f"{{name: {card[0].lower()}, count: 1, accelerator: {card}, gpus: 2, sharing: {{mechanism: fraction}}}}"
        for card in ("H100-80GB", "slow", "fast", "crawling")
    )
)
CARDS = [document("Accelerator", name, f"memory: 40Gi\nthroughput: {speed}") for name, speed in SPEEDS]


def mixed(more: str) -> Role:
    request = "{share: {compute: 0.2, reference: H100-80GB}}"
    work = workload(f"type: job\nrequest: {request}\n{more}", "w")
    return spec_of(MIXED, *CARDS, work).workloads[0].roles[0]


def test_a_share_of_a_reference_takes_more_of_slower_gpus_and_none_of_which_one_is_not_enough() -> None:
    role = mixed("")
    assert role.request.share == Share(100, elsewhere=(Pace("H100-80GB", 200), Pace("slow", 800)))
    assert role.accelerators == ("H100-80GB", "fast", "slow")
    assert [role.request.on(name).gpu_milli for name in ("fast", "slow", "H100-80GB")] == [100, 800, 200]
    assert role.value == 200


def test_peaks_are_scaled_as_well() -> None:
    share = mixed("burstiness: 1.5").request.share
    assert share is not None
    assert (share.peak, share.elsewhere) == (150, (Pace("H100-80GB", 200, 300), Pace("slow", 800, 1000)))


def test_among_accelerators_of_one_speed_a_share_is_the_same_everywhere() -> None:
    role = mixed("accelerators: [H100-80GB, crawling]")
    assert (role.request.share, role.accelerators) == (Share(200), ("H100-80GB",))


def test_held_places_and_expected_requests_are_measured_as_well() -> None:
    request = "{share: {compute: 0.2, reference: H100-80GB}}"
    held = document("Policy", "p", f"rule: {{reserve: {{replicas: 1, request: {request}}}}}\nenforcement: hard")
    mix = document(
        "Objective", "o", f"tiers: [admitted, fragmentation]\nfutureMix: [{{request: {request}, weight: 1}}]"
    )
    spec = spec_of(project("objective: o"), MIXED, *CARDS, held, mix)
    asked = (spec.objective.future_mix[0], spec.placeholders[0].roles[0])
    assert {each.request.on("slow").gpu_milli for each in asked} == {800}
    assert {each.accelerators for each in asked} == {("H100-80GB", "fast", "slow")}


@pytest.mark.parametrize(
    ("slo", "there"),
    [
        ("{rate: 10, p99: 50ms, performance: [{on: H100-80GB, rate: 5}]}", 0),
        ("{rate: 10, p99: 50ms, performance: [{on: H100-80GB/time-slice, rate: 5}]}", 2),
        ("{rate: 10, performance: [{on: H100-80GB, rate: 5}]}", 2),
    ],
)
def test_a_service_keeps_its_latency_beside_fractions_only_if_its_table_says_so(slo: str, there: int) -> None:
    text = cluster("{name: g, count: 1, accelerator: H100-80GB, gpus: 1, sharing: {mechanism: fraction}}")
    work = workload(f"type: service\nreplicas: 2\nrequest: {{share: {{compute: 0.4}}, cpu: 1}}\nslo: {slo}", "w")
    spec = spec_of(text, work)
    plan = solve(spec)
    assert (len(plan.placements), plan.outcome.status, verify(spec, plan).ok) == (there, "optimal", True)
    (identity,) = spec.by_id
    both = {ReplicaId(identity, "", index): Place("g-000", (0,)) for index in range(2)}
    failed = {check.name for check in verify(spec, plan_for(spec, both)).checks if check.findings}
    assert ("mechanism" in failed) == (not there)
