"""Plans with certificates that tests share."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine import solve
from dovetail.engine.proving.certify import with_certificate
from dovetail.plan import Plan
from dovetail.proof.attach import evidence_of
from dovetail.proof.certificate import Certificate, Proof
from dovetail.rules import context_of
from dovetail.rules.admission import Admission
from dovetail.spec import Spec


def two_nodes(*, gpus: int = 8, must: bool = False) -> Spec:
    """Return two nodes, and jobs of 6, 6 and 4 GPUs: enough in total, too little in place; `must` admits all."""
    return make_spec(
        [node("a", gpus), node("b", gpus, price=3)],
        [workload("six", 2, gpus=6), workload("four", gpus=4)],
        [policy("all", Admission())] if must else [],
    )


@cache
def certified() -> tuple[Spec, Plan]:
    """Return two nodes with a plan of which every bound that is not trivial has a proof."""
    spec = two_nodes()
    return spec, with_certificate(context_of(spec), solve(spec))


@cache
def refuted() -> tuple[Spec, Plan]:
    """Return two nodes on which not all fits that must, and the plan that says so."""
    spec = two_nodes(must=True)
    return spec, solve(spec)


def certificate_of(plan: Plan) -> Certificate:
    """Return the certificate that a plan carries."""
    found = evidence_of(plan)
    assert found is not None
    return found


def with_first(certificate: Certificate, proof: Proof) -> Certificate:
    """Return a certificate with another first proof."""
    return replace(certificate, tiers=(proof, *certificate.tiers[1:]))
