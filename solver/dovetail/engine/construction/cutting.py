"""GPUs of alike nodes cut all at once: how many take which layout, as an integer program over layouts (S3.3).

Alike nodes need not be told apart for this: a GPU is worth the same on each of them. The program decides, per kind of
node, how many GPUs take which largest multiset of profiles, how many replicas of each shape are on which profile, and
how many whole-GPU replicas stand beside them; CPU, memory and resources bind over all nodes of a kind. What it has is
then dealt out to nodes, where rules and hosts may object; whatever finds no place is left to others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dovetail.engine.construction.field import Field
from dovetail.engine.solvers.answer import Effort
from dovetail.engine.solvers.cpsat import CpSat
from dovetail.linear import Linear, Model
from dovetail.model.state import State
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.proof.cutting import layouts_of, profiles_of
from dovetail.proof.kinds import Kind, capacities, kinds_of, room_for
from dovetail.rules.quota import requested_of
from dovetail.rules.rates import by_rate, require_served
from dovetail.spec.slo import host_of
from dovetail.spec.workload import MILLI

_WORK = 2.0  # units per priority band, and for the cost
_TIME_SHARE = 0.1  # of the time that is left, for all of them

Layout = tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _Cut:
    """The variables of a kind: GPUs per layout, replicas per shape and profile, whole-GPU replicas, nodes in use."""

    kind: Kind
    layouts: dict[Layout, int] = field(default_factory=dict)
    parts: dict[tuple[int, str], int] = field(default_factory=dict)
    whole: dict[int, int] = field(default_factory=dict)
    nodes: int = 0


def suits(problem: Problem) -> bool:
    """Tell whether there is something to cut, and nothing runs that it would have to mind."""
    return problem.spec.uses_mig and not problem.present


def cut_all(problem: Problem, stop: Stop, seconds: float | None = None) -> State:
    """Return a state in which GPUs are cut as the integer program says, as far as hosts and rules allow.

    Parameters
    ----------
    seconds : what is left of the time, None without a limit; a part of it is used.
    """
    model = Model()
    cuts = [_add_kind(problem, model, kind) for kind in kinds_of(problem, {}, priced=True) if kind.geometry]
    _add_demands(problem, model, cuts)
    values = _solved(problem, model, cuts, stop, None if seconds is None else seconds * _TIME_SHARE)
    result = Field(problem, State())
    for cut in cuts if values is not None else ():
        _deal(result, cut, values or [])
    return result.state()


def _add_kind(problem: Problem, model: Model, kind: Kind) -> _Cut:
    cut, gpus = _Cut(kind), len(kind.node.healthy_gpus())
    cut.nodes = model.integer(0, kind.size)
    profiles = profiles_of(problem, kind.node, kind.shapes)
    names = frozenset(name for found in profiles.values() for name in found)
    used = Linear.of(cut.nodes, -gpus)
    for layout in layouts_of(kind.geometry, names) if kind.geometry and names else ():
        cut.layouts[layout] = model.integer(0, kind.size * gpus)
        used.add_term(cut.layouts[layout])
    for s in kind.shapes:
        form = problem.shapes[s]
        most = min(form.demand, kind.size * room_for(kind, form))
        if form.request.gpus and most:
            cut.whole[s] = model.integer(0, most)
            used.add_term(cut.whole[s], form.request.gpus)
        for name in profiles.get(s, ()) if most else ():
            cut.parts[s, name] = model.integer(0, most)
    for name in sorted(names):
        row = Linear({v: 1 for (_, own), v in cut.parts.items() if own == name})
        model.require(row.minus(Linear({v: dict(lay).get(name, 0) for lay, v in cut.layouts.items()})), upper=0)
    model.require(used, upper=0)
    for name, capacity in capacities(kind).items():
        row = Linear({v: requested_of(problem.shapes[s].request, name) for s, v in _counts(cut)})
        if any(row.terms.values()):
            model.require(row.minus(Linear.of(cut.nodes, capacity)), upper=0)
    return cut


def _counts(cut: _Cut) -> Iterator[tuple[int, int]]:
    """Yield every count of a shape's replicas."""
    yield from cut.whole.items()
    yield from ((s, v) for (s, _), v in cut.parts.items())


def _add_demands(problem: Problem, model: Model, cuts: list[_Cut]) -> None:
    for shape in problem.shapes:
        total = Linear({v: 1 for cut in cuts for s, v in _counts(cut) if s == shape.index})
        if total.terms and model.range_of(total)[1] > shape.demand:
            model.require(total, upper=shape.demand)


def _solved(problem: Problem, model: Model, cuts: list[_Cut], stop: Stop, seconds: float | None) -> list[int] | None:
    """Return values that admit most, band by band, and then cost least."""
    objectives = [*_admitted(problem, model, cuts), _cost(cuts)]
    engine = CpSat(model)
    values: list[int] | None = None
    deadline = None if seconds is None else time.monotonic() + seconds
    for number, objective in enumerate(objectives):
        if stop or not objective.terms:
            continue
        left = None if deadline is None else (deadline - time.monotonic()) / (len(objectives) - number)
        effort = Effort(_WORK, left)
        hint = None if values is None else dict(enumerate(values))
        answer = engine.solve(objective, "max", effort, hint, stop)
        if answer.values is None:
            return values
        values = answer.values
        model.require(objective, lower=objective.value(values))
    return values


def _admitted(problem: Problem, model: Model, cuts: list[_Cut]) -> Iterator[Linear]:
    """Yield what is admitted of each band: the value of replicas, or what is served of a rate."""
    earned = {s.index: _earned(model, s, cuts) for s in problem.shapes if s.workload.asks_rate}
    for band in problem.spec.bands:
        mine = {s.index: s.role.value for s in problem.shapes if problem.spec.band_of(s.workload) == band}
        replicas = (Linear({v: mine[s]}) for cut in cuts for s, v in _counts(cut) if mine.get(s) and s not in earned)
        yield Linear.total((*replicas, *(own for s, own in earned.items() if s in mine)))


def _earned(model: Model, shape: Shape, cuts: list[_Cut]) -> Linear:
    """Return a variable of at most what the rate is worth that a shape serves (S2.8)."""
    slo, value = shape.workload.slo, shape.role.value * shape.demand
    earned = Linear.of(model.integer(0, value))
    if slo is not None and slo.rate:
        served = by_rate(shape.workload, _by_host(shape, cuts))
        require_served(model, served, earned.scaled(-slo.rate).plus(slo.rate * value), value, slo.rate)
    return earned


def _by_host(shape: Shape, cuts: list[_Cut]) -> Mapping[str, Linear]:
    """Return how many replicas of a shape are on each host."""
    found: dict[str, Linear] = {}
    for cut in cuts:
        own = {name: v for (s, name), v in cut.parts.items() if s == shape.index}
        own |= {"": cut.whole[shape.index]} if shape.index in cut.whole else {}
        for name, variable in own.items():
            found.setdefault(host_of(cut.kind.node.accelerator, name), Linear()).add_term(variable)
    return found


def _cost(cuts: list[_Cut]) -> Linear:
    """Return what nodes and GPUs in use cost, negative; where they cost nothing, how many GPUs are in use."""
    total = Linear()
    for cut in cuts:
        total.add_term(cut.nodes, -cut.kind.node.price)
        for variable in cut.layouts.values():
            total.add_term(variable, -max(1, cut.kind.node.gpu_price))
    return total


def _deal(result: Field, cut: _Cut, values: list[int]) -> None:
    """Put what GPUs of a kind hold on its nodes, one after the other."""
    whole = [s for s, v in cut.whole.items() for _ in range(values[v])]
    contents = list(_contents(cut, values))
    for node in cut.kind.members:
        for s in list(whole):
            if _put(result, node, s, result.whole_gpus(node, result.problem.shapes[s])):
                whole.remove(s)
        for gpu in result.problem.nodes[node].healthy_gpus():
            if contents and result.gpus[node, gpu] == MILLI:
                rest = [(s, name) for s, name in contents.pop(0) if not _put(result, node, s, (gpu,), name)]
                contents += [rest] if rest else []


def _contents(cut: _Cut, values: list[int]) -> Iterator[list[tuple[int, str]]]:
    """Yield what single GPUs hold, replica by replica: its shape and the profile that it is on."""
    pools = {
        name: [(s, name) for (s, own), v in cut.parts.items() if own == name for _ in range(values[v])]
        for _, name in cut.parts
    }
    for layout, variable in cut.layouts.items():
        for _ in range(values[variable]):
            taken = [pools[name].pop() for name, count in layout for _ in range(min(count, len(pools[name])))]
            if taken:
                yield taken


def _put(result: Field, node: int, shape: int, gpus: tuple[int, ...], profile: str = "") -> bool:
    form = result.problem.shapes[shape]
    seen = gpus[0] if form.request.partial else None
    if result.wanted(shape) <= 0 or not result.room_on(node, form, gpus) or result.blocked(node, shape, seen):
        return False
    result.put(node, shape, gpus, like=profile)
    return True
