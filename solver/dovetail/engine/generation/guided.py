"""A start that follows the LP over kinds of nodes: whole contents of nodes at a time, then replica by replica.

The LP says how many nodes of each kind are to take which side, and what runs on them in all.
Nodes of one side of a kind are alike, so contents are made up once and used as often as what is asked for lasts
(`packing`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from dovetail.engine.budget import Budget
from dovetail.engine.construction.field import Field
from dovetail.engine.contents.patterns import Pattern
from dovetail.engine.fleet.fleet_lp import FleetLp
from dovetail.engine.fleet.sides import Target
from dovetail.engine.generation.crews import crews
from dovetail.engine.generation.filling import follow, wishes_on
from dovetail.engine.generation.packing import Packer
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop

Suggested = tuple[Sequence[int], Pattern]  # nodes, and what each is to hold

_ALMOST = 1e-6


@dataclass(frozen=True, slots=True)
class Lead:
    """What an LP leads to: states, what patterns are to be mixed around, and contents for that.

    Parameters
    ----------
    planned : replicas per shape that it has, in whole numbers.
    admitted : what its solution has of every shape, gangs as well; nothing without an LP.
    """

    states: Iterable[State]
    base: State
    known: Sequence[Suggested] = ()
    planned: Counter[int] = field(default_factory=Counter)
    admitted: Mapping[int, float] = field(default_factory=dict)


def lead(lp: FleetLp, state: State, stop: Stop, ways: int, budget: Budget, *, exact: bool = False) -> Lead:
    """Follow the LP's last solution, gangs first.

    Parameters
    ----------
    state : the one at hand, around whose gangs patterns are mixed where the LP has none.
    ways : how many states there are at the most, the first of them whatever the time; with none, contents are known.
    budget : until when there may be more of them.
    exact : see `crews`.
    """
    admitted = lp.admitted()
    gangs = crews(lp, stop, exact=exact)
    known = () if ways else tuple(_suggested(lp, stop, gangs))
    planned = sum(_wanted(lp.fleet.original, list(lp.targets())), Counter[int]())
    led = _led(lp, stop, gangs, ways, budget, exact=exact)
    return Lead(led, gangs if gangs.fills else state, known, planned, admitted)


def _led(lp: FleetLp, stop: Stop, gangs: State, ways: int, budget: Budget, *, exact: bool) -> Iterator[State]:
    """Yield states after the LP's last solution, and after others that are worth as much.

    Which of them loses least when it is rounded nobody can tell beforehand.
    """
    source = Random(1)
    for number in range(ways):
        if number:
            if not budget.out_of_time():
                lp.wander(source, budget.seconds())
            if budget.out_of_time():  # what is at hand need not be a solution
                break
            gangs = crews(lp, stop, exact=exact)
        yield guided(lp, stop, gangs)


def guided(lp: FleetLp, stop: Stop, crews: State) -> State:
    """Return a state that follows the LP's last solution as far as hard rules let it, filled up by construction.

    Parameters
    ----------
    crews : what is placed already, gangs above all, on nodes of their own.
    """
    problem = lp.fleet.original
    field = Field(problem, crews)
    targets = list(lp.targets())
    counts = _wanted(problem, targets)
    planned = sum(counts, Counter[int]())
    _deduct(targets, counts, crews)
    found = _contents(lp, targets, counts, stop, crews)
    wishes = [wish for nodes, pattern in found for n in nodes for wish in wishes_on(problem, n, pattern)]
    follow(field, wishes, planned, stop)
    return field.state()


def _suggested(lp: FleetLp, stop: Stop, crews: State) -> Iterator[Suggested]:
    """Yield contents that the LP's last solution suggests beside gangs, each with nodes that are to take it."""
    targets = list(lp.targets())
    return _contents(lp, targets, _wanted(lp.fleet.original, targets), stop, crews)


def _wanted(problem: Problem, targets: Sequence[Target]) -> list[Counter[int]]:
    """Return what is to be on each target, replica by replica; nothing that `crews` have placed."""
    joint = {s.index for s in problem.shapes if s.workload.joint or s.workload.holds}
    return [Counter({s: n for s, n in found.items() if s not in joint}) for found in _whole_counts(targets)]


def _deduct(targets: Sequence[Target], counts: Sequence[Counter[int]], placed: State) -> None:
    """Take what is placed already off what is to be on targets, those first that have its node."""
    for node, fill in placed.fills.items():
        own = [number for number, target in enumerate(targets) if node in target.members]
        for s, count in fill.counts().items():
            for number in (*own, *range(len(targets))) if count else ():
                taken = min(count, counts[number][s])
                counts[number][s] -= taken
                count -= taken


def _contents(
    lp: FleetLp, targets: Sequence[Target], counts: Sequence[Counter[int]], stop: Stop, crews: State
) -> Iterator[Suggested]:
    """Yield what is to be where; what finds no room is offered to later nodes that may take it."""
    free: dict[tuple[int, ...], list[int]] = {}
    over: dict[Hashable, Counter[int]] = defaultdict(Counter)  # what found no room, by where else it may go
    for target, number, wanted in zip(targets, _whole_nodes(lp, targets), counts, strict=True):
        if stop:
            break
        nodes = free.setdefault(target.members, [n for n in target.members if not crews.fill(n).slots])
        allowed = frozenset(lp.fleet.kinds[target.kind].sides[target.side].shapes)
        for place in (target.kind, target.members):
            wanted = wanted + Counter({s: over[place].pop(s) for s in sorted(allowed & over[place].keys())})
        packer = Packer(lp.fleet.original, lp.fleet.kinds[target.kind], target, wanted)
        for pattern, times in packer.contents(number):
            taken, nodes[:times] = nodes[:times], []
            yield taken, pattern
        for s, count in packer.left():
            over[target.members if s in target.bound else target.kind][s] += count


def _whole_nodes(lp: FleetLp, targets: Sequence[Target]) -> list[int]:
    """Round the nodes that sides have of each plot, no more in all than there are; the largest remainders go up.

    Nodes that the LP has for gangs and held places are left out.
    """
    targets = [replace(target, nodes=max(0.0, target.nodes - _of_gangs(lp, target))) for target in targets]
    found = [int(target.nodes + _ALMOST) for target in targets]
    left = {target.members: len(target.members) for target in targets}
    for target, number in zip(targets, found, strict=True):
        left[target.members] -= number
    by_rest = sorted(range(len(targets)), key=lambda i: (found[i] - targets[i].nodes, i))
    for i in by_rest:
        if targets[i].nodes - found[i] > _ALMOST and left[targets[i].members] > 0:
            found[i] += 1
            left[targets[i].members] -= 1
    return found


def _of_gangs(lp: FleetLp, target: Target) -> float:
    """Return how many nodes of a target gangs and held places fill by their GPUs."""
    problem, gpus = lp.fleet.original, max(1, len(lp.fleet.kinds[target.kind].node.healthy_gpus()))
    counts = ((problem.shapes[s], x) for s, x in target.counts.items())
    gangs = ((shape, x) for shape, x in counts if shape.workload.ranked or shape.workload.holds)
    return sum(x * shape.request.gpus for shape, x in gangs) / gpus


def _whole_counts(targets: Sequence[Target]) -> list[Counter[int]]:
    """Round the replicas of each shape over all targets to what they add up to; the largest remainders go up."""
    found = [Counter({s: int(x + _ALMOST) for s, x in target.counts.items()}) for target in targets]
    rests: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for i, target in enumerate(targets):
        for s, x in target.counts.items():
            rests[s].append((x - found[i][s], i))
    for s, rest in rests.items():
        more = int(sum(amount for amount, _ in rest) + _ALMOST)
        for _, i in sorted(rest, key=lambda item: (-item[0], item[1]))[:more]:
            found[i][s] += 1
    return found
