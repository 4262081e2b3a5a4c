"""Why replicas are on MIG instances, and on those, is told as requests, nodes and policies have it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.build.text import cluster, document, spec_of, workload

from dovetail.engine import solve
from dovetail.spec import Spec
from dovetail.whynot import cuts_of, modes_of

CUT = "{{name: g, count: 1, accelerator: A30-24GB, gpus: 1{}}}"


def told(spec: Spec) -> list[tuple[str, tuple[str, ...]]]:
    return [(cut.profile, cut.why) for cut in cuts_of(spec, solve(spec), spec.cluster.nodes[0])]


@pytest.mark.parametrize(
    ("request_", "more", "found"),
    [
        ("{mig: 2g.12gb}", "", ("2g.12gb", ("asks for this profile",))),
        (
            "{share: {compute: 0.2, memory: 4Gi}}",
            "isolation: fault",
            ("1g.6gb", ("only MIG isolates faults", "no smaller instance has 0.2 GPU and 4Gi")),
        ),
        (
            "{share: {compute: 0.2}}",
            "isolation: fault\nburstiness: 2",
            ("2g.12gb", ("only MIG isolates faults", "no smaller instance has its peak of 0.4 GPU")),
        ),
    ],
)
def test_an_instance_is_asked_for_isolates_and_covers_the_peak(
    request_: str, more: str, found: tuple[str, tuple[str, ...]]
) -> None:
    assert told(spec_of(cluster(CUT.format("")), workload(f"type: job\nrequest: {request_}\n{more}"))) == [found]


@pytest.mark.parametrize(
    ("compute", "profile", "why"),
    [
        ("0.25", "3g.40gb", "no smaller instance has 0.25 GPU and the 20Gi that go with it"),
        ("0.25, memory: 8Gi", "2g.20gb", "no smaller instance has 0.25 GPU and 8Gi"),
        ("0.26", "3g.40gb", "no smaller instance has 0.26 GPU"),
    ],
)
def test_a_share_without_memory_takes_as_large_a_part_of_it(compute: str, profile: str, why: str) -> None:
    card = "{name: g, count: 1, accelerator: A100-80GB, gpus: 1}"
    work = workload(f"type: job\nisolation: fault\nrequest: {{share: {{compute: {compute}}}}}")
    assert told(spec_of(cluster(card), work)) == [(profile, ("only MIG isolates faults", why))]


def test_a_node_of_one_profile_may_give_more_than_is_needed() -> None:
    work = workload("type: job\nrequest: {mig: 2g.12gb}", "a")
    small = workload("type: job\nisolation: fault\nrequest: {share: {compute: 0.2}}", "b")
    found = told(spec_of(cluster(CUT.format(", migStrategy: single")), work, small))
    assert [profile for profile, _ in found] == ["2g.12gb", "2g.12gb"]
    assert found[1][1][1].startswith("the node is cut into one profile; 0.2 GPU would fit 1g.6gb")


def test_a_policy_that_closes_a_mode_is_named() -> None:
    rule = document("Policy", "no-turns", "rule: {sharing: {modes: [mps]}}\nenforcement: hard")
    work = workload("type: job\nreplicas: 2\nrequest: {share: {compute: 0.2}}")
    spec = spec_of(cluster(CUT.format(", sharing: {}")), work, rule)
    (shared,) = modes_of(spec, solve(spec), spec.cluster.nodes[0])
    assert shared.setting.mode == "mps"
    assert "time-slice is closed by no-turns" in shared.why


def test_a_spec_without_the_policy_is_free_again() -> None:
    rule = document("Policy", "no-turns", "rule: {sharing: {modes: [mps]}}\nenforcement: hard")
    promise = document("Policy", "twice", "rule: {sharing: {oversubscribe: {cpu: 2}}}\nenforcement: hard")
    text = cluster("{name: g, count: 1, accelerator: A30-24GB, gpus: 1, cpu: 4, memory: 64Gi, sharing: {}}")
    spec = spec_of(text, workload("type: job\nrequest: {share: {compute: 0.2}}"), rule, promise)
    node, bare = spec.cluster.nodes[0], replace(spec, policies=())
    assert (node.cpu, node.owned.cpu) == (8000, 4000)
    assert bare.cluster.nodes[0] == replace(node, cpu=4000, promised=None)
    shares = [each.workloads[0].roles[0].request.share for each in (spec, bare)]
    assert [len(share.leans) for share in shares if share] == [1, 0]
