"""Gangs over alike domains: a small integer model that places all of them at once, counted per class of domains.

Innermost domains that lie in the same outer ones and have the same nodes are a *class*. The model counts, per class,
the replicas of every shape and the domains that each workload spans, and keeps what the nodes of a class have in all.
It knows nothing of which domain of a class is which: every plan is a point of it, so what it proves of the tiers on
topology binds plans. With `apart`, workloads that gather share no domain, so that its solutions can be laid out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.engine.budget import Budget
from dovetail.engine.gathering.alike import Class, classes_of, fewest_of, one_by_one
from dovetail.engine.gathering.sets import gathers, join, keep_together, sets_of, spanned_less_one, weighed
from dovetail.engine.solvers.answer import Effort, Verdict
from dovetail.engine.solvers.cpsat import CpSat
from dovetail.linear import Linear, Model
from dovetail.objectives import Tier
from dovetail.objectives.admitted import Admitted, worth_at_width
from dovetail.objectives.topology import Span
from dovetail.objectives.violations import Policies
from dovetail.placement.nested import every_nest
from dovetail.plan.relaxed import NODES
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.proof.kinds import dimensions, kinds_of, least_load, room_for
from dovetail.rules.topology import NAME as TOPOLOGY
from dovetail.spec import Nest, Workload
from dovetail.spec.cluster import NODE_LEVEL

MOST_VARIABLES = 20_000


class Gatherings:
    """The model, its variables by what they count.

    Parameters
    ----------
    apart : whether domains are kept apart between workloads that gather, or sets of them that policies keep together.
    single : whether every domain is a class of its own, so that a solution tells which domain holds what.
    """

    def __init__(self, problem: Problem, *, apart: bool, single: bool = False) -> None:
        self.problem = problem
        self.levels = problem.spec.told_levels
        self.kinds = kinds_of(problem, {}, sided=False)
        classes = classes_of(problem, self.kinds, self.levels)
        self.classes = one_by_one(classes) if single else classes
        sets = sets_of(problem)
        inside = {name for ids in sets for name in ids}
        self.gathering = [w for w in problem.spec.workloads if w.id in inside or gathers(w)]
        self.model = Model()
        self.counts: dict[tuple[int, int, int], int] = {}  # shape, class, kind
        self.spans: dict[tuple[str, int], int] = {}  # workload, class: domains
        self.nodes: dict[tuple[str, int, int], int] = {}  # workload, class, kind: nodes
        self.around: dict[tuple[str, str, str], int] = {}  # workload, level, path: whether it is there
        self.here: dict[str, int] = {}
        for position, each in enumerate(self.classes):
            self._add_class(position, each)
        for workload in self.gathering:
            self._add_workload(workload)
        self.sets = {ids: join(self, who) for ids, who in sets.items()}
        keep_together(self)
        for shape in problem.shapes:
            self.model.require(self._of_shape(shape.index), upper=shape.demand)
        if apart:
            self._keep_apart()

    @staticmethod
    def suits(problem: Problem) -> bool:
        """Tell whether there is anything for the model to do, and nothing that it does not know."""
        levels = problem.spec.told_levels
        if not levels or problem.present or not any(isinstance(tier, Span) for tier in problem.tiers):
            return False
        kinds = kinds_of(problem, {}, sided=False)
        classes = classes_of(problem, kinds, levels)
        shapes = {position: len(kind.shapes) for position, kind in enumerate(kinds)}
        return sum(3 * shapes[kind] for each in classes for kind in each.nodes) <= MOST_VARIABLES

    # -- rows

    def _add_class(self, position: int, each: Class) -> None:
        for number, nodes in each.nodes.items():
            kind = self.kinds[number]
            for s in kind.shapes:
                shape = self.problem.shapes[s]
                most = min(shape.demand, each.size * nodes * room_for(kind, shape))
                if most > 0:
                    self.counts[s, position, number] = self.model.integer(0, most)
            self._add_capacity(position, number, each.size * nodes)

    def _add_capacity(self, position: int, number: int, nodes: int) -> None:
        kind = self.kinds[number]
        rows = [(bound.capacity, bound.amounts) for bound in dimensions(self.problem, kind)]
        gpus = {s: least_load(self.problem, s, kind.node) for s in kind.shapes}
        rows.append((1000 * len(kind.node.healthy_gpus()), {s: amount for s, amount in gpus.items() if amount}))
        for capacity, amounts in rows:
            terms = {s: amount for s, amount in amounts.items() if (s, position, number) in self.counts}
            total = Linear({self.counts[s, position, number]: amount for s, amount in terms.items()})
            if self.model.range_of(total)[1] > nodes * capacity:
                self.model.require(total, upper=nodes * capacity)

    def _shapes(self, workload: Workload) -> tuple[int, ...]:
        return self.problem.shapes_of_workload.get(workload.id, ())

    def _of_shape(self, shape: int) -> Linear:
        return Linear({v: 1 for (s, _, _), v in self.counts.items() if s == shape})

    def _in_class(self, shape: int, position: int) -> Linear:
        numbers = self.classes[position].nodes
        found = (self.counts.get((shape, position, number)) for number in numbers)
        return Linear({variable: 1 for variable in found if variable is not None})

    def room(self, shape: int, position: int) -> int:
        """Return how many replicas of a shape one domain of a class could hold at the most."""
        form = self.problem.shapes[shape]
        nodes = self.classes[position].nodes.items()
        held = (count * room_for(self.kinds[k], form) for k, count in nodes if shape in self.kinds[k].shapes)
        return min(form.demand, sum(held))

    def _add_workload(self, workload: Workload) -> None:
        self.here[workload.id] = self.model.boolean()
        self._add_presence(workload)
        for position, each in enumerate(self.classes):
            shapes = [s for s in self._shapes(workload) if self.room(s, position)]
            if shapes:
                self._add_span(workload, position, each, shapes)
        self._add_outer(workload)
        self._add_fewest(workload)
        self._add_demands(workload)

    def _add_presence(self, workload: Workload) -> None:
        """Say how many replicas there are where any is."""
        here, total = self.here[workload.id], Linear()
        for s in self._shapes(workload):
            shape, count, least = self.problem.shapes[s], self._of_shape(s), self._least(workload, s)
            total.add(count)
            self.model.require(count.minus(Linear.of(here, shape.demand)), upper=0)
            self.model.require(count.minus(Linear.of(here, least)), lower=0)
        self.model.require(total.minus(Linear.of(here, max(1, workload.min_replicas))), lower=0)

    def _add_span(self, workload: Workload, position: int, each: Class, shapes: Sequence[int]) -> None:
        span = self.spans[workload.id, position] = self.model.integer(0, each.size)
        for s in shapes:
            inside = self._in_class(s, position)
            self.model.require(inside.minus(Linear.of(span, self.room(s, position))), upper=0)
        for number, nodes in each.nodes.items():
            here = [s for s in shapes if (s, position, number) in self.counts]
            if here:
                used = self.nodes[workload.id, position, number] = self.model.integer(0, each.size * nodes)
                for s in here:
                    room = room_for(self.kinds[number], self.problem.shapes[s])
                    self.model.require(Linear({self.counts[s, position, number]: 1, used: -room}), upper=0)

    def _add_outer(self, workload: Workload) -> None:
        """Say in which outer domains a workload is."""
        for level in self.levels[:-1]:
            inside: dict[str, list[int]] = {}
            for position, each in enumerate(self.classes):
                path = each.outer[level]
                if path is not None and (workload.id, position) in self.spans:
                    inside.setdefault(path, []).append(position)
            total = Linear()
            for path, positions in inside.items():
                flag = self.around[workload.id, level, path] = self.model.boolean()
                total.add_term(flag)
                for position in positions:
                    size = self.classes[position].size
                    self.model.require(Linear({self.spans[workload.id, position]: 1, flag: -size}), upper=0)
                self._fill_outer(workload, positions, flag)
            if self._all_in(level, workload):
                self.model.require(total.minus(Linear.of(self.here[workload.id])), lower=0)

    def _all_in(self, level: str, workload: Workload) -> bool:
        """Tell whether whatever a workload may be on lies in a domain of a level."""
        there = (each for position, each in enumerate(self.classes) if (workload.id, position) in self.spans)
        return all(each.outer.get(level, "") is not None and each.counted for each in there)

    def _fill_outer(self, workload: Workload, positions: Sequence[int], flag: int) -> None:
        for s in self._shapes(workload):
            inside = Linear.total(self._in_class(s, position) for position in positions)
            self.model.require(inside.minus(Linear.of(flag, self.problem.shapes[s].demand)), upper=0)

    def _add_fewest(self, workload: Workload) -> None:
        """Say over how many domains of a level a workload spreads at the least, were it alone."""
        for level in (*self.levels, NODE_LEVEL):
            spanned, here = self.spanned(workload, level), self.here[workload.id]
            for s in self._shapes(workload):
                wanted = self._least(workload, s)
                fewest = fewest_of(self._rooms(s, level), wanted)
                if fewest > 1 and self._all_in(level, workload):
                    self.model.require(spanned.minus(Linear.of(here, fewest)), lower=0)

    def _least(self, workload: Workload, shape: int) -> int:
        """Return how many replicas of a shape there are at the least where the workload is admitted."""
        form = self.problem.shapes[shape]
        return form.demand if workload.atomic and not workload.elastic else (form.role.least or 0)

    def _rooms(self, shape: int, level: str) -> Counter[int]:
        """Return how many domains of a level have room for so many replicas of a shape."""
        found: Counter[int] = Counter()
        outer: Counter[str | None] = Counter()
        for position, each in enumerate(self.classes):
            if level == NODE_LEVEL:
                for number, count in each.nodes.items():
                    if shape in self.kinds[number].shapes:
                        found[room_for(self.kinds[number], self.problem.shapes[shape])] += each.size * count
            elif level == self.levels[-1]:
                found[self.room(shape, position)] += each.size
            else:
                outer[each.outer[level]] += each.size * self.room(shape, position)
        return found + Counter(outer.values())

    def _add_demands(self, workload: Workload) -> None:
        topology = workload.topology
        if topology is None:
            return
        if topology.within is not None:
            self.model.require(self.spanned(workload, topology.within), upper=1)
        for nest in every_nest(topology.nests):
            for s in self._shapes(workload):
                role = self.problem.shapes[s].role.name
                size = nest.unit(role)
                for count, most in self._groups(s, size, nest.group.within) if size > 1 else ():
                    self.model.require(count.minus(Linear.of(self.model.integer(0, most), size)), lower=0, upper=0)
                if nest.loose and role in nest.group.sizes:
                    self._add_loose(workload, s, nest, role)

    def _add_loose(self, workload: Workload, shape: int, nest: Nest, role: str) -> None:
        """Say how many replicas are where groups lie that may be there in part, and how many groups there must be."""
        size, fewest, groups = nest.group.sizes[role], nest.fewest(role), Linear()
        for count, _ in self._groups(shape, 1, nest.group.within):
            number = self.model.integer(0, workload.by_role[role].replicas // size)
            self.model.require(count.minus(Linear.of(number, size)), upper=0)
            self.model.require(count.minus(Linear.of(number, fewest)), lower=0)
            groups.add_term(number)
        least = workload.groups_owed(nest)
        if least and groups.terms:
            self.model.require(groups.minus(Linear.of(self.here[workload.id], least)), lower=0)

    def _groups(self, shape: int, size: int, level: str) -> Iterator[tuple[Linear, int]]:
        """Yield the counts of a shape that come in multiples of a size, each with the most groups there."""
        if level == NODE_LEVEL:
            for (s, position, number), variable in self.counts.items():
                if s == shape:
                    each = self.classes[position]
                    room = room_for(self.kinds[number], self.problem.shapes[s])
                    yield Linear.of(variable), each.size * each.nodes[number] * (room // size)
        elif level == self.levels[-1]:
            for position, each in enumerate(self.classes):
                yield self._in_class(shape, position), each.size * (self.room(shape, position) // size)
        elif level in self.levels:
            for path in dict.fromkeys(each.outer[level] for each in self.classes):
                inside = [p for p, each in enumerate(self.classes) if each.outer[level] == path]
                yield (
                    Linear.total(self._in_class(shape, p) for p in inside),
                    self.problem.shapes[shape].demand // size,
                )

    def _keep_apart(self) -> None:
        inside = {name for ids in self.sets for name in ids}
        for position, each in enumerate(self.classes):
            found = [v for (w, p), v in self.spans.items() if p == position and w not in inside]
            found += [joint.spans[position] for joint in self.sets.values() if position in joint.spans]
            self.model.require(Linear(dict.fromkeys(found, 1)), upper=each.size)

    # -- tiers

    def spanned(self, workload: Workload, level: str) -> Linear:
        """Return how many domains of a level a workload spans."""
        if level == NODE_LEVEL:
            return Linear({v: 1 for (w, _, _), v in self.nodes.items() if w == workload.id})
        if level == self.levels[-1]:
            counted = (v for (w, p), v in self.spans.items() if w == workload.id and self.classes[p].counted)
            return Linear(dict.fromkeys(counted, 1))
        return Linear({v: 1 for (w, at, _), v in self.around.items() if w == workload.id and at == level})

    def encode(self, tier: Tier) -> Linear | None:
        """Return a tier's value, None where the model does not know it."""
        if isinstance(tier, Admitted):
            if any(shape.workload.asks_rate for shape in self.problem.shapes):
                return None  # what a rate is worth is not told by counts alone
            total = Linear()
            for shape in self.problem.shapes:
                for member in shape.members[:1]:
                    same = self.problem.spec.band_of(member.workload) == tier.band
                    if same and bool(shape.request.gpu_count) == tier.gpu:
                        total.add(self._worth(shape))
            return total
        if isinstance(tier, Span) and tier.level in (*self.levels, NODE_LEVEL):
            total = Linear()
            for who in tier.subjects(self.problem.context):
                found = spanned_less_one(self, who, tier.level)
                if found is None:
                    return None
                total.add(found)
            return total
        return weighed(self, tier) if isinstance(tier, Policies) else None

    def _worth(self, shape: Shape) -> Linear:
        """Return what the replicas of a shape are worth."""
        if shape.role.worths:
            return worth_at_width(self.model, self._of_shape(shape.index), shape.role)
        return self._of_shape(shape.index).scaled(shape.role.value)

    # -- what is read off

    @property
    def relaxed(self) -> tuple[str, ...]:
        """What the model forgets."""
        names = {p.name for p in self.problem.spec.policies if p.enforcement.kind != "audit" and p.name != TOPOLOGY}
        return (NODES, *sorted(names))

    def tidied(self, values: list[int]) -> list[int]:
        """Return a solution with no more nodes than its replicas need; the tier on nodes starts from there."""
        found = list(values)
        for (workload, position, number), variable in self.nodes.items():
            needed = [0]
            for s in self.problem.shapes_of_workload[workload]:
                count = self.counts.get((s, position, number))
                if count is not None:
                    needed.append(-(-values[count] // room_for(self.kinds[number], self.problem.shapes[s])))
            found[variable] = max(needed)
        return found

    def wanted(self, workload: Workload, position: int, values: list[int]) -> Mapping[int, int]:
        """Return how many replicas of each shape of a workload a solution has in a class."""
        found = {s: self._in_class(s, position).value(values) for s in self._shapes(workload)}
        return {s: count for s, count in found.items() if count}

    def mates(self, workload: str) -> tuple[str, ...]:
        """Return the workloads of the sets that a workload is in."""
        return tuple(name for ids in self.sets if workload in ids for name in ids)


@dataclass(frozen=True, slots=True)
class Reached:
    """What the model says of a tier: a value that its solution has, and one that none passes, where that is known."""

    tier: Tier
    value: int
    bound: int | None


@dataclass(frozen=True, slots=True)
class Solved:
    """The best solution, and what is known of each tier in order; tiers that the model does not know are left out."""

    values: list[int] | None
    tiers: tuple[Reached, ...]
    work: float


def _share(budget: Budget, left: int, workers: int) -> Effort:
    """Return a tier's share of the work and the time that are left for so many."""
    effort = budget.effort(1.0 / left, workers)
    return effort if effort.seconds is None else replace(effort, seconds=effort.seconds / max(1.0, left / 2))


def climb(
    gatherings: Gatherings,
    budget: Budget,
    stop: Stop,
    hint: list[int] | None = None,
    workers: int = 1,
    known: Sequence[Reached] = (),
) -> Solved:
    """Optimise the tiers in order, each held while the next is looked for.

    Parameters
    ----------
    hint : a solution to start from.
    known : what another model says of the tiers; its bounds count as long as the same values are found.
    """
    engine, work = CpSat(gatherings.model), 0.0
    found: list[Reached] = []
    told = [(t, e) for t in gatherings.problem.tiers if (e := gatherings.encode(t)) is not None]
    best = hint
    for position, (tier, expression) in enumerate(told):
        if len(known) > position and all(a.value == b.value for a, b in zip(known, found, strict=False)):
            bound = known[position].bound
            gatherings.model.require(expression, *((None, bound) if tier.sense == "max" else (bound, None)))
        effort = _share(budget, len(told) - position, workers)
        answer = engine.solve(expression, tier.sense, effort, dict(enumerate(best or ())), stop)
        work += answer.work
        if answer.values is None:
            return Solved(best if answer.verdict is not Verdict.INFEASIBLE else None, tuple(found), work)
        best = gatherings.tidied(answer.values)
        value = expression.value(best)
        found.append(Reached(tier, value, answer.bound))
        lower, upper = (value, answer.bound) if tier.sense == "max" else (answer.bound, value)
        gatherings.model.require(expression, lower, upper)
    return Solved(best, tuple(found), work)
