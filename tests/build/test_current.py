"""The current state: what is read, what is only drift, and what stands in for it (S6.5)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.build.text import AS_OF, JOB, SMALL, built, cluster, codes, document, documents, spec_of, workload

from dovetail.build import assemble, declares_current
from dovetail.documents import load_text
from dovetail.spec import Current, PresentReplica, ReplicaId

WORK = workload(f"{JOB}\nreplicas: 2")
NOW = document("Placement", "now", "placements: {w#1: {node: g-001, gpus: [2, 0]}, w#0: {node: gone}}")


def test_rows_are_sorted_and_what_no_longer_exists_is_kept() -> None:
    found = built(SMALL, WORK, NOW)
    here, there = ReplicaId("w", "", 0), ReplicaId("w", "", 1)
    assert found.spec.current.replicas == (PresentReplica(here, "gone"), PresentReplica(there, "g-001", (0, 2)))
    assert codes(found.warnings) == ["DT1923"]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("{w#0: {node: g-009, gpus: [0]}}", "DT1923 there is no node 'g-009'"),
        ("{w#0: {node: g-001, gpus: [8]}}", "DT1923 'g-001' has no GPU 8"),
        ("{w#0: {node: g-001, gpus: [0]}, w#1: {node: g-001, gpus: [0]}}", "DT1924 w#0 has the same GPUs"),
        ("{w#0-1: {node: g-001, gpus: [3]}}", "DT1924 these 2 replicas have the same GPUs"),
    ],
)
def test_a_place_that_cannot_be_is_told_and_no_fault(rows: str, told: str) -> None:
    work = workload("type: job\nreplicas: 2\nrequest: {gpus: 1, cpu: 1}")
    found = built(SMALL, work, document("Placement", "now", f"placements: {rows}"))
    (warning,) = found.warnings
    assert f"{warning.code} {warning.message}".startswith(told)


@pytest.mark.parametrize(
    ("gpu", "told"),
    [
        ("{mode: mps, clients: 2}", "there is no node 'g-009'"),
        ("{mode: mig, instances: [1g.10gb@0]}", "there is no node 'g-009'"),
        ("{mode: mps, clients: 2}", "'g-001' has no GPU 8"),
        ("{mode: mig}", "'g-001' has no GPU 8"),
    ],
)
def test_how_a_gpu_that_is_not_there_is_cut_or_shared_is_told_and_no_fault(gpu: str, told: str) -> None:
    name = "g-009/0" if "g-009" in told else "g-001/8"
    found = built(SMALL, WORK, document("Placement", "now", f"placements: {{}}\ngpus: {{{name}: {gpu}}}"))
    (warning,) = found.warnings
    assert (warning.code, warning.message) == ("DT1923", told)


@pytest.mark.parametrize(
    ("sharing", "warned"),
    [
        ("", ["DT1930"]),
        (", sharing: {mechanism: fraction}", ["DT1930"]),
        (", sharing: {mps: {}}", []),
        (", sharing: {mechanism: dra}", []),
    ],
)
def test_a_mode_told_of_a_gpu_that_is_in_none_is_warned_of(sharing: str, warned: list[str]) -> None:
    nodes = cluster(f"{{name: g, count: 1, accelerator: H100-80GB, gpus: 8{sharing}}}")
    for mode in ("mps", "time-slice"):
        rows = f"placements: {{}}\ngpus: {{g-000/0: {{mode: {mode}, clients: 2}}}}"
        assert codes(built(nodes, WORK, document("Placement", "now", rows)).warnings) == warned


def test_work_that_no_document_declares_is_kept_with_a_warning() -> None:
    rows = (
        "placements: {v#0: {node: g-001}, w.lead#0: {node: g-001}, w#7: {node: g-001}}\nrunning: {u: {elapsed: 1h}}"
    )
    found = built(SMALL, WORK, document("Placement", "now", rows))
    assert codes(found.warnings) == ["DT1914", "DT1914", "DT1914"]
    assert [str(each.replica) for each in found.spec.current.replicas] == ["v#0", "w#7", "w.lead#0"]
    assert found.spec.current.elapsed == {"u": 3_600_000}


def test_a_given_state_takes_the_place_of_the_document() -> None:
    other = Current((PresentReplica(ReplicaId("w", "", 0), "g-003"),))
    assert built(SMALL, WORK, NOW, current=other).spec.current == replace(other, from_outside=True)


def test_a_state_is_read_from_a_file_of_its_own() -> None:
    (given,) = load_text(NOW, "now.yaml")
    found = assemble(documents(SMALL, WORK), current=given, as_of=AS_OF)
    assert found.spec.current == replace(spec_of(SMALL, WORK, NOW).current, from_outside=True)
    assert codes(found.warnings) == ["DT1923"]


def test_documents_tell_whether_they_declare_what_runs() -> None:
    assert declares_current(documents(SMALL, NOW))
    assert not declares_current(documents(SMALL))
    assert spec_of(SMALL).current == Current()
