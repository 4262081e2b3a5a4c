"""A whole fleet in counts per kind of node and shape: the relaxation that bounds tiers at any size.

It keeps demands, who stands or falls together, everything that rules say of domains and of totals, and what one node
can hold at the most (`node`). Of what runs today it keeps who must stay admitted and what is excused, and forgets
where that is; and it forgets where rules reach into nodes in ways that `node_terms` does not tell. Every plan is a
point of this model with values no worse, so its bounds bind plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from dovetail.linear import Linear, Model
from dovetail.model.counting import Counting
from dovetail.model.demands import add_threshold
from dovetail.objectives import Tier, sign_of
from dovetail.objectives.occupied import GpusInUse
from dovetail.problem import Problem, Shape
from dovetail.proof.cells import Cell, Question, asked_by, domains_of, plots_of, questions_of
from dovetail.proof.certificate import Forks, Multipliers, Prices
from dovetail.proof.forgetting import forgotten
from dovetail.proof.hosts import ByMode, cut_up, hosts_of, served_apart
from dovetail.proof.idle import IdleUse, Useful
from dovetail.proof.kinds import Kind, capacities, kinds_of, least_load, room_for
from dovetail.proof.lagrangian import Block, PlainRow, floor_of, plain_ends, plain_rows
from dovetail.proof.limits import tighten
from dovetail.proof.node import Extra, NodeLimit, Packing
from dovetail.proof.since_today import counts_since_today, since_today_of
from dovetail.proof.without_today import present_shapes, protected, without_held, without_today
from dovetail.rules import Domain
from dovetail.rules.quota import requested_of
from dovetail.spec import Node, Workload
from dovetail.spec.workload import MILLI

FEW_NODES: Final = 1000
"""On more of them parts of nodes and of replicas are no matter."""


class FleetModel(Counting):
    """Counts of every shape on every kind of node, and the rows that bind them.

    A shape that rules ask for by domain, or by a set of nodes, is counted per *cell* of a kind as well: the nodes of
    the kind that these questions do not tell apart. What nodes can hold is known of whole kinds only.

    Parameters
    ----------
    original : the Problem to bound; what runs today is set aside. `flags` are, by workload that stands or falls
        together, the variables that tell whether it is there. `in_use` are sums of nodes in use, each with the
        number of kinds that it is about. `modes_of` are, per kind, the variables of counts by mode, of shapes that
        serve more on some instances than on others.
    priced : whether to tell nodes apart by price and count those in use, as tiers with `counts_nodes` need it.
    sided : whether rules that keep sides of single nodes apart are counted.
    tells_idle : whether it counts what idle GPU is good for.
    """

    def __init__(
        self, original: Problem, *, priced: bool = False, sided: bool = True, tells_idle: bool = False
    ) -> None:
        super().__init__(without_today(without_held(original) if priced else original))
        self.original = original
        self.priced, self.sided = priced, sided
        self.kinds = kinds_of(self.problem, present_shapes(original, self.problem), priced=priced, sided=sided)
        self.idle_use = IdleUse.asked_by(original, self.problem) if tells_idle else None
        asked = asked_by(self.problem, original.tiers)
        self.inside, self.untold_tiers = asked.inside, asked.untold_tiers
        self.untold = asked.untold | ({w.holds for w in original.spec.placeholders} if priced else set())
        questions = asked.of_shape
        self.model = Model()
        self._known_sizes: dict[tuple[int, tuple[Question, ...]], Mapping[tuple[str | bool | None, ...], int]] = {}
        self.cells_of: list[Mapping[int, list[Cell]]] = []
        self._by_host: dict[str, Mapping[str, Linear]] = {}
        self._answers: dict[tuple[int, Question], dict[str | bool | None, list[Cell]]] = {}
        self.plots_of = [tuple(plots_of(self.problem, kind, questions)) for kind in self.kinds]
        self.counts_of = [self._add_counts(position, kind, questions) for position, kind in enumerate(self.kinds)]
        self.modes_of = [self._add_modes(position, kind) for position, kind in enumerate(self.kinds)]
        self.used_of = [self._count_in_use(1, kind, kind.node.price) for kind in self.kinds]
        counted = any(isinstance(tier, GpusInUse) for tier in original.tiers)
        self.gpus_used_of = [
            self._count_in_use(len(kind.node.healthy_gpus()), kind, kind.node.gpu_price + counted)
            for kind in self.kinds
        ]
        self.useful_of = [self.idle_use.of(kind.node) if self.idle_use else None for kind in self.kinds]
        self.use_of = [self._add_use(*each) for each in zip(self.kinds, self.useful_of, strict=True)]
        self.in_use = dict(self._add_sums_in_use())
        self._protected = protected(original, self.problem)
        self._supply: dict[int, int] = {}  # by shape, the row of the model that `supply` is about
        self._admitted = [self._add_admitted(shape) for shape in self.problem.shapes]
        self.flags = {w.id: add_threshold(self, w) for w in self.spec.workloads if self._falls_together(w)}
        self.violations: Mapping[str, Mapping[str, Linear]] = self._add_policies()
        tighten(self.model)

    def _count_in_use(self, each: int, kind: Kind, price: int) -> int | None:
        """Add a variable for the nodes of a kind, or their GPUs, that are in use, where they have a price."""
        return self.model.integer(0, kind.size * each) if self.priced and price else None

    def _add_use(self, kind: Kind, useful: Useful | None) -> int | None:
        """Add a variable for the use of all that is idle on a kind's nodes, if that is asked for."""
        return None if useful is None else self.model.integer(0, kind.size * useful.untouched[-1])

    def _add_sums_in_use(self) -> Iterator[tuple[int, int]]:
        """Add up nodes in use, of all kinds, of those with alike GPUs, and of each; yield sums and how many kinds.

        No node has a part in these variables, so a proof may tell cases apart by them. Sums of most kinds come first.
        """
        counted = [(kind, used) for kind, used in zip(self.kinds, self.used_of, strict=True) if used is not None]
        groups: dict[Hashable, list[tuple[Kind, int]]] = {}
        for kind, used in counted if len(self.problem.nodes) <= FEW_NODES else ():
            for name in (None, (kind.node.accelerator, len(kind.node.healthy_gpus())), used):
                groups.setdefault(name, []).append((kind, used))
        sums = {tuple(used for _, used in group): group for group in groups.values()}
        for uses, members in sorted(sums.items(), key=lambda each: -len(each[0])):
            total = self.model.integer(0, sum(kind.size for kind, _ in members))
            self.model.require(Linear(dict.fromkeys(uses, 1) | {total: -1}), lower=0, upper=0)
            yield total, len(uses)

    def _add_counts(self, position: int, kind: Kind, questions: Mapping[int, tuple[Question, ...]]) -> dict[int, int]:
        found = {}
        cells: dict[int, list[Cell]] = {}
        for shape in kind.shapes:
            form = self.problem.shapes[shape]
            room = room_for(kind, form)
            most = min(form.demand, kind.size * room)
            if most > 0:
                found[shape] = self.model.integer(0, most, f"x:{position}:{shape}")
                cells[shape] = self._add_cells(kind, found[shape], room, questions.get(shape, ()))
        for question in dict.fromkeys(q for shape in found for q in questions.get(shape, ())):
            self._add_room_of_cells(kind, question, cells)
        self.cells_of.append(cells)
        return found

    def _add_modes(self, position: int, kind: Kind) -> ByMode:
        """Cut counts up by how replicas are on a GPU, where what they serve depends on it."""
        found: dict[int, Mapping[str, int]] = {}
        for shape, count in self.counts_of[position].items() if self.tells_modes else ():
            if modes := served_apart(self.problem, shape, kind.node):
                found[shape] = cut_up(self.model, Linear.of(count), modes)
        return found

    def _add_cells(self, kind: Kind, count: int, room: int, questions: tuple[Question, ...]) -> list[Cell]:
        """Cut a shape's count on a kind into one per cell."""
        if not questions:
            return [Cell({}, count)]
        sizes = self._sizes(kind, questions)
        if len(sizes) == 1:
            return [Cell(dict(zip(questions, next(iter(sizes)), strict=True)), count)]
        rest = Linear.of(count)
        cells = []
        for answers, size in sizes.items():
            variable = self.model.integer(0, min(self.model.upper[count], size * room))
            cells.append(Cell(dict(zip(questions, answers, strict=True)), variable))
            rest.add_term(variable, -1)
        self.model.require(rest, lower=0, upper=0)
        return cells

    def _sizes(self, kind: Kind, questions: tuple[Question, ...]) -> Mapping[tuple[str | bool | None, ...], int]:
        """Return how many nodes of a kind give which answers to some questions, worked out once for all shapes."""
        key = kind.members[0], questions
        if key not in self._known_sizes:
            nodes = (self.problem.nodes[member] for member in kind.members)
            self._known_sizes[key] = Counter(tuple(question.of(node) for question in questions) for node in nodes)
        return self._known_sizes[key]

    def _add_room_of_cells(self, kind: Kind, question: Question, cells: Mapping[int, list[Cell]]) -> None:
        """Bound what is counted by cell by what the nodes with each answer to a question have in all."""
        sizes = {answer: size for (answer,), size in self._sizes(kind, (question,)).items()}
        if len(sizes) == 1:
            return
        for name, capacity in {"gpus": MILLI * len(kind.node.healthy_gpus()), **capacities(kind)}.items():
            totals = {answer: Linear() for answer in sizes}
            for shape, found in cells.items():
                amount = (
                    least_load(self.problem, shape, kind.node)
                    if name == "gpus"
                    else requested_of(self.problem.request(shape, kind.node), name)
                )
                for cell in found if amount else ():
                    if question in cell.answers:
                        totals[cell.answers[question]].add_term(cell.variable, amount)
            for answer, total in totals.items():
                if self.model.range_of(total)[1] > sizes[answer] * capacity:
                    self.model.require(total, upper=sizes[answer] * capacity)

    def _add_admitted(self, shape: Shape) -> Linear:
        """Add up a shape's counts in one variable, so that rows on what is admitted stay short.

        What runs and is protected is there in every plan, wherever it may be.
        """
        counts = Linear({counts[shape.index]: 1 for counts in self.counts_of if shape.index in counts})
        total = Linear.of(self.model.integer(self._protected[shape.index], shape.demand, f"z:{shape.index}"))
        self._supply[shape.index] = len(self.model.rows)
        self.model.require(counts.minus(total), lower=0, upper=0)
        return total

    def _falls_together(self, workload: Workload) -> bool:
        """Tell whether fewer than some number of a workload's replicas, more than one, are worth nothing."""
        several = workload.elastic or workload.min_replicas > 1
        return several and workload.id in self.problem.shapes_of_workload

    def _add_policies(self) -> Mapping[str, Mapping[str, Linear]]:
        found: dict[str, Mapping[str, Linear]] = {}
        for policy in self.spec.policies:
            if policy.enforcement.kind == "audit":
                continue
            if policy.name in self.untold:
                found[policy.name] = {}
                continue
            violations = policy.rule.encode(self, self.context.scopes[policy.name])
            found[policy.name] = violations
            if policy.enforcement.kind == "hard":
                self._forbid(policy, violations)
                policy.rule.tighten(self, self.context.scopes[policy.name], self.context.tolerated[policy.name])
        return found

    @property
    def tells_modes(self) -> bool:
        """Whether it counts on which instances of a GPU replicas are, where they serve more on some."""
        return True

    @property
    def tells_settings(self) -> bool:
        """Whether it counts how the GPUs of a node are shared or cut as a whole."""
        return self.sided

    @cached_property
    def relaxed(self) -> tuple[str, ...]:
        """What the model forgets, as certificates tell it."""
        return tuple(forgotten(self))

    # What rules see.

    def changing(self, workloads: Iterable[Workload]) -> Iterable[Workload]:
        """Return all workloads: nothing is outside."""
        return workloads

    @cached_property
    def _domains(self) -> dict[str, tuple[Domain, ...]]:
        return {}

    def domains(self, level: str) -> Iterable[Domain]:
        """Return the domains of a level, without their nodes; none within nodes."""
        if level not in self._domains:
            self._domains[level] = domains_of(self.problem.nodes, level)
        return self._domains[level]

    def every_domain(self, level: str) -> Iterable[Domain]:
        """Return the domains of a level: nothing is outside."""
        return self.domains(level)

    def count(self, workloads: Collection[Workload], domain: Domain, nodes: frozenset[str] | None = None) -> Linear:
        """Return how many replicas of some workloads are in a domain, on `nodes` only where given."""
        answers: tuple[str | bool, ...] = (domain.path, True)
        wanted = dict(zip(questions_of(domain, nodes), answers, strict=False))
        return Linear.total(self._in_cells(shape, wanted) for shape in sorted(self._shapes_in(workloads)))

    def shape_in(self, shape: int, domain: Domain) -> Linear:
        """Return how many replicas of a shape are in a domain."""
        answers: tuple[str | bool, ...] = (domain.path,)
        return self._in_cells(shape, dict(zip(questions_of(domain, None), answers, strict=True)))

    def _in_cells(self, shape: int, wanted: Mapping[Question, str | bool]) -> Linear:
        (question, answer), *rest = wanted.items()
        cells = self._answering(shape, question).get(answer, ())
        return Linear({cell.variable: 1 for cell in cells if all(cell.answers[q] == a for q, a in rest)})

    def _answering(self, shape: int, question: Question) -> Mapping[str | bool | None, Sequence[Cell]]:
        """Return the cells of a shape by what they answer to a question, once its counts are all there."""
        key = shape, question
        if key not in self._answers:
            found = self._answers[key] = {}
            for cell in (each for by_shape in self.cells_of for each in by_shape.get(shape, ())):
                found.setdefault(cell.answers[question], []).append(cell)
        return self._answers[key]

    def counts(
        self, workload: Workload, level: str, nodes: frozenset[str] | None = None, *, role: str | None = None
    ) -> Mapping[str, Linear]:
        """Return how many replicas of a workload are in each domain of a level; none within nodes."""
        shapes = self._shapes_of(workload, role)
        found = {domain.path: Linear() for domain in self.domains(level)}
        for cell in (c for s in shapes for by_shape in self.cells_of for c in by_shape.get(s, ())) if found else ():
            path = cell.answers[Question(level=level)]
            if isinstance(path, str) and (nodes is None or cell.answers[Question(nodes=nodes)]):
                found[path].add_term(cell.variable)
        return found

    def misplaced(self, workload: Workload, nodes: frozenset[str], *, role: str | None = None) -> Linear:
        """Return how many replicas of a workload are on `nodes`."""
        wanted: dict[Question, str | bool] = {Question(nodes=nodes): True}
        return Linear.total(self._in_cells(shape, wanted) for shape in self._shapes_of(workload, role))

    def admitted_shape(self, shape: int) -> Linear:
        """Return how many replicas of a shape are admitted."""
        return self._admitted[shape]

    def _kept(self, shape: int) -> Linear:
        return Linear()

    # What tiers see beyond that.

    def by_host(self, workload: Workload) -> Mapping[str, Linear]:
        """Return how many replicas of a workload are on each host; see `hosts`."""
        if workload.id not in self._by_host:
            counts = zip(self.kinds, self.counts_of, self.modes_of, strict=True)
            self._by_host[workload.id] = hosts_of(self.problem, self.model, counts, workload)
        return self._by_host[workload.id]

    @cached_property
    def _kind_of(self) -> Mapping[str, int]:
        return {kind.node.name: position for position, kind in enumerate(self.kinds)}

    def free_nodes(self) -> tuple[Node, ...]:
        """Return a node for every kind."""
        return tuple(kind.node for kind in self.kinds)

    def used(self, node: str) -> Linear:
        """Return how many nodes of a node's kind host anything."""
        variable = self.used_of[self._kind_of[node]]
        return Linear() if variable is None else Linear.of(variable)

    def gpus_used(self, node: str) -> Linear:
        """Return how many GPUs of a node's kind are in use."""
        variable = self.gpus_used_of[self._kind_of[node]]
        return Linear() if variable is None else Linear.of(variable)

    # What is proved with it.

    @cached_property
    def tiers(self) -> Mapping[str, Linear]:
        """Per tier that the model knows of, its expression, greater being better."""
        told = ((tier, self._told(tier)) for tier in self.original.tiers if tier.name not in self.untold_tiers)
        return {tier.name: found.scaled(sign_of(tier.sense)) for tier, found in told if found is not None}

    def _told(self, tier: Tier) -> Linear | None:
        """Write a tier, None where the model does not tell it."""
        if tier.asks_idle:
            return self.idle_use.useless(self) if self.idle_use else None
        if tier.needs_current(self.spec):
            return since_today_of(tier, self.original, self, self._protected)
        return tier.encode(self) if self.priced or not tier.counts_nodes else None

    @cached_property
    def numbers(self) -> frozenset[int]:
        """Variables of tiers that no node has a part in: how many are admitted, and what is counted since today."""
        own = (variable for name in self.since_today for variable in self.tiers[name].terms)
        return frozenset((*own, *(v for admitted in self._admitted for v in admitted.terms)))

    @cached_property
    def since_today(self) -> frozenset[str]:
        """The tiers that count from today, of those that the model knows of without places."""
        return frozenset(tier.name for tier in self.original.tiers if counts_since_today(tier))

    @cached_property
    def rows(self) -> list[PlainRow]:
        """The rows of demands, policies and tiers."""
        self.tiers  # noqa: B018 -- tiers may add rows of their own
        return plain_rows(self.model)

    @cached_property
    def supply(self) -> Mapping[int, tuple[int, int]]:
        """By shape, the rows by which no more, and no less, is on nodes than is admitted."""
        ends = plain_ends(self.model)
        return {shape: (ends[row] - 2, ends[row] - 1) for shape, row in self._supply.items()}

    @cached_property
    def sides(self) -> tuple[tuple[int, int], ...]:
        """The sides of all kinds, as (kind, position): the blocks of proofs, in order."""
        return tuple((k, position) for k, kind in enumerate(self.kinds) for position in range(len(kind.sides)))

    @cached_property
    def packings(self) -> tuple[Packing, ...]:
        """The knapsacks of a node of each kind."""
        return tuple(Packing(self.problem, *each) for each in zip(self.kinds, self.useful_of, strict=True))

    def floors(self, earlier: Mapping[str, int]) -> list[PlainRow]:
        """Return rows that keep earlier tiers, those that the model knows, at values (greater being better)."""
        return [floor_of(self.tiers[name], earlier[name]) for name in self.tiers if name in earlier]

    def box(self, earlier: Mapping[str, int]) -> tuple[Sequence[int], Sequence[int]]:
        """Return the limits of all variables, given earlier tiers' values (greater being better)."""
        return self.model.lower, self.model.upper

    def blocks(self, prices: Prices) -> Sequence[Block]:
        """Return what the nodes of each kind can earn.

        Parameters
        ----------
        prices : per block (see `sides`), multipliers of the dimensions of its nodes, or cases of what these hold.
        """
        found: list[list[Multipliers | Forks]] = [[] for _ in self.kinds]
        extra = list(map(Extra, self.used_of, self.gpus_used_of, self.use_of))
        for block, (kind, _) in enumerate(self.sides):
            found[kind].append(prices.get(block, {}))
        return [
            NodeLimit(packing, self.counts_of[k], self.modes_of[k], extra[k], found[k])
            for k, packing in enumerate(self.packings)
        ]
