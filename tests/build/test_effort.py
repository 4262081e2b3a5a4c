"""Large inventories build quickly, and hostile documents are refused in bounded time."""

from __future__ import annotations

import time

import pytest
from tests.build.text import AS_OF, JOB, SMALL, cluster, codes, document, documents, faults_of, policy, workload

from dovetail.build import assemble
from dovetail.documents import load_text
from dovetail.faults import Fault


def refused_within(seconds: float, *texts: str) -> tuple[Fault, ...]:
    """Return the faults of documents, found in so many seconds of this process, whatever else the machine does."""
    before = time.process_time()
    found = faults_of(*texts)
    assert time.process_time() - before < seconds
    return found


def test_many_unknown_names_in_a_large_cluster_are_refused_quickly() -> None:
    large = cluster("{name: g, gpus: 0, count: 20000}")
    unknown = "".join(f"    x{number}: {{cordoned: true}}\n" for number in range(2_000))
    assert len(refused_within(5, f"{large}  nodes:\n{unknown}")) == 2_000


def test_many_long_hostlists_are_refused_quickly() -> None:
    lists = ", ".join(f'"g-[000-1{number:04d}]"' for number in range(5_000))
    text = policy(f"match: {{nodes: {{names: [{lists}]}}}}\nrule: {{forbid: {{}}}}")
    large = cluster("{name: g, gpus: 0, count: 20000}")
    assert "DT1403" in {fault.code for fault in refused_within(5, large, workload(JOB), text)}


def test_a_cluster_beyond_all_measure_is_never_spelt_out() -> None:
    groups = "\n".join(f"{{name: g{number}, gpus: 0, count: 1000000}}" for number in range(50))
    assert codes(refused_within(2, cluster(groups))) == ["DT1403"] * 50


def test_a_tree_is_never_deeper_than_16_levels() -> None:
    levels = " ".join(f"l{number}" for number in range(5_000))
    assert codes(refused_within(2, cluster("{name: g, gpus: 0, count: 1}", f"{levels} node"))) == ["DT1420"]


def test_a_current_state_beyond_all_measure_is_never_spelt_out() -> None:
    rows = ", ".join(f"w#0-{number}: {{node: n}}" for number in range(999_999_000, 999_999_999))
    found = refused_within(2, SMALL, workload(JOB), document("Placement", "now", f"placements: {{{rows}}}"))
    assert set(codes(found)) == {"DT1703"}


@pytest.mark.limits
def test_12500_nodes_and_3000_workloads_build_in_three_seconds() -> None:
    groups = """
        {name: a, names: ["gpu-[00001-10000]"], accelerator: H100-80GB, gpus: 8,
        """
    text = cluster(
        groups.strip() + " domains: {rack: {size: 8}, block: {size: 400}}}\n{name: b, count: 2500, gpus: 0}",
        "block rack node",
    )
    request = "type: job\nreplicas: 5\nrequest: {gpus: 1, cpu: 4, memory: 16Gi}\naccelerators: [H100-80GB]"
    found = documents(text, *(workload(request, f"w{number}") for number in range(3_000)))
    before = time.process_time()
    spec = assemble(found, as_of=AS_OF).spec
    assert time.process_time() - before < 3
    assert (len(spec.cluster.nodes), len(spec.workloads)) == (12_500, 3_000)


def test_the_documents_of_these_tests_are_sound() -> None:
    assert load_text(SMALL, "small.yaml")
    assert faults_of(SMALL, workload(JOB)) == ()
