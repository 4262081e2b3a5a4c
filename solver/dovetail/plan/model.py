"""The plan as a value (S6): where every admitted replica runs, how good that is, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from dovetail.placement import Layouts, Place, Places, Recovery
from dovetail.rules import Told
from dovetail.spec import Options, Setting

Status = Literal["optimal", "feasible", "infeasible", "unknown"]
Proof = Literal["certificate", "two-engines", "solver", "trivial", "none"]
AdmissionState = Literal["full", "partial", "none"]
PolicyOutcome = Literal["pass", "fail", "waived"]
Figure = int | Decimal
"""A figure of the summary; exact, and whole numbers are always `int`."""


def relative_gap(value: int, bound: int) -> float:
    """Return `|bound - value| / max(|bound|, |value|, 1)`."""
    return abs(bound - value) / max(abs(bound), abs(value), 1)


@dataclass(frozen=True, slots=True)
class TierResult:
    """One tier's value and the bound nobody can beat (S5.2).

    Parameters
    ----------
    sense : `max` or `min`.
    bound : None while nothing is known.
    proof : what the bound rests on; `trivial` is arithmetic on the documents alone, `none` goes with no bound.
    given : the values of earlier tiers that the bound assumes.
    relaxed : names of the rules (policies, or `minReplicas` and the like) that the bound ignores.
    """

    name: str
    value: int
    bound: int | None
    unit: str
    sense: Literal["max", "min"]
    proof: Proof
    given: Mapping[str, int] = field(default_factory=dict)
    relaxed: tuple[str, ...] = ()

    @property
    def proved(self) -> bool:
        """Tell whether value and bound meet."""
        return self.bound == self.value

    @property
    def gap(self) -> float | None:
        """Return the relative gap, None without a bound."""
        return None if self.bound is None else relative_gap(self.value, self.bound)

    def within(self, gap: float) -> bool:
        """Tell whether the relative gap is known, and no wider than one."""
        return self.gap is not None and self.gap <= gap


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the search.

    Parameters
    ----------
    stopped_by : what ended it before proof (`time`, `work`, `gap`, `interrupt`, `crash`).
    proof : what an infeasible outcome rests on, where that is known.
    """

    status: Status
    stopped_by: str | None = None
    fast: bool = False
    proof: Literal["certificate", "two-engines"] | None = None


@dataclass(frozen=True, slots=True)
class AdmissionResult:
    """How much of a workload is admitted, and why not more: codes of the DT4xxx range, dominant reason first.

    `served` and `rate` are what a service serves and was promised to, in thousandths of a request per second.
    """

    state: AdmissionState
    replicas: int
    of: int
    reasons: tuple[str, ...] = ()
    served: int | None = None
    rate: int | None = None


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """What is missing of what was promised of a workload (S2.8).

    Parameters
    ----------
    missing : thousandths of the rate, and of the replicas, that its class or itself is promised; not weighted.
    served, rate : thousandths of what is served of its rate, and of the rate, None where none is asked.
    """

    missing: int
    served: int | None = None
    rate: int | None = None


@dataclass(frozen=True, slots=True)
class Lifted:
    """What an active waiver lifts of a policy: for which workloads, until the end of which day, and who answers."""

    owner: str
    until: str
    workloads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """How a policy fares on the plan; `subjects` maps each broken subject to its violation, in `unit`.

    `excused` is the part of a hard policy's violation that today's state already has (S4.5). `result` is `fail`
    where a hard policy has more violation than that, or another policy has any; a policy that holds is `waived`
    where a waiver lifts it for a workload. `waivers` holds those that do, by name, whatever the result.
    """

    enforcement: Literal["hard", "soft", "audit"]
    result: PolicyOutcome
    violation: int
    unit: str
    subjects: Mapping[str, int] = field(default_factory=dict)
    excused: int = 0
    waivers: Mapping[str, Lifted] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """What an independent engine says of the same problem.

    Parameters
    ----------
    agrees : false only where it contradicts the plan.
    tiers : its optimum per tier; None where it did not finish, and after a tier whose optimum differs from the
        plan's value: what follows then answers another question.
    conclusive : whether it answered all that was asked.
    """

    engine: str
    agrees: bool
    tiers: Mapping[str, int | None] = field(default_factory=dict)
    conclusive: bool = True


@dataclass(frozen=True)
class Plan:
    """A plan for one Spec.

    Parameters
    ----------
    inputs : digest of what the plan depends on (S6.2), `sha256:...`.
    current : digest of what ran when the plan was made, where that came from outside the documents (S6.5).
    options : limits of the command line that it was made with.
    placements : every admitted replica's place.
    admitted : workloads that are not admitted in full.
    promises : workloads of which less is kept than was promised.
    held : what policies hold free, by name (S4.7).
    recovery : where lost replicas restart, by policy and failure case (S4.7).
    summary : figures for people, each recomputable from Spec and placements.
    conflict : names of policies that cannot hold together, for an infeasible outcome where known.
    gpus : the instances of the GPUs in MIG mode, by `node/index`.
    shared : the mode of the GPUs that clients share by equal parts, by `node/index`.
    certificate : digest of the certificate that stands beside the plan and shows what has `proof: certificate`.
    evidence : the text of that certificate, as long as the plan is in memory; it is no part of the plan.
    """

    name: str
    inputs: str
    outcome: Outcome
    tiers: tuple[TierResult, ...] = ()
    summary: Mapping[str, Figure] = field(default_factory=dict)
    placements: Places = field(default_factory=dict)
    admitted: Mapping[str, AdmissionResult] = field(default_factory=dict)
    policies: Mapping[str, PolicyResult] = field(default_factory=dict)
    held: Mapping[str, Told] = field(default_factory=dict)
    recovery: Recovery = field(default_factory=dict)
    second_opinion: SecondOpinion | None = None
    conflict: tuple[str, ...] = ()
    current: str | None = None
    options: Options = field(default_factory=Options)
    certificate: str | None = None
    gpus: Layouts = field(default_factory=dict)
    shared: Mapping[str, Setting] = field(default_factory=dict)
    promises: Mapping[str, BrokenPromise] = field(default_factory=dict)
    evidence: str | None = field(default=None, compare=False, repr=False)

    @property
    def claims_certificate(self) -> bool:
        """Tell whether the plan names a certificate, or says that anything rests on one."""
        proofs = (self.outcome.proof, *(tier.proof for tier in self.tiers))
        return self.certificate is not None or "certificate" in proofs


__all__ = [
    "AdmissionResult",
    "BrokenPromise",
    "Figure",
    "Lifted",
    "Outcome",
    "Place",
    "Plan",
    "PolicyResult",
    "Proof",
    "SecondOpinion",
    "Status",
    "TierResult",
    "relative_gap",
]
