"""GPUs of alike nodes cut all at once: how many take which layout, as an integer program over layouts (S3.3).

Alike nodes need not be told apart for this: a GPU is worth the same on each of them. The program is the relaxation of
whole fleets (`proof.fleet`), and beside it how many GPUs of each kind of nodes take which largest multiset of
profiles; CPU, memory and resources bind over all nodes of a kind that are in use. What it has is then dealt out to
nodes, where rules and hosts may object; whatever finds no place is left to others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dovetail.engine.construction.dealing import Load, Part, deal
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.rounding import beside, relaxed, rounded
from dovetail.linear import Linear
from dovetail.model.legal import without_shapes
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.proof.cutting import layouts_of
from dovetail.proof.fleet import FleetModel
from dovetail.proof.hosts import cut_up
from dovetail.proof.kinds import Kind, capacities
from dovetail.proof.without_today import twins_of
from dovetail.rules.quota import requested_of
from dovetail.spec.workload import MILLI

_TIME_SHARE = 0.2, 0.4  # of the time that is left; where services ask for rates, for which this leads furthest

Layout = tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _Cut:
    """The variables of a kind: GPUs per layout, replicas per shape and profile, and whole-GPU replicas.

    `nodes` are those in use, where that is counted, and `uncut` the thousandths of GPUs that shares take outside MIG.
    """

    kind: Kind
    nodes: int | None
    layouts: dict[Layout, int] = field(default_factory=dict)
    parts: dict[tuple[int, str], int] = field(default_factory=dict)
    whole: dict[int, int] = field(default_factory=dict)
    uncut: Linear = field(default_factory=Linear)

    @property
    def counts(self) -> tuple[int, ...]:
        """All of them."""
        return (*self.layouts.values(), *self.parts.values(), *self.whole.values())


def suits(problem: Problem) -> bool:
    """Tell whether there is something to cut, and nothing runs that it would have to mind."""
    return problem.spec.uses_mig and not problem.present


class Cutting:
    """The integer program of one Problem, for each of its tiers in turn and then for the fewest GPUs that are cut."""

    def __init__(self, problem: Problem, stop: Stop) -> None:
        self._problem, self._stop = problem, stop
        self._fleet = FleetModel(problem, priced=True)
        self._cuts = [_add_kind(self._fleet, position) for position in range(len(self._fleet.kinds))]
        fewest = Linear({v: -1 for cut in self._cuts for v in cut.layouts.values()})
        self._objectives = [each for each in (*self._fleet.tiers.values(), fewest) if not each.is_constant]

    @cached_property
    def _target(self) -> Mapping[int, float]:
        """The solution of its LP."""
        return relaxed(self._fleet.model, self._objectives, self._stop)

    def roughly(self) -> State:
        """Return a state as the LP says, with fewer replicas where their number is not whole: others have room."""
        if not self._objectives:  # nobody may be anywhere
            return State()
        values = {v: beside(value) for v, value in self._target.items()}
        more = {v for cut in self._cuts for v in (cut.nodes, *cut.layouts.values())}
        return self._dealt({v: around[v in more] for v, around in values.items()})

    def exactly(self, seconds: float | None = None) -> State:
        """Return a state in which GPUs are cut as the integer program says, as far as hosts and rules allow.

        Parameters
        ----------
        seconds : what is left of the time, None without a limit; a part of it is used.
        """
        if not self._objectives:
            return State()
        counts = {variable for cut in self._cuts for variable in cut.counts}
        rates = any(shape.workload.asks_rate for shape in self._problem.shapes)
        most = None if seconds is None else seconds * _TIME_SHARE[rates]
        values = rounded(self._fleet.model, self._objectives, self._target, counts, self._stop, most)
        return State() if values is None else self._dealt(dict(enumerate(values)))

    def _dealt(self, values: Mapping[int, int]) -> State:
        """Return a state with replicas dealt out to nodes."""
        own = {twin: shape for shape, twin in twins_of(self._problem, self._fleet.problem).items()}
        result = Field(self._problem, State())
        for cut in self._cuts:
            used = cut.kind.size if cut.nodes is None else values[cut.nodes]
            deal(result, cut.kind.members[:used], _loads(self._problem, cut, own, values))
        gangs = {s.index for s in self._problem.shapes if s.request.gpus and s.workload.atomic}
        return without_shapes(result.state(), gangs)  # they come jointly, where they leave room


def _add_kind(fleet: FleetModel, position: int) -> _Cut:
    """Let what nodes of a kind hold keep to layouts of their GPUs, and in all to what nodes in use have."""
    cut, model = _Cut(fleet.kinds[position], fleet.used_of[position]), fleet.model
    kind, gpus = cut.kind, len(cut.kind.node.healthy_gpus())
    nodes = Linear(constant=kind.size) if cut.nodes is None else Linear.of(cut.nodes)
    _add_parts(fleet, position, cut)
    _add_layouts(fleet, cut)
    asked = {v: fleet.problem.shapes[s].request.gpus for s, v in cut.whole.items()}
    in_use = Linear(asked | dict.fromkeys(cut.layouts.values(), 1))
    if cut.uncut.terms:
        shared = model.integer(0, kind.size * gpus)
        in_use.add_term(shared)
        model.require(cut.uncut.minus(Linear.of(shared, MILLI)), upper=0)
    model.require(in_use.minus(nodes.scaled(gpus)), upper=0)
    if (counted := fleet.gpus_used_of[position]) is not None:
        model.require(in_use.minus(Linear.of(counted)), upper=0)
    for name, capacity in capacities(kind).items():
        amounts = {s: requested_of(fleet.problem.shapes[s].request, name) for s in fleet.counts_of[position]}
        if any(amounts.values()):
            row = Linear({v: amounts[s] for s, v in fleet.counts_of[position].items()})
            model.require(row.minus(nodes.scaled(capacity)), upper=0)
    return cut


def _add_parts(fleet: FleetModel, position: int, cut: _Cut) -> None:
    """Tell how the replicas of a kind are on its GPUs."""
    for s, count in fleet.counts_of[position].items():
        request = fleet.problem.shapes[s].request
        if request.gpus:
            cut.whole[s] = count
        for mode, variable in _modes(fleet, s, position).items() if request.partial else ():
            if mode:
                cut.parts[s, mode] = variable
            else:
                cut.uncut.add_term(variable, fleet.problem.load(s, cut.kind.node))


def _add_layouts(fleet: FleetModel, cut: _Cut) -> None:
    """Let GPUs of a kind be cut into as many instances of each profile as replicas are on."""
    gpus, geometry = cut.kind.size * len(cut.kind.node.healthy_gpus()), cut.kind.geometry
    names = frozenset(name for _, name in cut.parts)
    for layout in layouts_of(geometry, names) if geometry and names else ():
        cut.layouts[layout] = fleet.model.integer(0, gpus)
    for name in sorted(names):
        row = Linear({v: 1 for (_, own), v in cut.parts.items() if own == name})
        there = Linear({v: dict(layout).get(name, 0) for layout, v in cut.layouts.items()})
        fleet.model.require(row.minus(there), upper=0)


def _modes(fleet: FleetModel, shape: int, position: int) -> Mapping[str, int]:
    """Return the variables of a shape's count on a kind by how replicas are on a GPU."""
    if shape in fleet.modes_of[position]:
        return fleet.modes_of[position][shape]
    count, modes = fleet.counts_of[position][shape], fleet.problem.modes(shape, fleet.kinds[position].node)
    if len(modes) < 2:
        return dict.fromkeys(modes, count)
    return cut_up(fleet.model, Linear.of(count), modes)


def _loads(problem: Problem, cut: _Cut, own: Mapping[int, int], values: Mapping[int, int]) -> Iterator[Load]:
    """Yield what GPUs of a kind hold, but for what counts from some number of replicas on.

    Parameters
    ----------
    own : the Problem's shapes for those of the program.
    """
    gpus = len(cut.kind.node.healthy_gpus())
    for twin, variable in cut.whole.items():
        form = problem.shapes[own[twin]]
        if form.workload.joint and not form.workload.atomic:
            continue
        together = gpus // form.request.gpus if form.workload.atomic else 1  # on as few nodes as will do
        for first in range(0, values[variable], together):
            count = min(together, values[variable] - first)
            yield Load(count * form.request.gpus, ((form.index, ""),) * count)
    pools: dict[str, list[Part]] = {}
    for (twin, name), variable in cut.parts.items():
        pools.setdefault(name, []).extend([(own[twin], name)] * values[variable])
    for layout, variable in cut.layouts.items():
        for _ in range(values[variable]):
            taken = [pools[name].pop() for name, count in layout for _ in range(min(count, len(pools[name])))]
            if taken:
                yield Load(1, tuple(taken))
