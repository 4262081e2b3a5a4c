"""Workloads: replicas of one or more roles and what each replica asks for (S2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

from dovetail.spec.cluster import SharedMode, Toleration
from dovetail.spec.inside import INNER_LEVELS, ISLAND_LEVEL
from dovetail.spec.slo import Slo, host_of
from dovetail.spec.topology import Nest, Topology

WorkloadType = Literal["gang", "service", "job"]
Isolation = Literal["none", "memory", "fault"]
Mix = Literal["none", "perRole", "any"]
ShareMode = Literal["fraction", "mig"]
MILLI = 1000


class Lean(NamedTuple):
    """What a binding policy on modes says of shares (S4.1): the modes to be kept out of, and where.

    Parameters
    ----------
    weight : what a share in such a mode costs, 0 where the policy is hard.
    rank : where in the objective that is weighed, the lower the earlier.
    everywhere : whether it is about all nodes, else about those whose `leaning` names the policy.
    """

    policy: str
    closed: tuple[str, ...]
    weight: int = 0
    everywhere: bool = True
    rank: int = 0


class ReplicaId(NamedTuple):
    """A replica's identity: `[namespace/]workload[.role]#index` (documents' identity rule)."""

    workload: str
    role: str
    ordinal: int

    def __str__(self) -> str:
        """Return the canonical text of the identity."""
        return f"{self.role_id}#{self.ordinal}"

    @property
    def role_id(self) -> str:
        """`[namespace/]workload[.role]`, the part that all replicas of a role share."""
        return f"{self.workload}.{self.role}" if self.role else self.workload


class Pace(NamedTuple):
    """What a share takes of GPUs of an accelerator: `compute` and `peak` in milli-GPU, as in `Share`."""

    accelerator: str
    compute: int
    peak: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """Part of one GPU: `compute` in milli-GPU; `memory` in MiB, None for the same fraction of the card (S2.2).

    Parameters
    ----------
    compute : what it takes wherever it may be, at the least; of some accelerators it may take more.
    elsewhere : the accelerators of which it takes more, by name, as it is measured on a reference (`Request.on`).
    peak : the milli-GPU that a MIG instance must offer, 0 where that is `compute` (S2.7).
    modes : what it may land on, sorted: a part of a GPU that is not cut (`fraction`), a MIG instance.
    barred : the modes of shared GPUs that it may not be in, sorted; `fraction` are those shared by fractions.
    turns : the accelerators on which it may take turns all the same, as its service says what it sustains then.
    rated : the hosts that it runs on with the rate it sustains there (`Slo.rates`), None where any will do.
    leans : what policies say of its modes; the Spec fills it in.
    """

    compute: int
    memory: int | None = None
    peak: int = 0
    modes: tuple[ShareMode, ...] = ("fraction",)
    rated: tuple[tuple[str, int], ...] | None = None
    barred: tuple[SharedMode | ShareMode, ...] = ()
    turns: tuple[str, ...] = ()
    leans: tuple[Lean, ...] = ()
    elsewhere: tuple[Pace, ...] = ()

    def on(self, accelerator: str | None) -> Share:
        """Return what it asks of GPUs of an accelerator, which is told of no other any more."""
        if not self.elsewhere:
            return self
        own = next((pace for pace in self.elsewhere if pace.accelerator == accelerator), None)
        compute, peak = (self.compute, self.peak) if own is None else own[1:]
        return replace(self, compute=compute, peak=peak, elsewhere=())

    def bars(self, mode: SharedMode | ShareMode, accelerator: str | None) -> bool:
        """Tell whether it may not be on GPUs in a mode (S2.7); clients of fractions take turns too."""
        return mode in self.barred and not (mode != "mps" and accelerator in self.turns)

    def takes_fraction(self, accelerator: str | None) -> bool:
        """Tell whether it may be on GPUs of an accelerator that are shared by fractions, with as much as it asks."""
        listed = self.rate(accelerator) is not None
        return "fraction" in self.modes and listed and not self.bars("fraction", accelerator)

    def rate(self, accelerator: str | None, profile: str = "") -> int | None:
        """Return the rate that it sustains on a host, 0 where rates mean nothing to it, None where it may not run."""
        if self.rated is None:
            return 0
        host = host_of(accelerator, profile)
        return next((rate for name, rate in self.rated if name == host), None)


class _Asked:
    """What a request asks of nodes with an accelerator, as far as anybody wanted to know; no part of what it is."""

    __slots__ = ("known",)
    known: dict[str | None, Request]


@dataclass(frozen=True, slots=True)
class Request(_Asked):
    """What one replica asks for: whole GPUs of one node, part of one GPU, or no GPU; plus host resources.

    Parameters
    ----------
    mig : a MIG profile, empty for none; `mig_milli` is what it counts for, in milli-GPU (S2.9).
    across : whether its GPUs need not share an island, as several do else (S2.5).
    within : the levels inside a node of which one domain is demanded, sorted.
    """

    cpu: int = 0
    memory: int = 0
    gpus: int = 0
    share: Share | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    mig: str = ""
    mig_milli: int = 0
    across: bool = False
    within: tuple[str, ...] = ()

    @property
    def inside(self) -> tuple[str, ...]:
        """The levels inside a node of which one domain each holds all its GPUs, sorted (S2.5)."""
        if self.gpus < 2 or self.across or ISLAND_LEVEL in self.within:
            return self.within
        return (ISLAND_LEVEL, *self.within)

    @property
    def varies(self) -> bool:
        """Whether what it asks of a GPU depends on the accelerator."""
        return self.share is not None and bool(self.share.elsewhere)

    def on(self, accelerator: str | None) -> Request:
        """Return what it asks of nodes with an accelerator: a share of a reference takes more of slower ones (S2.2).

        What counts replicas wherever they are asks the request itself, which tells the least.
        """
        if self.share is None or not self.share.elsewhere:
            return self
        if not hasattr(self, "known"):
            object.__setattr__(self, "known", {})
        found = self.known.get(accelerator)
        if found is None:
            found = self.known[accelerator] = replace(self, share=self.share.on(accelerator))
        return found

    @property
    def gpu_milli(self) -> int:
        """Requested milli-GPU, 0 for a replica without GPU; of a share what it takes at the least (`on`)."""
        return self.share.compute if self.share else MILLI * self.gpus + self.mig_milli

    @property
    def partial(self) -> bool:
        """Whether it takes part of one GPU, which others may share."""
        return self.share is not None or bool(self.mig)

    @property
    def may_use_mig(self) -> bool:
        """Whether it may land on a MIG instance."""
        return bool(self.mig) or (self.share is not None and "mig" in self.share.modes)

    @property
    def mode(self) -> str | None:
        """The mode of the GPUs that it lands on (S3.2); None without any, and for shares, where others have a say."""
        if self.mig:
            return "mig"
        return "whole" if self.gpus else None

    @property
    def gpu_count(self) -> int:
        """On how many GPUs of its node a replica lands."""
        return 1 if self.partial else self.gpus


@dataclass(frozen=True, slots=True)
class Observed:
    """What a replica really uses: `compute` in milli-GPU, `memory` in MiB; reported, never guessed (S5.6)."""

    compute: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """Alike replicas of a workload; `name` is empty for a workload without roles.

    `value` is what one admitted replica is worth: milli-GPU by default (S2.9), milli-cores without a GPU. An elastic
    role (S2.6) has `least` to `replicas` of them where any of the workload is admitted, in steps of `step`; `least`
    is None where a role says nothing of that. `worths` are what it is worth at each of these widths, empty where each
    replica counts for itself; they never fall.
    """

    name: str
    replicas: int
    request: Request
    value: int
    accelerators: tuple[str, ...] = ()
    observed: Observed | None = None
    least: int | None = None
    step: int = 1
    worths: tuple[int, ...] = ()

    def worth(self, count: int) -> int:
        """Return what so many admitted replicas are worth, at a width of the role."""
        if not self.worths or not count:
            return self.value * count
        return self.worths[(count - (self.least or 0)) // self.step]

    @property
    def elastic(self) -> bool:
        """Tell whether the role itself says how few of it are worth admitting."""
        return self.least is not None

    def allows(self, count: int) -> bool:
        """Tell whether the workload, where it is admitted at all, may have so many replicas of this role."""
        least = self.least or 0
        return least <= count <= self.replicas and not (count - least) % self.step


@dataclass(frozen=True)
class Workload:
    """A workload with the defaults of its type resolved (S2.1).

    Parameters
    ----------
    min_replicas : the fewest replicas, over all roles, that are admitted at all; all of them where `atomic`, unless
        roles are elastic.
    slo : the rate that was promised of a service (S2.8).
    holds : the policy whose held places it stands for (S4.7), no work of anybody's; empty for real work.
    communicates : whether its replicas talk to each other, so that the domains they span count (S5.1).
    """

    id: str
    namespace: str
    name: str
    type: WorkloadType
    roles: tuple[Role, ...]
    tenant: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    atomic: bool = False
    min_replicas: int = 0
    movable: bool = True
    preemptible: bool = False
    mix: Mix = "none"
    isolation: Isolation = "none"
    tolerations: tuple[Toleration, ...] = ()
    checkpoint_every: int | None = None
    restart: int = 0
    communicates: bool = False
    topology: Topology | None = None
    holds: str = ""
    slo: Slo | None = None

    @cached_property
    def by_role(self) -> Mapping[str, Role]:
        """Roles by name."""
        return {role.name: role for role in self.roles}

    @property
    def replicas(self) -> int:
        """Replicas over all roles."""
        return sum(role.replicas for role in self.roles)

    @property
    def asks_rate(self) -> bool:
        """Tell whether it asks for a rate alone, and leaves to the planner how many replicas serve it (S2.8)."""
        return self.slo is not None and self.slo.open

    @property
    def elastic(self) -> bool:
        """Tell whether any of its roles is elastic."""
        return any(role.elastic for role in self.roles)

    @property
    def ranked(self) -> bool:
        """Tell whether it matters which of its replicas are next to each other."""
        topology = self.topology
        return self.gathers or (topology is not None and (topology.binds or topology.prefer in INNER_LEVELS))

    @property
    def grouped(self) -> bool:
        """Tell whether its replicas come in groups."""
        return self.topology is not None and bool(self.topology.groups)

    @property
    def joint(self) -> bool:
        """Tell whether its replicas count together only, not one by one."""
        demands = self.topology is not None and self.topology.binds
        return self.atomic or self.min_replicas > 1 or self.elastic or demands

    def allows(self, counts: Mapping[str, int]) -> bool:
        """Tell whether it may be admitted with so many replicas of each role, wherever they are (S2.1, S2.6)."""
        return sum(counts.values()) >= self.min_replicas and all(
            role.allows(counts.get(role.name, 0)) for role in self.roles
        )

    @cached_property
    def squads(self) -> tuple[Nest, ...]:
        """Outermost groups that may be there in part, of which some must be where anybody is (S2.5)."""
        return tuple(nest for nest in (self.topology.nests if self.topology else ()) if self.groups_owed(nest))

    def groups_owed(self, nest: Nest) -> int:
        """Return how many groups that may be there in part must be where anybody is, 0 of those inside others."""
        if nest.number or not nest.loose:
            return 0
        number = min(self.by_role[role].replicas // size for role, size in nest.group.sizes.items())
        return nest.worthwhile(number, self.atomic) or 0

    @property
    def gathers(self) -> bool:
        """Tell whether it matters over how many domains its replicas spread (S5.1)."""
        wishes = self.topology is not None and self.topology.prefer is not None
        return self.replicas > 1 and (self.communicates or wishes)

    def replica_ids(self) -> Iterator[ReplicaId]:
        """Yield every replica's identity, role by role, by index."""
        for role in self.roles:
            for index in range(role.replicas):
                yield ReplicaId(self.id, role.name, index)
