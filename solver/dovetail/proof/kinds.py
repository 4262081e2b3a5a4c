"""Kinds of nodes: what the bound on whole fleets counts together, today's contents set aside (S4.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from dovetail.mig import Geometry, multisets
from dovetail.placement.clients import equal_parts, terms_of
from dovetail.problem import Problem, Shape
from dovetail.proof.sides import Side, groups_of, joined, sides_of
from dovetail.rules import Context, NodeTerms
from dovetail.rules.quota import requested_of
from dovetail.spec import Node, Policy, Request
from dovetail.spec.inside import INNER_LEVELS
from dovetail.spec.workload import MILLI


@dataclass(frozen=True)
class Kind:
    """Nodes that the bound does not tell apart.

    Parameters
    ----------
    members : the nodes, by their position in the Problem's node list, ascending; `node` stands for all.
    shapes : what any of them may hold, ascending.
    sides : what may be on a node together; every legal content lies within one side.
    groups : the shapes that rules let share a node, however its GPUs are shared or cut.
    most : per shape, how many replicas of it one node may hold, where rules say less than its room does.
    geometry : what its GPUs can be cut into, None where they cannot.
    card : the memory of one of its GPUs, in MiB.
    loose : the shapes of which any run on the kind's nodes today, where they may be across islands and stay so.
    """

    node: Node
    members: tuple[int, ...]
    shapes: tuple[int, ...]
    sides: tuple[Side, ...]
    groups: tuple[frozenset[int], ...]
    most: Mapping[int, int] = field(default_factory=dict)
    geometry: Geometry | None = None
    card: int = 0
    loose: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """How many nodes are of this kind."""
        return len(self.members)

    def lets_share_node(self, shapes: Collection[int]) -> bool:
        """Tell whether hard rules let shapes share a node."""
        return any(group.issuperset(shapes) for group in self.groups)

    def lets_share_gpu(self, shapes: Collection[int]) -> bool:
        """Tell whether hard rules let shapes that ask for parts share a GPU."""
        return any(card.shapes.issuperset(shapes) for side in self.sides for card in side.cards)


def kinds_of(
    problem: Problem, present: Mapping[int, Iterable[int]], *, priced: bool = False, sided: bool = True
) -> tuple[Kind, ...]:
    """Group the nodes of a Problem into kinds, by hardware, prices and what hard rules demand of single nodes.

    Where a node lies is told apart per shape, for those alone that rules ask for by domain (see `fleet`).

    Parameters
    ----------
    present : per node index, the shapes that run there today; they may stay whether or not they could come anew.
    priced : whether prices tell nodes apart.
    sided : whether what keeps sides of nodes apart counts: rules, and how GPUs are shared or cut.
    """
    terms = [_terms(problem.context, policy) for policy in problem.spec.policies]
    groups: dict[Hashable, list[int]] = {}
    for index, node in enumerate(problem.nodes):
        make = problem.makes.of[index]
        extra = tuple(sorted(set(present.get(index, ())).difference(problem.hosted_by_make[make])))
        binding = tuple((bool(bound.terms) and bound.holds_on(node), node.name in bound.closed) for bound in terms)
        prices = (node.price, node.gpu_price) if priced else None
        groups.setdefault((make, prices, extra, binding), []).append(index)
    kinds = (_kind(problem, terms, indices, present, sided=sided) for indices in groups.values())
    return tuple(kind for kind in kinds if kind.shapes)


@dataclass(frozen=True, slots=True)
class _Bound:
    """A hard policy's terms, the nodes they hold on (None: all), and those where today excuses a violation."""

    terms: NodeTerms
    nodes: frozenset[str] | None
    excused: frozenset[str]
    closed: frozenset[str]
    matched: frozenset[str]

    def holds_on(self, node: Node) -> bool:
        """Tell whether the terms bind on a node."""
        return node.name not in self.excused and (self.nodes is None or node.name in self.nodes)


def _terms(context: Context, policy: Policy) -> _Bound:
    scope = context.scopes[policy.name]
    if policy.enforcement.kind != "hard":
        return _Bound(NodeTerms(), scope.nodes, frozenset(), frozenset(), frozenset())
    tolerated = context.tolerated[policy.name]
    excused = frozenset(subject.rsplit("/", 1)[0] for subject in tolerated) | frozenset(tolerated)
    terms = policy.rule.node_terms(scope)
    free = {w: n for w, n in terms.most.items() if w not in tolerated}
    closed = policy.rule.closed_nodes(scope) if not tolerated else frozenset[str]()
    return _Bound(replace(terms, most=free), scope.nodes, excused, closed, scope.ids)


def _kind(
    problem: Problem,
    bounds: Iterable[_Bound],
    indices: Sequence[int],
    present: Mapping[int, Iterable[int]],
    *,
    sided: bool,
) -> Kind:
    node = problem.nodes[indices[0]]
    hosted = set(problem.hosted_by_make[problem.makes.of[indices[0]]])
    found = hosted.union(*(present.get(index, ()) for index in indices))
    binding = [bound for bound in bounds if bound.holds_on(node)]
    closing = [bound for bound in bounds if node.name in bound.closed]
    shapes = [
        problem.shapes[s]
        for s in sorted(found)
        if not any(problem.shapes[s].workload.id in bound.matched for bound in closing)
    ]
    by_node = [bound.terms.apart for bound in binding if bound.terms.apart and not bound.terms.by_gpu]
    by_gpu = [bound.terms.apart for bound in binding if bound.terms.apart and bound.terms.by_gpu]
    most: Counter[int] = Counter()
    for shape in shapes:
        caps = [bound.terms.most[shape.workload.id] for bound in binding if shape.workload.id in bound.terms.most]
        if caps:
            most[shape.index] = min(caps)
    one = node.mig_strategy == "single" and any(bound.terms.one_profile for bound in binding)
    return Kind(
        node,
        tuple(indices),
        tuple(shape.index for shape in shapes),
        sides_of(problem, node, shapes, by_node, by_gpu, one_profile=one) if sided else joined(problem, node, shapes),
        tuple(groups_of(shapes, by_node if sided else [])),
        dict(most),
        problem.geometry(node),
        problem.card(node),
        frozenset(shape for index in indices for shape in present.get(index, ())),
    )


def capacities(kind: Kind) -> Mapping[str, int]:
    """Return what one node of a kind has of everything but GPUs."""
    return {"cpu": kind.node.cpu, "memory": kind.node.memory, **kind.node.resources}


class Dimension(NamedTuple):
    """Something that each node of a kind has so much of, and how much of it a replica of each shape takes.

    `total` names the resource that it is all of; empty for a class of one.
    """

    capacity: int
    amounts: Mapping[int, int]
    total: str = ""


CLASSES: Final = 8
"""Of each resource, beside its total (see `dimensions`)."""


def dimensions(problem: Problem, kind: Kind) -> tuple[Dimension, ...]:
    """Return what a node's contents must keep to beside its GPUs: CPU, memory, resources, and classes of each.

    With a capacity C and k = 1..8, a replica that takes d of it counts d / C where (k + 1) d / C is whole, else that
    number rounded down over k: what fits C adds up to 1 at the most (a dual feasible function; Fekete and Schepers
    2001, u^(k)). That tells how few replicas of a third or more of a node fit it, which totals do not. They are
    counted in parts of k (k + 1), so that all are whole.
    """
    found = []
    for name, capacity in capacities(kind).items():
        asked = {s: requested_of(problem.shapes[s].request, name) for s in kind.shapes}
        amounts = {s: amount for s, amount in asked.items() if amount}
        if not amounts:
            continue
        found.append(Dimension(capacity, amounts, name))
        for k in range(1, CLASSES + 1) if capacity else ():
            classes = {s: class_of(k, amount, capacity) for s, amount in amounts.items() if amount <= capacity}
            counted = {s: number for s, number in classes.items() if number > 0}
            if counted:
                found.append(Dimension(k * (k + 1), counted))
    return tuple(found)


def class_of(k: int, amount: int, capacity: int) -> int:
    """Return what an amount of a capacity counts in the class k, of k (k + 1); see `dimensions`."""
    whole, rest = divmod((k + 1) * amount, capacity)
    return whole * (k + 1 if rest else k)


def room_for(kind: Kind, shape: Shape) -> int:
    """Return how many replicas of a shape one empty node of a kind could hold at the most."""
    request = shape.on(kind.node.accelerator)
    gpus = len(kind.node.healthy_gpus())
    limits = [shape.demand, kind.most.get(shape.index, shape.demand)]
    if request.partial:
        limits.append(gpus * _most_on_a_gpu(kind, request))
    elif request.gpus:
        limits.append(sum(gpus // request.gpus for gpus in blocks_for(kind, [shape])))
    amounts = {"cpu": request.cpu, "memory": request.memory, **request.resources}
    limits += [capacities(kind).get(name, 0) // amount for name, amount in amounts.items() if amount]
    return min(limits)


def least_load(problem: Problem, shape: int, node: Node) -> int:
    """Return the thousandths of GPUs of a node that a replica takes at the least, on instances or not, rounded down.

    Legal layouts have no more memory slices than their GPU, so that the part of them that each instance takes adds up
    to 1 at the most; what they offer in compute need not, as 4g and 3g together offer more than there is.
    """
    geometry = problem.geometry(node)
    if geometry is None or not problem.request(shape, node).may_use_mig:
        return problem.load(shape, node)
    ways = problem.modes(shape, node)
    cut = [MILLI * geometry.by_name[name].size // geometry.axis for name in ways if name]
    return min([*cut, *([problem.load(shape, node)] if "" in ways or not cut else [])])


def blocks_for(kind: Kind, shapes: Iterable[Shape]) -> tuple[int, ...]:
    """Return how many healthy GPUs each block of a node has that no replica of some shapes reaches out of.

    These are islands where all with several GPUs keep within them, sockets likewise, else the node as a whole.
    """
    inside = [set(s.request.inside) - (set(INNER_LEVELS) if s.index in kind.loose else set()) for s in _wide(shapes)]
    common = set(INNER_LEVELS).intersection(*inside)
    healthy = kind.node.healthy
    return tuple((block & healthy).bit_count() for block in kind.node.blocks(tuple(sorted(common))))


def _wide(shapes: Iterable[Shape]) -> Iterator[Shape]:
    return (shape for shape in shapes if shape.request.gpus > 1)


def _most_on_a_gpu(kind: Kind, request: Request) -> int:
    """Return a number of replicas of a request for part of a GPU that one GPU never holds more than."""
    shares = MILLI // request.gpu_milli if request.share else 0
    if request.share and equal_parts(kind.node):
        terms = terms_of(request, kind.node, kind.card)
        shares = terms.most if terms is not None else 0
    geometry = kind.geometry if request.may_use_mig else None
    if geometry is None:
        return shares
    if request.mig:
        return max([shares, *(profile.maximum for profile in geometry.profiles if profile.name == request.mig)])
    return max([shares, *(sum(counts.values()) for counts in multisets(geometry))])
