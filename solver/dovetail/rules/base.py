"""What a rule is: parameters, how it constrains a model, and how it is checked on a finished plan (S4.4).

Both halves speak of the same *subjects* (domains, workloads, quota groups) and the same integer *violation*
(S4.5). What a violation leads to (forbidden, weighed or reported) is not the rule's business.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from dovetail.linear import Linear, Model
from dovetail.placement import Place, Places, View
from dovetail.rules.claims import Claims
from dovetail.rules.leaving import Leaving
from dovetail.rules.levels import nodes_problem
from dovetail.rules.scope import Scope
from dovetail.rules.terms import NodeTerms as NodeTerms
from dovetail.rules.terms import Told as Told
from dovetail.spec import Node, Policy, ReplicaId, Role, Spec, Workload
from dovetail.spec.permits import Ratios

if TYPE_CHECKING:
    from dovetail.rules.recovery import Failure, Stakes

Violations = Mapping[str, int]


class Domain(NamedTuple):
    """A domain as a model sees it: its subject name, its nodes, and the GPU index for the level `gpu`.

    Where it is `uncut`, what is on MIG instances is left out; with a `profile` all but what is on instances of it.
    """

    path: str
    nodes: tuple[str, ...]
    gpu: int | None = None
    uncut: bool = False
    profile: str = ""

    def holds(self, gpu: int, profile: str) -> bool:
        """Tell whether what is on a GPU of the domain's nodes, on an instance of a profile or none, is in it."""
        cut_otherwise = (self.uncut and profile) or (self.profile and profile != self.profile)
        return self.gpu in (None, gpu) and not cut_otherwise


class Part(Protocol):
    """The model of a part of the cluster, everything outside it fixed, as far as a rule may see it.

    Expressions count replicas inside the part as variables and those outside as constants, so a rule is written
    once for the whole cluster and for any part of it. `places` are today's that stand, `lost` those that do not.
    """

    spec: Spec
    model: Model
    places: Places
    lost: Places

    def changing(self, workloads: Iterable[Workload]) -> Iterable[Workload]:
        """Return those workloads of which the part can change anything; all of them where it is the whole.

        The expressions of the others are constants, which a violation of their own need not tell.
        """

    def domains(self, level: str) -> Iterable[Domain]:
        """Return the domains of a level (`gpu` included) that hold a node of this part."""

    def every_domain(self, level: str) -> Iterable[Domain]:
        """Return the domains of a level, those without a node of this part too."""

    def by_host(self, workload: Workload) -> Mapping[str, Linear]:
        """Return how many replicas of a workload are on each host (`spec.slo.host_of`)."""

    def count(self, workloads: Collection[Workload], domain: Domain, nodes: frozenset[str] | None = None) -> Linear:
        """Return how many replicas of some workloads are in a domain, on `nodes` only where given.

        What a collection makes up is worked out once: ask for every domain with the same one, left as it is.
        """

    def counts(
        self, workload: Workload, level: str, nodes: frozenset[str] | None = None, *, role: str | None = None
    ) -> Mapping[str, Linear]:
        """Return how many replicas of a workload are in each domain of a level, on `nodes` only where given.

        A domain outside the part that holds none has no entry. With `role`, the replicas of that role alone: only of
        a workload that the rule's `workload_key` tells from all others.
        """

    def reaching(self, workload: Workload, level: str) -> Mapping[str, Linear]:
        """Return how many replicas of a workload reach into each domain of a level; some may into several."""

    def stays(self, workload: Workload) -> Mapping[ReplicaId, Linear]:
        """Return for each replica whose place stands today 1 where it stays, else 0; none where nobody knows."""

    def owed(self, workload: Workload) -> Collection[ReplicaId]:
        """Return the replicas of a workload that must stay admitted, each in order in its groups (S5.3).

        None where today excuses any who is not: who must stay admitted may be out of order then.
        """

    def loosened(self, workload: Workload) -> bool:
        """Tell whether other groups of a workload may come before those that run (S5.3)."""

    def admitted(self, workload: Workload) -> Linear:
        """Return how many replicas of a workload are admitted, in the part and outside."""

    def together(self, workloads: Collection[Workload]) -> Linear:
        """Return how many replicas of some workloads are admitted in all, as `count` counts them in a domain."""

    def requested(self, workloads: Collection[Workload], resource: str, domain: Domain | None = None) -> Linear:
        """Return how much of a resource the admitted replicas request: `gpus` (milli), `cpu`, `memory` or a name.

        Of those in a domain only where one is given.
        """

    def not_restarted(self, stakes: Stakes, failures: Sequence[Failure]) -> Mapping[str, Linear] | None:
        """Return per failure case the replicas that do not restart, None where the model is too coarse for that."""

    def moved(self, workload: Workload) -> Linear:
        """Return how many replicas whose place stands today are admitted on another one."""

    def evicted(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role that run, or ran until their place went, are not admitted."""

    def in_modes(self, workload: Workload, modes: Collection[str], nodes: frozenset[str] | None = None) -> Linear:
        """Return how many replicas of a workload are on GPUs in some modes (S3.2), on `nodes` only where given."""

    def astray(self, workload: Workload, level: str, *, role: str | None = None) -> Linear:
        """Return how many replicas of a workload are in no domain of a level, or across several inside a node."""

    def misplaced(self, workload: Workload, nodes: frozenset[str], *, role: str | None = None) -> Linear:
        """Return how many replicas of a workload, or of one role of it, are on `nodes`."""


class Guard(Protocol):
    """A running account by which a construction tells whether one more replica would raise a rule's violation.

    What is blocked for a workload stays blocked until replicas are counted out, or `opened` changes.
    """

    @property
    def by_gpu(self) -> bool:
        """Whether one GPU of a node may be blocked and another not."""

    def bars(self, workload: Workload, role: Role) -> bool:
        """Tell whether a replica would be blocked wherever it went, as far as that is plain without a place."""

    def opened(self, workload: Workload) -> int:
        """Return a number that changes whenever places that were blocked for a workload may have opened."""

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Tell whether adding a replica (a share: on GPU `gpu`) would raise the violation of any subject."""

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas in, or out with a negative count."""


class Rule(Protocol):
    """One kind of policy rule; implementations are frozen dataclasses holding the rule's parameters.

    All that anybody must know of a rule is declared here, so that no other module asks which rule it has.

    Parameters
    ----------
    unit
        What violations count, in the plural; the first word that ends in `s` is the noun.
    grandfathered
        Whether the rule tolerates, per subject, as much violation as today's state already has (S4.5); one that does
        not binds fully whatever runs today.
    needs_current
        Whether violations count from what runs today, and not from the finished placement alone.
    judges_places
        Whether it matters where replicas are, and not only which are admitted.
    keeps_sets
        Whether it keeps workloads together, whose domains then count once (S5.1).
    searches
        Whether `check` has to search where nobody has told what it counts, so that a model may know more than it, or
        where it is large less.
    """

    kind: ClassVar[str]
    unit: ClassVar[str]
    grandfathered: ClassVar[bool]
    needs_current: ClassVar[bool]
    judges_places: ClassVar[bool]
    searches: ClassVar[bool]
    keeps_sets: ClassVar[bool]

    @property
    def inner_level(self) -> str:
        """The level inside nodes at which the rule tells where replicas are, empty for none."""

    @property
    def lets_more(self) -> bool:
        """Whether a policy also lets happen what could not without it: it lends to others, or promises more."""

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return per subject an expression that is at least its violation and can equal it."""

    def check(self, view: View, scope: Scope) -> Violations:
        """Return per subject the violation of a finished placement; subjects without violation may be left out."""

    def guard(self, scope: Scope) -> Guard | None:
        """Return an empty account for constructions, None where adding a replica breaks it on closed nodes only."""

    def closed_nodes(self, scope: Scope) -> frozenset[str]:
        """Return the nodes that matched workloads may not run on, whatever else runs anywhere."""

    def waits_for_others(self, workload: Workload, view: View, scope: Scope) -> bool:
        """Tell whether a matched workload cannot join, with all or any of it, as long as others are left out."""

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Return what this rule distinguishes about a matched workload (S4.6); equal keys are interchangeable."""

    def other_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Return what this rule distinguishes about a workload that is not matched, None for nothing."""

    def idle_talk(self, view: View, scope: Scope) -> Sequence[str]:
        """Return what of the told (`Told`) does not hold, although no violation counts it."""

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Return what this rule distinguishes about a node (S4.6); equal keys are interchangeable."""

    def node_terms(self, scope: Scope) -> NodeTerms:
        """Return what the rule demands of each single matched node; any part of the truth will do (S5.2)."""

    def placeholders(self, own: Policy) -> tuple[Workload, ...]:
        """Return what stands for the places that a policy of this rule holds free: workloads that `holds` it."""

    def promises(self) -> Ratios | None:
        """Return how much of nodes a hard policy lets be promised, None where it says nothing of that."""

    def tighten(self, part: Part, scope: Scope, excused: Mapping[str, int]) -> None:
        """Write rows that whole numbers keep once a hard policy of the rule holds, and an LP over `encode`'s may not.

        Parameters
        ----------
        part : the whole cluster.
        excused : per subject, the violation that today excuses.
        """

    def closes(self) -> tuple[str, ...]:
        """Return the modes of GPUs (S3.2) that it keeps matched workloads out of."""

    def told(self, view: View, scope: Scope) -> Told:
        """Return what a plan writes down of a finished placement for this policy."""

    def claims(self, scope: Scope) -> Claims:
        """Return what a hard policy of the rule certainly demands; any part of the truth will do (S4.4)."""

    def leaving(self, view: View, scope: Scope) -> Sequence[Leaving]:
        """Return who of those in a view must leave for subjects to break less; any part of the truth will do.

        No two subjects mean the same replica.
        """

    def too_many(self, view: View, scope: Scope, excused: Mapping[str, int]) -> Collection[ReplicaId]:
        """Return replicas without which a rule that `searches` is violated less, as far as today does not excuse it.

        Nobody runs among them. Where they and what stands or falls with them are gone, more may be left to name.
        """

    def could_hold(self, view: View, scope: Scope) -> tuple[Place, ...]:
        """Return places that the rule could hold free beside what is there, as many as there may be."""

    def sets(self, scope: Scope) -> tuple[tuple[Workload, ...], ...]:
        """Return the workloads that the rule keeps together, or would like to: where several, they count as one."""

    def lifted(self, spec: Spec) -> Spec:
        """Return a Spec of which nothing else demands what a policy of the rule stands for."""

    def dated(self, day: dt.date | None) -> Hashable:
        """Return what of the rule depends on the date that a plan is made for (S6.2), None for nothing."""

    def unsound(self, spec: Spec) -> str | None:
        """Return why the parameters make no sense for a Spec (an unknown level, a missing part), None if fine."""

    def unsound_beside(self, own: Policy, spec: Spec) -> str | None:
        """Return why a policy of this rule makes no sense beside all that a Spec has, None if it is fine."""

    def never_lifted(self, own: Policy) -> str | None:
        """Return why a waiver of a policy of this rule would lift nothing, None if it lifts what it selects."""


class RuleDefaults:
    """What most rules have to say where they have nothing to say."""

    __slots__ = ()

    keeps_sets: ClassVar[bool] = False
    searches: ClassVar[bool] = False

    @property
    def inner_level(self) -> str:
        """Tell nothing inside nodes."""
        return ""

    @property
    def lets_more(self) -> bool:
        """Let nothing happen that could not without the policy."""
        return False

    def guard(self, scope: Scope) -> Guard | None:
        """Return none: adding a replica breaks the rule on closed nodes only, or never."""
        return None

    def too_many(self, view: View, scope: Scope, excused: Mapping[str, int]) -> Collection[ReplicaId]:
        """Return nobody: what adds replicas one by one keeps such a rule."""
        return ()

    def closed_nodes(self, scope: Scope) -> frozenset[str]:
        """Close no nodes."""
        return frozenset()

    def waits_for_others(self, workload: Workload, view: View, scope: Scope) -> bool:
        """Let every workload join by itself."""
        return False

    def other_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish nothing among workloads that are not matched."""
        return None

    def idle_talk(self, view: View, scope: Scope) -> Sequence[str]:
        """Tell nothing that would not hold."""
        return ()

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish no nodes."""
        return None

    def node_terms(self, scope: Scope) -> NodeTerms:
        """Demand nothing of a single node."""
        return NodeTerms()

    def placeholders(self, own: Policy) -> tuple[Workload, ...]:
        """Hold no places."""
        return ()

    def promises(self) -> Ratios | None:
        """Say nothing of what nodes have to give."""
        return None

    def tighten(self, part: Part, scope: Scope, excused: Mapping[str, int]) -> None:
        """Write nothing more."""

    def closes(self) -> tuple[str, ...]:
        """Keep nobody out of any mode."""
        return ()

    def told(self, view: View, scope: Scope) -> Told:
        """Write nothing down."""
        return Told()

    def claims(self, scope: Scope) -> Claims:
        """Claim nothing."""
        return Claims()

    def leaving(self, view: View, scope: Scope) -> Sequence[Leaving]:
        """Let all stay."""
        return ()

    def could_hold(self, view: View, scope: Scope) -> tuple[Place, ...]:
        """Hold no places."""
        return ()

    def sets(self, scope: Scope) -> tuple[tuple[Workload, ...], ...]:
        """Keep no workloads together."""
        return ()

    def lifted(self, spec: Spec) -> Spec:
        """Return the Spec: policies alone demand what the rule says."""
        return spec

    def dated(self, day: dt.date | None) -> Hashable:
        """Depend on no date."""
        return None

    def unsound(self, spec: Spec) -> str | None:
        """Accept all parameters."""
        return None

    def unsound_beside(self, own: Policy, spec: Spec) -> str | None:
        """Refuse a choice of nodes at levels inside them, and accept all other policies."""
        return nodes_problem(own, self.inner_level)

    def never_lifted(self, own: Policy) -> str | None:
        """Accept waivers of all policies."""
        return None
