"""What a tier is: an integer that a plan is judged by, written into a model and measured on a placement (S5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from dovetail.linear import Linear
from dovetail.objectives.sharing import Clients
from dovetail.placement import View
from dovetail.rules import Context, Part
from dovetail.spec import Node, Role, Spec, Workload
from dovetail.spec.workload import MILLI

Sense = Literal["max", "min"]


def sign_of(sense: Sense) -> int:
    """Return 1 where more is better and -1 where less is: so many times a value is the greater the better it is."""
    return 1 if sense == "max" else -1


@dataclass(frozen=True, slots=True)
class IdleGpu:
    """A GPU that parts are or may be taken of, in one mode; all 0 where it is not in that mode.

    Parameters
    ----------
    amount : idle thousandths that somebody could take.
    vram : idle thousandths of a MiB; of no meaning where it is cut.
    held : the instances in use by profile where it is cut by MIG, None where it is not cut.
    number : its index on the node.
    """

    amount: Linear
    vram: Linear
    held: Mapping[str, Linear] | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Idle:
    """What a node has left.

    Parameters
    ----------
    cpu : milli-cores.
    untouched : GPUs that nothing is on.
    parted : the GPUs that parts are or may be taken of.
    surplus : thousandths that MIG instances offer beyond the shares on them.
    clients : who is on GPUs that are shared by equal parts, None where they are not.
    """

    cpu: Linear
    untouched: Linear
    parted: tuple[IdleGpu, ...]
    surplus: Linear
    clients: Clients | None = None

    @property
    def amount(self) -> Linear:
        """Idle thousandths of GPUs in all."""
        return Linear.total([self.untouched.scaled(MILLI), self.surplus, *(gpu.amount for gpu in self.parted)])


class TierPart(Part, Protocol):
    """What tiers may ask of a model beyond what rules may."""

    context: Context
    violations: Mapping[str, Mapping[str, Linear]]

    def reaching(self, workload: Workload, level: str) -> Mapping[str, Linear]:
        """Return how many replicas of a workload reach into each domain of a level; inside a node into several."""

    def worth(self, roles: Iterable[tuple[Workload, Role]]) -> Linear:
        """Return the value of the admitted replicas of some roles, which together make up whole shapes."""

    def admitted_role(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role are admitted that is a shape of its own."""

    def retained(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role whose place stands today stay admitted."""

    def evicted(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role that run, or ran until their place went, are not admitted."""

    def moved_role(self, workload: Workload, role: Role) -> Linear:
        """Return how many replicas of a role whose place stands today are admitted on another one."""

    def free_nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the part; where it counts alike nodes together, one that stands for each kind."""

    def used(self, node: str) -> Linear:
        """Return how many of the nodes that a node of the part stands for host anything."""

    def gpus_used(self, node: str) -> Linear:
        """Return how many GPUs of the nodes that a node of the part stands for are in use."""

    def recut(self, node: str) -> Linear:
        """Return at most how many GPUs of a node of the part are cut in another way than today."""

    def idle(self, node: str) -> Idle:
        """Return what a single node of the part has left."""


class Tier(Protocol):
    """One tier of the objective; `kind` is its family, `name` tells it apart (`admitted[900]`).

    `limit_needs_current` tells whether its limit (`limit_given`) counts from what runs today, `counts_nodes` whether
    it asks for nodes and GPUs in use, `asks_domains` whether it asks for replicas by domain, `asks_idle` whether for
    what single nodes have left.
    """

    kind: ClassVar[str]
    limit_needs_current: ClassVar[bool]
    counts_nodes: ClassVar[bool]
    asks_domains: ClassVar[bool]
    asks_idle: ClassVar[bool]

    @property
    def name(self) -> str:
        """The tier's name in plans."""

    @property
    def sense(self) -> Sense:
        """Whether more or less is better."""

    @property
    def unit(self) -> str:
        """What the value counts."""

    def encode(self, part: TierPart) -> Linear:
        """Return the tier's expression, as far as the part can change it."""

    def measure(self, view: View, context: Context) -> int:
        """Return the tier's value on a finished placement."""

    def limit(self, context: Context) -> int:
        """Return a bound from arithmetic on the documents alone."""

    def needs_current(self, spec: Spec) -> bool:
        """Tell whether the tier's value counts from what runs today, and not from the finished placement alone."""
