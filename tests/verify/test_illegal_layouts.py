"""Layouts that public tables and tools list and that do not exist: refused in documents and in plans alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.build.text import cluster, codes, document, faults_of, spec_of, workload

from dovetail.mig import parse_instance
from dovetail.plan import finish
from dovetail.plan.model import Outcome
from dovetail.rules import context_of
from dovetail.verify import verify

NVL, PRO = "H100-94GB-NVL", "RTXPRO6000-96GB"
ILLEGAL = {
    "two 3g and a 1g, as a vendor's page has it": ("A100-40GB", ["3g.20gb@0", "3g.20gb@4", "1g.5gb@6"]),
    "the same on an H100": ("H100-80GB", ["3g.40gb@0", "3g.40gb@4", "1g.10gb@3"]),
    "seven double-memory 1g": ("A100-40GB", [f"1g.10gb@{start}" for start in range(7)]),
    "a profile of the smaller A100": ("A100-80GB", ["3g.20gb@0"]),
    "the same beside two 2g": ("A100-80GB", ["2g.20gb@4", "2g.20gb@2", "3g.20gb@0"]),
    "a profile that no A30 has": ("A30-24GB", ["3g.24gb@0"]),
    "two sets of media engines on an A30": ("A30-24GB", ["1g.6gb+me@0", "2g.12gb+me@2"]),
    "a name of some drivers": ("A100-80GB", ["7g.79gb@0"]),
    "two +me": ("A100-80GB", ["1g.10gb+me@0", "1g.10gb+me@1"]),
    "a 1g in the last slice": ("H100-80GB", ["1g.10gb@7"]),
    "a 1g beside a 3g that takes four slices": ("H100-80GB", ["3g.40gb@4", "1g.10gb@6"]),
    "five of four": (NVL, [f"1g.24gb@{start}" for start in (0, 2, 4, 6, 1)]),
    "all engines, and one more": (PRO, ["1g.24gb+me.all@0", "1g.24gb@3"]),
    "a start in units of eight": (PRO, ["1g.24gb@1"]),
}
each = pytest.mark.parametrize(("product", "layout"), ILLEGAL.values(), ids=ILLEGAL)


def node_of(product: str, layout: str = "") -> str:
    """Return a cluster of one node with one GPU, cut so today."""
    found = cluster(f"{{name: g, count: 1, accelerator: {product}, gpus: 1}}")
    return f"{found}  nodes: {{g-000: {{migLayout: {{'0': [{layout}]}}}}}}\n" if layout else found


@each
def test_documents_with_it_are_refused_at_the_instance(product: str, layout: list[str]) -> None:
    faults = faults_of(node_of(product, ", ".join(layout)), workload("type: job\nrequest: {cpu: 1}"))
    assert {*codes(faults)} <= {"DT1423", "DT1424"}
    assert faults
    assert all(fault.position is not None for fault in faults)


@each
def test_placements_with_it_are_refused(product: str, layout: list[str]) -> None:
    today = document(
        "Placement", "now", f"placements: {{}}\ngpus: {{g-000/0: {{mode: mig, instances: [{', '.join(layout)}]}}}}"
    )
    assert {*codes(faults_of(node_of(product), workload("type: job\nrequest: {cpu: 1}"), today))} <= {
        "DT1423",
        "DT1424",
    }
    assert faults_of(node_of(product), workload("type: job\nrequest: {cpu: 1}"), today)


@each
def test_a_plan_with_it_does_not_verify(product: str, layout: list[str]) -> None:
    spec = spec_of(node_of(product), workload("type: job\nrequest: {cpu: 1}"))
    plan = finish(context_of(spec), {}, (), Outcome("feasible"))
    assert "layouts" not in {check.name for check in verify(spec, plan).broken}
    wrong = replace(plan, gpus={"g-000/0": tuple(map(parse_instance, layout))})
    broken = {check.name: check for check in verify(spec, wrong).broken}
    assert any("g-000/0" in str(finding) for check in broken.values() for finding in check.findings)
    assert set(broken) & {"layouts", "mig-layouts"}
