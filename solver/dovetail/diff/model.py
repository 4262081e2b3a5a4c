"""What a difference is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from dovetail.diff.start import DISRUPTION
from dovetail.placement import Place
from dovetail.plan.model import Figure, Plan, PolicyOutcome
from dovetail.plan.summary import OF_TODAY
from dovetail.quantities import rounded

ChangeKind = Literal["add", "remove", "move", "restart", "elsewhere", "resize", "evict", "out", "gone", "wait"]
Sense = Literal["max", "min"]
SectionName = Literal["gpus", "held", "recovery", "promises"]


@dataclass(frozen=True, slots=True)
class Row:
    """One replica, or a run of replicas of a role with the same place, and its place on either side.

    `first` and `last` are indices, both included; a side without a place is None.
    """

    role_id: str
    first: int
    last: int
    before: Place | None
    after: Place | None

    @property
    def replica(self) -> str:
        """`[namespace/]workload[.role]#index`, or `...#first-last` for a run."""
        return f"{self.role_id}#{self.first}" + (f"-{self.last}" if self.last > self.first else "")

    @property
    def count(self) -> int:
        """How many replicas the row stands for."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Change:
    """What changes for one workload.

    Parameters
    ----------
    kind
        `add`: a workload without running replicas gets some; `remove`: it is no longer declared; `move`: replicas
        change their place; `restart`: they start anew on the place that they have, as GPUs are cut anew or shared in
        another way, or as the place was gone; `resize`: more or fewer replicas; `evict`: replicas stop that are still
        declared; `gone`: their place no longer exists; `wait`: declared, and newly or otherwise not admitted. Where
        the target does not start from the base, `elsewhere` stands for `move` and `out` for `evict`.
    replicas
        How many replicas the change is about.
    gpus
        Different GPUs they are on (for `remove`, `evict`, `out` and `gone`: were on).
    shape
        The same for people, `16x H100-80GB`; with the accelerator where the documents are known.
    before, after
        Admitted replicas of the whole workload on either side.
    declared
        Replicas that the target asks for, of the whole workload.
    why
        The reason in one phrase; empty where there is nothing to say.
    reasons
        Codes of the DT4xxx range.
    rows
        The replicas one by one, in order.
    """

    kind: ChangeKind
    workload: str
    replicas: int
    gpus: int = 0
    shape: str = ""
    before: int = 0
    after: int = 0
    declared: int = 0
    why: str = ""
    reasons: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()

    @property
    def in_part(self) -> bool:
        """Whether the target admits some replicas of the workload, and not all."""
        return 0 < self.after < self.declared

    def nodes_before(self) -> tuple[str, ...]:
        """Return the nodes the replicas ran on, sorted."""
        return tuple(sorted({row.before.node for row in self.rows if row.before}))

    def nodes_after(self) -> tuple[str, ...]:
        """Return the nodes the replicas will run on, sorted."""
        return tuple(sorted({row.after.node for row in self.rows if row.after}))


@dataclass(frozen=True, slots=True)
class TierChange:
    """One tier's value on either side, None where a side has no such tier."""

    name: str
    unit: str
    sense: Sense
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A policy whose outcome differs, None where it does not apply, or whose violation does.

    `violation` is that of either side, in `unit`; `subjects` holds those whose violation differs, with both.
    """

    name: str
    before: PolicyOutcome | None
    after: PolicyOutcome | None
    violation: tuple[int, int] = (0, 0)
    unit: str = ""
    subjects: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SectionChange:
    """An entry of a section of the plans that differs, as they write it; None where a side has none.

    `name` is what the section is keyed by: a GPU, a policy, or for promises a workload.
    """

    section: SectionName
    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Cost:
    """What it costs to go from the base to the target, or from where the target starts instead.

    Parameters
    ----------
    moves
        Replicas whose place still stands and that change it, or start anew there (S5.4).
    restarts
        Replicas that run on either side and start anew: moves, and those whose place is gone; all of an atomic
        workload with any of them, where the documents are known.
    evicted_workloads, evicted_replicas
        Those that stop although they are still declared.
    gpu_time_lost
        Milli-GPU seconds of work lost; None where the documents, which know about checkpoints, are not known.
    """

    moves: int = 0
    restarts: int = 0
    evicted_workloads: int = 0
    evicted_replicas: int = 0
    gpu_time_lost: int | None = None

    @property
    def gpu_hours_lost(self) -> Decimal | None:
        """GPU hours of work lost, to three digits."""
        if self.gpu_time_lost is None:
            return None
        return rounded(self.gpu_time_lost, 3_600_000)


@dataclass(frozen=True)
class PlanDiff:
    """The difference between two plans.

    Parameters
    ----------
    delta
        Target minus base of every figure of the summary that both have and that differs; what is held free, or cut
        anew, is zero where a side does not tell it.
    tiers
        All tiers of either side, in the target's order.
    changes
        Sorted by workload, then by kind; empty when nothing changes.
    policies
        Policies whose outcome or violation differs, by name.
    sections
        What else differs: how GPUs are cut and shared, what is held free, where what is lost restarts, promises.
    failures
        Names of policies that fail in the target, hard ones first.
    unchanged
        Workloads of the target that nothing changes for.
    starts_from_base
        Whether the base is what runs when the target is carried out, so that what differs is what happens.
    """

    base: Plan
    target: Plan
    delta: Mapping[str, Figure]
    tiers: tuple[TierChange, ...]
    changes: tuple[Change, ...]
    policies: tuple[PolicyChange, ...]
    failures: tuple[str, ...]
    cost: Cost
    unchanged: int
    starts_from_base: bool = True
    sections: tuple[SectionChange, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anything differs: a change, a figure, what became of a policy, a section, a tier of both.

        What it took to get to the base, where the target starts from there, is no difference.
        """
        tiers = {t.name for t in self.tiers if None not in (t.before, t.after) and t.before != t.after}
        figures = set(self.delta)
        if self.starts_from_base:
            tiers, figures = tiers - DISRUPTION, figures - set(OF_TODAY)
        return bool(self.changes or figures or self.policies or self.sections or tiers)

    def to_document(self) -> dict[str, Any]:
        """Return the difference as a document of kind PlanDiff."""
        from dovetail.diff.document import document

        return document(self)
