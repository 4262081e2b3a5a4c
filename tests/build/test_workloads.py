"""Workloads: what their types set, and what is counted (S2)."""

from __future__ import annotations

import pytest
from tests.build.text import JOB, SMALL, codes, faults_of, spec_of, workload, workload_of


@pytest.mark.parametrize(
    ("spec", "atomic", "least", "movable"),
    [
        ("type: gang", True, 4, False),
        ("type: gang\ncheckpointEvery: 1h", True, 4, True),
        ("type: gang\natomic: false", False, 4, False),
        ("type: gang\natomic: false\nminReplicas: 2\nmovable: true", False, 2, True),
        ("type: service", False, 1, True),
        ("type: service\natomic: true", True, 4, True),
        ("type: service\nmovable: false", False, 1, False),
        ("type: job", False, 0, True),
        ("type: job\nminReplicas: 4", False, 4, True),
    ],
)
def test_a_type_sets_defaults_and_nothing_else(spec: str, atomic: bool, least: int, movable: bool) -> None:
    found = workload_of(f"{spec}\nreplicas: 4\nrequest: {{gpus: 1}}")
    assert (found.atomic, found.min_replicas, found.movable, found.preemptible) == (atomic, least, movable, False)


def test_a_service_without_replicas_needs_none() -> None:
    assert workload_of("type: service\nreplicas: 0\nrequest: {gpus: 1}").min_replicas == 0


@pytest.mark.parametrize(
    ("request_", "value"),
    [("{gpus: 3, cpu: 9}", 3_000), ("{share: {compute: 0.25}}", 250), ("{cpu: 2.5}", 2_500), ("{memory: 1Gi}", 1)],
)
def test_the_value_of_a_replica_is_what_it_asks_for(request_: str, value: int) -> None:
    assert workload_of(f"type: job\nrequest: {request_}").roles[0].value == value


def test_requests_round_up_and_a_share_without_memory_leaves_it_open() -> None:
    request = workload_of("type: job\nrequest: {memory: 1.01Mi, share: {compute: 0.001}}").roles[0].request
    assert request.memory == 2
    assert request.share is not None
    assert (request.share.compute, request.share.memory) == (1, None)


def test_roles_with_gpus_inherit_the_accelerators_of_the_workload() -> None:
    spec = """
        type: gang
        accelerators: [A100-80GB]
        roles:
        - {name: a, request: {gpus: 1}}
        - {name: b, request: {gpus: 1}, accelerators: [H100-80GB]}
        - {name: c, request: {cpu: 1}}
        """
    assert [role.accelerators for role in workload_of(spec).roles] == [("A100-80GB",), ("H100-80GB",), ()]


def test_the_order_of_accelerators_means_nothing() -> None:
    one, two = (
        workload_of(f"type: job\nrequest: {{gpus: 1}}\naccelerators: {order}")
        for order in ("[H100-80GB, A100-80GB]", "[{name: A100-80GB}, H100-80GB]")
    )
    assert one == two


def test_the_tenant_is_the_namespace_unless_it_is_named() -> None:
    found = spec_of(SMALL, workload(JOB, "a", ", namespace: n"), workload(f"{JOB}\ntenant: t", "b", ", namespace: n"))
    assert [each.tenant for each in found.workloads] == ["n", "t"]


def test_workloads_are_sorted_by_the_bytes_of_their_ids() -> None:
    texts = [workload(JOB, name, space) for name, space in (("b", ""), ("a", ", namespace: z"), ("z-1", ""))]
    assert [each.id for each in spec_of(SMALL, *texts).workloads] == ["b", "z-1", "z/a"]


def test_amounts_of_none_are_as_good_as_left_out() -> None:
    zero = workload_of("type: job\nrequest: {cpu: 1, resources: {rdma: 0}}")
    assert zero == workload_of("type: job\nrequest: {cpu: 1}")


def test_an_unreadable_request_is_not_called_empty_as_well() -> None:
    assert codes(faults_of(SMALL, workload("type: job\nrequest: {cpu: 1x}"))) == ["DT1201"]


def test_groups_that_do_not_nest_are_told_and_nothing_is_read_of_them() -> None:
    spec = """
        type: gang
        roles:
        - {name: a, replicas: 2, request: {gpus: 1}}
        - {name: b, replicas: 2, request: {gpus: 1}}
        topology:
          groups:
          - {roles: {a: 2}, within: node}
          - {roles: {a: 1, b: 1}, within: socket}
        """
    assert codes(faults_of(SMALL, workload(spec))) == ["DT1524"]


@pytest.mark.parametrize(
    ("replicas", "told", "hint"),
    [
        ("{min: 4, max: 16, step: 2}", "steps of 2 replicas are", "make the step a multiple of 4"),
        ("{min: 4, max: 10, step: 6}", "10 replicas are", "make it a multiple of 4"),
        ("{min: 2, max: 8, step: 6}", "2 replicas are", "make it a multiple of 4"),
    ],
)
def test_what_makes_no_whole_groups_is_told(replicas: str, told: str, hint: str) -> None:
    spec = f"type: gang\nreplicas: {replicas}\nrequest: {{gpus: 1}}\ntopology: {{groups: [{{of: 4, within: node}}]}}"
    (fault,) = faults_of(SMALL, workload(spec))
    assert fault.message == f"{told} no whole number of groups of 4"
    assert fault.hint == hint
