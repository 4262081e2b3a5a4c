"""Which parts of the cluster to plan anew: small sets of nodes, drawn reproducibly."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, zip_longest
from typing import Protocol

from dovetail.engine.parts.chains import Chains
from dovetail.model.state import Fill, State, away
from dovetail.problem import Problem
from dovetail.spec.workload import MILLI

_SMALLEST, _LARGEST = 3, 24  # nodes of a part
_NEAREST = 12  # nodes of which one is to make room
_PATIENCE = 4  # parts solved to proof in a row before larger ones are tried
_LED = "shape", "nodes", "shape", "idle", "nodes", "shape", "nodes", "any"  # what led parts are about, in turn
_LEAST_IDLE = 50  # milli-GPU, as which a node counts that has less idle
LEAST_LOSS = 0.02  # of the most that any node loses, as which a node counts that loses less
_LEAST_GAIN = 0.1  # likewise of what shapes would gain that wait
_PASSED_ON = 0.7  # of the parts about what waits are on ways along which room is passed on
_JOINING = 2  # nodes of a part about a shape that need not be its hosts
_ALIKE = 2  # nodes of a class that hold nothing and may be drawn together for what they lose


class Lead(Protocol):
    """What a proof says of where a state lacks."""

    def of(self, state: State) -> Mapping[int, float]:
        """Return what nodes lose; nodes that nobody can be on may be left out."""

    def wanted(self, state: State) -> Mapping[int, float]:
        """Return what the shapes would gain of which more wait, 0 where that is nothing."""

    def hosts(self, shape: int) -> Sequence[Sequence[int]]:
        """Return the nodes that a shape may be on, those together that no rule about it tells apart."""


class Neighbourhoods:
    """Draws parts of the cluster to re-plan, reproducibly from a seed, their size fitted to what closes.

    Half the parts are random nodes; the others lean to nodes with idle GPU, whose odd remainders can be traded. Where
    a proof leads, most of them are about what it says: nodes that lose, and hosts of a shape that is wanted, in every
    domain that rules look at. Where gangs have a say in where they are together, every third part is about one of
    them: nodes that it is on, and those of one domain that it may gather in. Where something runs today, two rounds
    of three are about what is left to do there: to make room for something that waits, and to bring home what
    moved.
    """

    def __init__(self, problem: Problem, size: int = 6, seed: int = 1) -> None:
        self.problem = problem
        self.size = size
        self._random = random.Random(seed)
        self._idle = Idle(problem)
        self._wide = False
        self._turn = self._round = 0
        self._streak = 0

    @cached_property
    def _chains(self) -> Chains:
        return Chains(self.problem, self._random)

    def draw(self, state: State, parts: int = 1, lead: Lead | None = None) -> list[list[int]]:
        """Return disjoint lists of node indices: fewer where there are no more nodes, one with all where they fit.

        Parameters
        ----------
        lead : what a proof says of the state, if there is one.
        """
        self._round += 1
        about = self._about(state, lead) if self.size < len(self.problem.nodes) else None
        return self._disjoint(state, parts, about or self._draw)

    def draw_losing(self, state: State, parts: int, lead: Lead | None) -> list[list[int]]:
        """Return disjoint lists of node indices: half of those that lose by a proof, the others with idle GPU.

        Nodes that lose nothing are not among the first half; without a proof, nobody is.
        """
        losses = {} if lead is None else self._lost(lead.of(state), state, range(len(self.problem.nodes)))
        return self._disjoint(state, parts, partial(self._draw_losing, losses))

    def _disjoint(
        self, state: State, parts: int, draw: Callable[[State, Sequence[int]], list[int]]
    ) -> list[list[int]]:
        """Return parts drawn one after the other, each from the nodes that are in none before."""
        found: list[list[int]] = []
        rest: Sequence[int] = range(len(self.problem.nodes))
        while len(found) < parts and rest:
            found.append(draw(state, rest))
            taken = set(found[-1])
            rest = [node for node in rest if node not in taken]
        return found

    def _draw_losing(self, losses: Mapping[int, float], state: State, nodes: Sequence[int]) -> list[int]:
        """Return some nodes, half of them by what they lose, and others with idle GPU."""
        first = weighted(self._random, {n: losses[n] for n in nodes if losses.get(n, 0.0) > 0}, self.size // 2)
        taken = set(first)
        rest = (node for node in nodes if node not in taken)
        return sorted([*first, *self._idlest(state, rest, self.size - len(first))])

    def _draw(self, state: State, nodes: Sequence[int]) -> list[int]:
        if self.size >= len(nodes):
            return list(nodes)
        self._turn += 1
        if self.problem.ranked and self.problem.spec.told_levels and self._turn % 3 == 0:
            return self._draw_gang(state, nodes)
        self._wide = not self._wide
        if self._wide:
            return sorted(self._random.sample(nodes, self.size))
        return sorted(self._idlest(state, nodes, self.size))

    def _idlest(self, state: State, nodes: Iterable[int], most: int) -> list[int]:
        """Return some nodes, those with idle GPU more likely."""
        idle = {node: self._idle.of(state, node) + _LEAST_IDLE for node in nodes}
        return weighted(self._random, idle, most)

    def _about(self, state: State, lead: Lead | None) -> Callable[[State, Sequence[int]], list[int]] | None:
        """Return what draws the parts of a round about what runs today or a proof says, None for any other round."""
        if not self.problem.present:
            return None if lead is None else partial(self._draw_led, lead)
        if self._round % 3 == 0:
            return None
        if self._round % 3 == 1 and (homes := displaced(self.problem, state)):
            return partial(self._draw_moved, homes)
        return partial(self._draw_waiting, waiting) if (waiting := self._waiting(state)) else None

    def _waiting(self, state: State) -> list[int]:
        admitted = state.totals().admitted
        return [s.index for s in self.problem.shapes if s.request.gpu_count and admitted[s.index] < s.demand]

    def _draw_waiting(self, waiting: Sequence[int], state: State, nodes: Sequence[int]) -> list[int]:
        """Return nodes that may pass on room to something that waits, or one that has nearly enough, and others."""
        shape = self._random.choice(waiting)
        if self._random.random() < _PASSED_ON and (way := self._chains.draw(state, shape, nodes, self.size)):
            return way
        makes, hosted = self.problem.makes.of, self.problem.hosted_by_make
        idle = {node: self._idle.of(state, node) for node in nodes}
        hosts = sorted((n for n in nodes if shape in hosted[makes[n]]), key=lambda n: (-idle[n], n))[:_NEAREST]
        first = [self._random.choice(hosts)] if hosts else []
        return self._joined(first, nodes, idle)

    def _draw_moved(self, homes: Mapping[int, list[int]], state: State, nodes: Sequence[int]) -> list[int]:
        """Return a node that something moved away from, some of those where that may be, and others."""
        idle = {node: self._idle.of(state, node) for node in nodes}
        here = sorted(set(homes).intersection(nodes))
        if not here:
            return self._joined([], nodes, idle)
        home = self._random.choice(here)
        where, inside = state.totals().where, set(nodes)
        now = sorted(
            {n for s in homes[home] for n in where.get(s, {}) if n in inside and _new(state.fill(n), s)} - {home}
        )
        return self._joined([home, *self._random.sample(now, min(len(now), self.size // 2))], nodes, idle)

    def _joined(self, first: list[int], nodes: Sequence[int], idle: Mapping[int, int]) -> list[int]:
        """Return some nodes and others with idle GPU, half of them of the first one's accelerator."""
        rest = [node for node in nodes if node not in first and idle[node] > 0]
        model = self.problem.nodes[first[0]].accelerator if first else None
        same = [node for node in rest if self.problem.nodes[node].accelerator == model]
        alike = self._random.sample(same, min(len(same), max(0, self.size - len(first) + 1) // 2))
        others = [node for node in rest if node not in alike]
        more = self._random.sample(others, min(len(others), max(0, self.size - len(first) - len(alike))))
        return sorted([*first, *alike, *more]) or sorted(self._random.sample(nodes, min(len(nodes), self.size)))

    def _draw_led(self, lead: Lead, state: State, nodes: Sequence[int]) -> list[int]:
        """Return nodes that lose by a proof, or hosts of a shape that it wants more of, or any as without it."""
        self._turn += 1
        if self.problem.ranked and self.problem.spec.told_levels and self._turn % 3 == 0:
            return self._draw_gang(state, nodes)
        about, wanted = _LED[self._turn % len(_LED)], lead.wanted(state)
        if about == "any":
            return sorted(self._random.sample(nodes, min(self.size, len(nodes))))
        if about == "idle":
            return sorted(self._idlest(state, nodes, self.size))
        losses = lead.of(state)
        first = self._hosts_led(lead, wanted, losses, state, nodes) if about == "shape" and wanted else []
        first = first or self._losing(losses, state, nodes, max(1, self.size - _JOINING))
        rest = [node for node in nodes if node not in first]
        more = min(max(1, self.size - len(first)), len(rest))
        return sorted([*first, *self._idlest(state, rest, more)])

    def _hosts_led(
        self,
        lead: Lead,
        wanted: Mapping[int, float],
        losses: Mapping[int, float],
        state: State,
        nodes: Sequence[int],
    ) -> list[int]:
        """Return hosts of a shape that is wanted, of every domain that rules ask for it in alike many, if so few."""
        gains = at_least(wanted, _LEAST_GAIN)
        (shape,) = weighted(self._random, gains, 1)
        inside = set(nodes)
        groups = [[node for node in group if node in inside] for group in lead.hosts(shape)]
        self._random.shuffle(groups)
        most = max(self.size - _JOINING, min(len(groups), _LARGEST))
        lost = at_least({node: losses.get(node, 0.0) for node in nodes}, LEAST_LOSS)
        weights = {node: lost[node] + self._idle.of(state, node) / 2 for node in nodes}
        likely = (weighted(self._random, {n: weights[n] for n in group}, most) for group in groups)
        return [node for node in chain.from_iterable(zip_longest(*likely)) if node is not None][:most]

    def _losing(self, losses: Mapping[int, float], state: State, nodes: Sequence[int], most: int) -> list[int]:
        """Return some nodes, those that lose more sooner."""
        return weighted(self._random, at_least(self._lost(losses, state, nodes), LEAST_LOSS), most)

    def _lost(self, losses: Mapping[int, float], state: State, nodes: Sequence[int]) -> Mapping[int, float]:
        """Return what nodes lose, of alike ones without anything that of few, as they lose alike."""
        idle: dict[int, list[int]] = {}
        for node in nodes:
            if not state.fill(node).slots:
                idle.setdefault(self.problem.class_of[node], []).append(node)
        left_out = {node for alike in idle.values() for node in alike[_ALIKE:]}
        return {node: losses.get(node, 0.0) for node in nodes if node not in left_out}

    def _draw_gang(self, state: State, nodes: Sequence[int]) -> list[int]:
        """Return nodes of one domain, the idle ones first, and nodes elsewhere that a gang is on."""
        gang, level = self._random.choice(self.problem.ranked), self._random.choice(self.problem.spec.told_levels)
        where = state.totals().where
        on = {node for shape in self.problem.shapes_of_workload.get(gang.id, ()) for node in where.get(shape, {})}
        seed = self._random.choice(sorted(on.intersection(nodes)) or list(nodes))
        path = self.problem.nodes[self._random.choice((seed, self._random.choice(nodes)))].domain(level)
        inside = [node for node in nodes if self.problem.nodes[node].domain(level) == path]
        inside.sort(key=lambda node: (node not in on, -self._idle.of(state, node)))
        outside = [node for node in nodes if node in on and self.problem.nodes[node].domain(level) != path]
        chosen = [*inside[: self.size], *outside[: max(1, self.size // 2)]]
        return sorted(chosen)

    def learn(self, closed: bool) -> None:
        """Try larger parts after several in a row that were solved to proof, smaller ones after one that was not."""
        self._streak = self._streak + 1 if closed else 0
        if not closed:
            self.size = max(self.size - 1, _SMALLEST)
        elif self._streak >= _PATIENCE:
            self.size, self._streak = min(self.size + 1, _LARGEST), 0


def displaced(problem: Problem, state: State) -> Mapping[int, list[int]]:
    """Return the nodes that running replicas are admitted away from, or not at all, each with their shapes."""
    found: dict[int, list[int]] = {}
    for node, place, _ in away(problem, state):
        found.setdefault(node, []).append(place.shape)
    return found


def _new(fill: Fill, shape: int) -> bool:
    """Tell whether any replica of a shape came to a node anew."""
    kept = sum(count for place, count in fill.kept.items() if place.shape == shape)
    return fill.counts()[shape] > kept


def at_least(weights: Mapping[int, float], part: float) -> Mapping[int, float]:
    """Return weights, each at least a part of the greatest one, or the mean if that is less.

    So what weighs something is drawn as often as all that weighs nothing, however much of that there is.
    """
    mean = sum(weights.values()) / max(1, len(weights))
    least = min(part * max(weights.values(), default=0.0), mean) or 1.0
    return {each: max(weight, least) for each, weight in weights.items()}


def weighted(source: random.Random, weights: Mapping[int, float], most: int) -> list[int]:
    """Return some of what has weights, drawn without putting back (Efraimidis and Spirakis 2006)."""
    keys = {each: source.random() ** (1.0 / weight) for each, weight in weights.items()}
    return sorted(weights, key=lambda each: -keys[each])[:most]


class Idle:
    """The idle GPU of nodes; what was found for a node holds as long as its contents stay as they are."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: dict[int, tuple[Fill, int]] = {}

    def of(self, state: State, node: int) -> int:
        """Return the milli-GPU of a node's healthy GPUs that nothing uses."""
        fill = state.fills.get(node)
        if fill is None:
            return idle_milli(self._problem, state, node)
        if node not in self._known or self._known[node][0] is not fill:
            self._known[node] = fill, idle_milli(self._problem, state, node)
        return self._known[node][1]


def idle_milli(problem: Problem, state: State, node: int) -> int:
    """Return the milli-GPU of a node's healthy GPUs that nothing uses.

    Instances count for compute slices or for memory slices, whichever is more (S2.9), and so may count for more than
    their GPUs have: then none is idle.
    """
    made, slots = problem.nodes[node], state.fill(node).slots
    used = sum(count * problem.request(slot.shape, made).gpu_milli for slot, count in slots.items())
    return max(0, MILLI * len(made.healthy_gpus()) - used)
