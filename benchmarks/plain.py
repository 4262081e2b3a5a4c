"""Plain integer models of a Spec, as one would write them down first: a count per shape and node, or per replica.

Nodes are told one by one, rules in rows with flags: nothing of what makes dovetail's models small. What they leave
out: soft and audited policies, today's state, gangs and least numbers of replicas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.baselines import MILLI
from benchmarks.specs import Case

from dovetail.problem import Shape
from dovetail.rules.grouping import group_of
from dovetail.spec import Policy, Workload

Terms = dict[int, int]
Slot = tuple[int, int, int]  # unit, node, GPU (-1: whole GPUs or none)
LARGE = 2**40


@dataclass(frozen=True, slots=True)
class Unit:
    """Replicas counted together: all of a shape, or a single one."""

    shape: int
    demand: int


class TooLarge(Exception):
    """A model that was not built; carries how many variables it would have at least."""

    def __init__(self, variables: int) -> None:
        super().__init__(variables)
        self.variables = variables


@dataclass(slots=True)
class Rows:
    """An integer model: variables from 0 to `upper`, rows with both sides, tiers to maximise in order."""

    upper: list[int] = field(default_factory=list)
    rows: list[tuple[int, int, Terms]] = field(default_factory=list)
    tiers: list[tuple[str, Terms]] = field(default_factory=list)
    slots: dict[Slot, int] = field(default_factory=dict)

    def variable(self, upper: int) -> int:
        """Add a variable."""
        self.upper.append(upper)
        return len(self.upper) - 1

    def most(self, terms: Terms, upper: int) -> None:
        """Require a sum to be at most something."""
        self.rows.append((-LARGE, upper, terms))

    def flag(self, members: Iterable[int]) -> int:
        """Return a 0/1 variable that is 1 wherever any of some variables is above 0."""
        flag, chosen = self.variable(1), list(members)
        self.most(dict.fromkeys(chosen, 1) | {flag: -sum(self.upper[v] for v in chosen)}, 0)
        return flag


@dataclass(frozen=True)
class Scope:
    """What a model is of: some nodes, units, and the part of limits that is theirs (numerator, denominator)."""

    case: Case
    units: Sequence[Unit]
    nodes: Sequence[int]
    part: tuple[int, int] = (1, 1)


def whole(case: Case, *, single: bool) -> Scope:
    """Return all of a Spec, replica by replica where `single`."""
    shapes = case.problem.shapes
    units = (
        [Unit(s.index, 1) for s in shapes for _ in range(s.demand)]
        if single
        else [Unit(s.index, s.demand) for s in shapes]
    )
    return Scope(case, units, range(len(case.nodes)))


def size_of(scope: Scope) -> int:
    """Return the number of counts that a model has at the least."""
    gate, healthy = scope.case.gate(), [len(node.healthy_gpus()) for node in scope.case.problem.nodes]
    each: dict[int, int] = {}
    for shape in {unit.shape for unit in scope.units}:
        share = scope.case.problem.shapes[shape].request.share is not None
        hosts = gate.hosts(shape)
        each[shape] = sum((healthy[n] if share else 1) for n in scope.nodes if hosts[n])
    return sum(each[unit.shape] for unit in scope.units)


def build(scope: Scope, most: int) -> Rows:
    """Write the model down.

    Raises
    ------
    TooLarge
        Where it would have more than `most` variables.
    """
    if (size := size_of(scope)) > most:
        raise TooLarge(size)
    model = Rows()
    _counts(model, scope)
    _capacities(model, scope)
    for policy in scope.case.problem.spec.policies:
        if policy.enforcement.kind == "hard":
            _rule(model, scope, policy)
    _tiers(model, scope)
    return model


def _shape(scope: Scope, unit: int) -> Shape:
    return scope.case.problem.shapes[scope.units[unit].shape]


def _counts(model: Rows, scope: Scope) -> None:
    gate = scope.case.gate()
    for index, unit in enumerate(scope.units):
        hosts, request = gate.hosts(unit.shape), _shape(scope, index).request
        found: Terms = {}
        for n in scope.nodes:
            if not hosts[n]:
                continue
            node = scope.case.problem.nodes[n]
            fits = [unit.demand]
            fits += [node.cpu // request.cpu] if request.cpu else []
            fits += [node.memory // request.memory] if request.memory else []
            if request.share is None:
                fits += [len(node.healthy_gpus()) // request.gpus] if request.gpus else []
            else:
                fits.append(MILLI // request.share.compute)
            for gpu in (-1,) if request.share is None else node.healthy_gpus():
                variable = model.slots[index, n, gpu] = model.variable(min(fits))
                found[variable] = 1
        if found:
            model.most(found, unit.demand)


def _capacities(model: Rows, scope: Scope) -> None:
    on_node: dict[int, list[tuple[Slot, int]]] = defaultdict(list)
    for slot, variable in model.slots.items():
        on_node[slot[1]].append((slot, variable))
    for n, members in on_node.items():
        node = scope.case.problem.nodes[n]
        requests = {slot: _shape(scope, slot[0]).request for slot, _ in members}
        model.most({v: requests[s].cpu for s, v in members if requests[s].cpu}, node.cpu)
        model.most({v: requests[s].memory for s, v in members if requests[s].memory}, node.memory)
        taken = {v: requests[s].gpus for s, v in members if requests[s].gpus}
        by_gpu: dict[int, Terms] = defaultdict(dict)
        for slot, variable in members:
            if (share := requests[slot].share) is not None:
                by_gpu[slot[2]][variable] = share.compute
        for shares in by_gpu.values():
            opened = model.variable(1)
            model.most(shares | {opened: -MILLI}, 0)
            taken[opened] = 1
        model.most(taken, len(node.healthy_gpus()))


def _rule(model: Rows, scope: Scope, policy: Policy) -> None:
    """Add the rows of a hard policy; `require` and `forbid` have taken their variables away already."""
    kind: str = policy.rule.kind
    rule: Any = policy.rule  # each kind has parameters of its own
    matched = scope.case.context.scopes[policy.name].ids
    if kind == "quota":
        _quota(model, scope, matched, rule)
    elif kind == "spread":
        _spread(model, scope, matched, rule, policy.name)
    elif kind == "separate":
        _apart(model, scope, rule.at, lambda w: group_of(w, rule.by, rule.label) if w.id in matched else None)
    elif kind == "exclusive":
        _apart(model, scope, rule.at, lambda w: w.id in matched)
    elif kind not in ("require", "forbid"):
        raise NotImplementedError(f"no rows for the rule {kind} of {policy.name}")


def _quota(model: Rows, scope: Scope, matched: frozenset[str], rule: Any) -> None:
    amount = {"gpus": lambda r: r.gpu_milli, "cpu": lambda r: r.cpu, "memory": lambda r: r.memory}
    numerator, denominator = scope.part
    for resource, limit in rule.limits:
        found: dict[str, Terms] = defaultdict(dict)
        for (unit, _, _), variable in model.slots.items():
            shape = _shape(scope, unit)
            if shape.workload.id in matched and (asked := amount[resource](shape.request)):
                found[str(group_of(shape.workload, rule.per, rule.label))][variable] = asked
        for terms in found.values():
            model.most(terms, limit * numerator // denominator)


def _spread(model: Rows, scope: Scope, matched: frozenset[str], rule: Any, policy: str) -> None:
    nodes, (numerator, denominator) = scope.case.problem.nodes, scope.part
    found: dict[str, dict[str, Terms]] = defaultdict(lambda: defaultdict(dict))
    for (unit, n, _), variable in model.slots.items():
        workload, path = _shape(scope, unit).workload, nodes[n].domain(rule.over)
        if workload.id in matched and path is not None:
            found[workload.id][path][variable] = 1
    for name, domains in found.items():
        if rule.max_per_domain is not None:
            most = rule.max_per_domain if rule.over == "node" else -(-rule.max_per_domain * numerator // denominator)
            for terms in domains.values():
                model.most(terms, most)
            continue
        workload = scope.case.problem.spec.by_id[name]
        reached = scope.case.context.scopes[policy].reach(workload, rule.over) if scope.part == (1, 1) else domains
        low = model.variable(workload.replicas)
        for path in reached:
            terms = domains.get(path, {})
            model.most({low: 1} | dict.fromkeys(terms, -1), 0)
            model.most(terms | {low: -1}, rule.max_skew)


def _apart(model: Rows, scope: Scope, level: str, side_of: Callable[[Workload], object]) -> None:
    nodes = scope.case.problem.nodes
    found: dict[object, dict[object, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (unit, n, gpu), variable in model.slots.items():
        side = side_of(_shape(scope, unit).workload)
        path = ((n, gpu) if gpu >= 0 else None) if level == "gpu" else nodes[n].domain(level)
        if side is not None and path is not None:
            found[path][side].append(variable)
    for sides in found.values():
        if len(sides) > 1:
            model.most({model.flag(members): 1 for members in sides.values()}, 1)


def _tiers(model: Rows, scope: Scope) -> None:
    """Add what is admitted, band by band, with GPUs first and without next, then what is paid for nodes in use."""
    problem, on_node = scope.case.problem, defaultdict(list)
    tiers: dict[tuple[int, bool], Terms] = defaultdict(dict)
    for (unit, n, _), variable in model.slots.items():
        shape = _shape(scope, unit)
        on_node[n].append(variable)
        if shape.role.value:
            tiers[problem.spec.band_of(shape.workload), not shape.request.gpu_milli][variable] = shape.role.value
    for (band, without), terms in sorted(tiers.items(), key=lambda item: (-item[0][0], item[0][1])):
        model.tiers.append((f"admitted{'-cpu' if without else ''}[{band}]", terms))
    paid = {
        model.flag(on_node[n]): -problem.nodes[n].price for n in scope.nodes if on_node[n] and problem.nodes[n].price
    }
    if paid:
        model.tiers.append(("cost", paid))


def placed(model: Rows, solution: Sequence[int]) -> Mapping[Slot, int]:
    """Return the counts above 0 of a solution."""
    return {slot: solution[variable] for slot, variable in model.slots.items() if solution[variable]}
