"""Work that no node could ever hold is told of, and no fault: it waits."""

from __future__ import annotations

import pytest
from tests.build.text import SMALL, built, cluster, codes, workload


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ("{gpus: 9, cpu: 1}", "the node has too few healthy GPUs"),
        ("{gpus: 1, cpu: 1, memory: 512Ti}", "the node is too small in cpu, memory or resources"),
        ("{cpu: 65}", "the node is too small in cpu, memory or resources"),
    ],
)
def test_work_that_is_larger_than_every_node_is_told(request_: str, why: str) -> None:
    (warning,) = built(SMALL, workload(f"type: job\nrequest: {request_}")).warnings
    assert warning.code == "DT1929"
    assert warning.message == f"no node can hold a replica of 'w', not even an empty one: {why}"


def test_a_role_on_accelerators_that_no_node_has_is_told() -> None:
    lead = "{name: lead, replicas: 1, request: {cpu: 1}}"
    rest = "{name: r, replicas: 1, accelerators: [L40S-48GB], request: {gpus: 1, cpu: 1}}"
    (warning,) = built(SMALL, workload(f"type: gang\nroles: [{lead}, {rest}]")).warnings
    assert "the role 'r' of 'w'" in warning.message


def test_what_fails_today_is_no_reason() -> None:
    down = cluster("{name: g, count: 1, accelerator: H100-80GB, gpus: 8}") + "  nodes: {g-000: {failed: true}}\n"
    assert codes(built(down, workload("type: job\nrequest: {gpus: 8, cpu: 1}")).warnings) == []
