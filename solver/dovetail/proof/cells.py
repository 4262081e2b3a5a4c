"""By what rules ask for shapes: domains of which levels, which sets of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dovetail.linear import Linear
from dovetail.model.counting import Counting
from dovetail.objectives import Tier
from dovetail.problem import Problem
from dovetail.proof.kinds import Kind
from dovetail.rules import Domain
from dovetail.spec import Node, Workload
from dovetail.spec.cluster import GPU_LEVEL, NODE_LEVEL
from dovetail.spec.inside import INNER_LEVELS

_MOST_CELLS = 50_000  # a policy that asks for shapes by more cells than this is left out
INSIDE = (NODE_LEVEL, GPU_LEVEL, *INNER_LEVELS)


class Question(NamedTuple):
    """By what a shape is asked for: the domain of a level, or whether a node is one of some."""

    level: str = ""
    nodes: frozenset[str] | None = None

    def of(self, node: Node) -> str | bool | None:
        """Return a node's answer."""
        return node.domain(self.level) if self.nodes is None else node.name in self.nodes


class Cell(NamedTuple):
    """Nodes of a kind that the questions about a shape do not tell apart, and the shape's count on them."""

    answers: Mapping[Question, str | bool | None]
    variable: int


class Plot(NamedTuple):
    """Nodes of a kind that no question about any shape tells apart, by their position in the Problem's node list."""

    answers: Mapping[Question, object]
    members: tuple[int, ...]

    def lies_in(self, cell: Cell) -> bool:
        """Tell whether the plot is part of a cell."""
        return all(self.answers[question] == answer for question, answer in cell.answers.items())


def domains_of(nodes: Iterable[Node], level: str) -> tuple[Domain, ...]:
    """Return the domains of a level, which carry the level in place of their nodes; none within nodes."""
    if level in INSIDE:
        return ()
    paths = dict.fromkeys(node.domain(level) for node in nodes)
    return tuple(Domain(path, (level,)) for path in paths if path is not None)


def questions_of(domain: Domain, nodes: frozenset[str] | None) -> tuple[Question, ...]:
    """Return the questions that a count in a domain, on some nodes, puts."""
    return (Question(level=domain.nodes[0]), *([] if nodes is None else [Question(nodes=nodes)]))


class Listener(Counting):
    """Notes by what a rule asks for shapes, on a model that is thrown away."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._count = {shape.index: self.model.integer(0, shape.demand) for shape in problem.shapes}
        self.asked: dict[int, dict[Question, None]] = {}
        self.inside = False
        self._domains: dict[str, tuple[Domain, ...]] = {}
        self.violations: Mapping[str, Mapping[str, Linear]] = {}

    def all_questions(self) -> set[Question]:
        """Return every question that was asked."""
        return {question for found in self.asked.values() for question in found}

    def _ask(self, shapes: Iterable[int], *questions: Question) -> Linear:
        total = Linear()
        for shape in shapes:
            self.asked.setdefault(shape, {}).update(dict.fromkeys(questions))
            total.add_term(self._count[shape])
        return total

    def changing(self, workloads: Iterable[Workload]) -> Iterable[Workload]:
        """Return all workloads: nothing is outside."""
        return workloads

    def domains(self, level: str) -> Iterable[Domain]:
        """Return the domains of a level, noting whether it is one within nodes."""
        self.inside = self.inside or level in INSIDE
        if level not in self._domains:
            self._domains[level] = domains_of(self.problem.nodes, level)
        return self._domains[level]

    def every_domain(self, level: str) -> Iterable[Domain]:
        """Return the domains of a level: nothing is outside."""
        return self.domains(level)

    def count(self, workloads: Collection[Workload], domain: Domain, nodes: frozenset[str] | None = None) -> Linear:
        """Note that some workloads are counted in a domain."""
        return self._ask(self._shapes_in(workloads), *questions_of(domain, nodes))

    def shape_in(self, shape: int, domain: Domain) -> Linear:
        """Note that a shape is counted in a domain."""
        return self._ask([shape], *questions_of(domain, None))

    def counts(
        self, workload: Workload, level: str, nodes: frozenset[str] | None = None, *, role: str | None = None
    ) -> Mapping[str, Linear]:
        """Note that a workload is counted in the domains of a level."""
        shapes, domains = self._shapes_of(workload, role), tuple(self.domains(level))
        total = self._ask(shapes, *questions_of(domains[0], nodes)) if domains else Linear()
        return {domain.path: Linear(dict(total.terms)) for domain in domains}  # all of a level put the same questions

    def misplaced(self, workload: Workload, nodes: frozenset[str], *, role: str | None = None) -> Linear:
        """Note that a workload is counted on some nodes."""
        return self._ask(self._shapes_of(workload, role), Question(nodes=nodes))

    def admitted_shape(self, shape: int) -> Linear:
        """Return how many replicas of a shape are admitted."""
        return Linear.of(self._count[shape])

    def _kept(self, shape: int) -> Linear:
        return Linear()

    def by_host(self, workload: Workload) -> Mapping[str, Linear]:
        """Return nothing: tiers do not ask here."""
        return {}

    def free_nodes(self) -> tuple[Node, ...]:
        """Return none: tiers do not ask here."""
        return ()

    def used(self, node: str) -> Linear:
        """Return nothing: tiers do not ask here."""
        return Linear()

    def gpus_used(self, node: str) -> Linear:
        """Return nothing: tiers do not ask here."""
        return Linear()


@dataclass(frozen=True, slots=True)
class Asked:
    """What policies and tiers ask for shapes by.

    Parameters
    ----------
    of_shape : the questions about each shape.
    inside : the policies that ask for domains within nodes.
    untold, untold_tiers : the policies, and the tiers, that ask too finely.
    """

    of_shape: Mapping[int, tuple[Question, ...]]
    inside: frozenset[str]
    untold: frozenset[str]
    untold_tiers: frozenset[str]


def asked_by(problem: Problem, tiers: Iterable[Tier]) -> Asked:
    """Let the policies of a Problem and some tiers speak once to learn by what shapes are asked for."""
    asked: dict[int, dict[Question, None]] = {}
    inside, untold, untold_tiers = set[str](), set[str](), set[str]()
    for policy in problem.spec.policies:
        if policy.enforcement.kind == "audit":
            continue
        listener = Listener(problem)
        policy.rule.encode(listener, problem.context.scopes[policy.name])
        if not _heed(listener, asked):
            untold.add(policy.name)
        elif listener.inside:
            inside.add(policy.name)
    for tier in tiers:
        if tier.asks_domains:
            listener = Listener(problem)
            tier.encode(listener)
            if not _heed(listener, asked):
                untold_tiers.add(tier.name)
    of_shape = {shape: tuple(found) for shape, found in asked.items()}
    return Asked(of_shape, frozenset(inside), frozenset(untold), frozenset(untold_tiers))


def _heed(listener: Listener, asked: dict[int, dict[Question, None]]) -> bool:
    """Add what a listener heard to what is asked, unless it would take too many cells; tell whether it was."""
    nodes = listener.problem.nodes
    cells = {question: len({question.of(node) for node in nodes}) for question in listener.all_questions()}
    if sum(cells[q] for found in listener.asked.values() for q in found) > _MOST_CELLS:
        return False
    for shape, found in listener.asked.items():
        asked.setdefault(shape, {}).update(found)
    return True


def plots_of(problem: Problem, kind: Kind, questions: Mapping[int, tuple[Question, ...]]) -> Iterator[Plot]:
    """Yield the nodes of a kind that no question about any of its shapes tells apart."""
    asked = tuple(dict.fromkeys(question for shape in kind.shapes for question in questions.get(shape, ())))
    groups: dict[tuple[object, ...], list[int]] = {}
    for member in kind.members:
        groups.setdefault(tuple(question.of(problem.nodes[member]) for question in asked), []).append(member)
    for answers, members in groups.items():
        yield Plot(dict(zip(asked, answers, strict=True)), tuple(members))
