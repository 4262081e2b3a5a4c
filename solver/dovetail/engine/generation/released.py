"""Re-planning what runs together with what waits, where too much waits for others to make way one by one.

A fleet that loses a zone has room for nearly all that ran there, but not as things stand: only where nodes of all
kinds hold something else. So nodes whose contents may all go elsewhere are mixed anew as if they were empty. What a
node holds now is a pattern like others, worth a little more by what stays in place with it; and who is there today
stays where the node is to hold the like of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf
from random import Random

from dovetail.engine.budget import Budget
from dovetail.engine.construction.clearing import allowance
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.leavers import may_leave
from dovetail.engine.construction.staying import plain, settled_on
from dovetail.engine.contents.patterns import Pattern, Wish, counts_of
from dovetail.engine.generation.diving import Chosen
from dovetail.engine.generation.exchanging import alike_on, exchanged
from dovetail.engine.generation.filling import follow, seat_owed, short_of, wishes_on
from dovetail.engine.generation.fleet_rows import Counted
from dovetail.engine.generation.generate import Generation
from dovetail.model.state import Fill, State
from dovetail.problem import Problem
from dovetail.spec.workload import MILLI

_OWED = 2.0  # times the most that anybody is worth per GPU, what those are worth who must stay; their own, who runs
_STAYS = 0.1  # of the least worth of a GPU's work, what it is worth that a GPU's work stays in place
_ATTEMPTS = 6  # to place all that must stay, with more and more nodes as they are
_IN_TIME = 2  # of them, that are made in any case: most often these will do
_COMPARED = 200  # nodes that are compared for what is to be on one


def movable_of(problem: Problem, state: State) -> frozenset[int] | None:
    """Return the shapes of which replicas may move, None where a hard policy limits how many move in all."""
    most, pinned = allowance(problem, state)
    free = (shape.index for shape in problem.shapes if may_leave(shape.workload, pinned))
    return frozenset(free) if most == inf else None


@dataclass(slots=True)
class Released(Generation):
    """A run over all free nodes, and those from which all that runs today may go.

    Parameters
    ----------
    movable : shapes of which replicas may move.
    share : of alike nodes, those on which most is idle; from the second turn on half of them are drawn from others.
    frugal : whether the least cost is wished for where all that asks is there: it matters more than who moves.
    """

    movable: frozenset[int] = frozenset()
    share: float = 1.0
    turn: int = 0
    frugal: bool = False
    _budget: Budget | None = field(init=False, default=None)

    def run(
        self, budget: Budget, known: Iterable[tuple[Sequence[int], Pattern]] = (), filling: float = 0.0
    ) -> Iterator[State]:
        """Yield whole states; see `Generation.run`."""
        self._budget = budget
        yield from Generation.run(self, budget, known, filling)

    def _free(self, joint: set[int]) -> frozenset[int]:
        alike: dict[Hashable, list[int]] = defaultdict(list)
        outermost = self.problem.spec.cluster.levels[0]
        for index, node in enumerate(self.problem.nodes):
            if self._is_free(index, joint):
                alike[self.problem.makes.of[index], node.domain(outermost)].append(index)
        source = Random(self.turn)
        return frozenset(node for nodes in alike.values() for node in self._drawn(nodes, source))

    def _drawn(self, nodes: list[int], source: Random) -> list[int]:
        """Return a share of alike nodes."""
        many = ceil(self.share * len(nodes))
        order = sorted(nodes, key=lambda node: (-self._idle(node), node))
        first = many if not self.turn else many // 2
        return [*order[:first], *source.sample(order[first:], many - first)]

    def _idle(self, node: int) -> int:
        """Return the thousandths of GPUs of a node that nobody has."""
        taken = sum(self._millis[s] * n for s, n in self.state.fill(node).counts().items())
        return MILLI * len(self.problem.nodes[node].healthy_gpus()) - taken

    def _is_free(self, node: int, joint: set[int]) -> bool:
        """Tell whether all may go that a node holds, or that runs there today, and come back."""
        here, today = self.state.fill(node).counts().keys(), self.problem.present.get(node, {})
        shapes = here | {place.shape for place in today}
        return not (shapes & joint) and (
            not (today or shapes & self.problem.running.keys())
            or (plain(self.problem, node) and all(self._may_go(node, s) for s in shapes))
        )

    def _may_go(self, node: int, shape: int) -> bool:
        """Tell whether replicas of a shape may leave a node, and may come back to it."""
        comes_back = self.problem.makes.of[node] in self.problem.makes_for(self.problem.shapes[shape])
        return comes_back and shape in self.movable

    def _spare(self, demand: Mapping[int, int]) -> Wish | None:
        """Wish for no least cost, unless it matters more than moves."""
        return Generation._spare(self, demand) if self.frugal else None

    def _ask(self, demand: Mapping[int, int]) -> Wish:
        wish, least = Generation._ask(self, demand), self._least_worth()
        most = self._most_worth()
        self.rows.counted = [each for counted in self.rows.counted for each in self._parted(counted, most)]
        stays: dict[tuple[int, Pattern], tuple[float, int]] = {}
        for position, lot in enumerate(self.rows.lots):
            for node in lot.nodes:
                fill = self.state.fill(node)
                staying = sum(self._millis[s] * n for s, n in fill.staying().items()) / MILLI
                key = position, self.pattern(fill)
                before, nodes = stays.get(key, (0.0, 0))
                stays[key] = max(before, _STAYS * least * staying), nodes + 1
        return replace(wish, cost=[0.0] * len(self.rows.lots), stays=stays)

    def _most_worth(self) -> float:
        """Return the most that a thousandth of a GPU is worth, in the highest band."""
        asking = (shape for shape in self.problem.shapes if shape.request.gpu_milli)
        return max((self._worth(s, highest=True) / s.request.gpu_milli for s in asking), default=0.0)

    def _parted(self, counted: Counted, most_worth: float) -> Iterator[Counted]:
        """Yield replicas that must stay admitted, worth more than all others, those that run, and those that wait.

        Parameters
        ----------
        most_worth : the most that a thousandth of a GPU is worth.
        """
        shape, there = self.problem.shapes[counted.shape], 0.0
        running = float(sum(self.problem.running[s] for s in counted.alike))
        owed = _OWED * max(1.0, self._worth(shape, highest=True), most_worth * shape.request.gpu_milli)
        for most, worth in ((counted.low, owed), (running, _OWED * self._worth(shape))) if counted.alike else ():
            if (high := min(most, counted.high)) > there:
                yield replace(counted, low=0.0, high=high - there, worth=worth)
                there = high
        yield replace(counted, low=0.0 if counted.alike else counted.low, high=counted.high - there)

    def filled(self, chosen: Chosen) -> State:
        """Return a state whose free nodes hold what was chosen, each what is most like what it holds now.

        What must stay admitted is placed before what is planned beside it; where time runs out before all of it has a
        place, or something is spread less evenly than rules let it be, all stays as it is.
        """
        anew: dict[int, Pattern] = {}
        for position, lot in enumerate(self.rows.lots):
            patterns = [column.pattern for column, times in chosen if column.lot == position for _ in range(times)]
            changes = self._changes(lot.nodes, patterns)
            running = {node: self.state.fill(node).staying() for node in changes}
            anew |= exchanged(changes, running, alike_on(self.problem, lot.kind))
        owed = self.problem.protected
        for attempt in range(_ATTEMPTS):
            ground = Field(self.problem, self.state.with_fills({node: Fill() for node in anew}))
            wishes = [wish for node, pattern in anew.items() for wish in wishes_on(self.problem, node, pattern)]
            left = seat_owed(ground, wishes, owed, self.stop)
            short: Mapping[int, float] = short_of(ground, owed)
            if not short:
                follow(ground, left, self.planned, self.stop, owed)
                short = dict.fromkeys(self._less_even(ground), inf)
            if not short:
                break
            if attempt >= _IN_TIME and self._budget is not None and self._budget.out_of_time():
                return self.state
            self._restore(anew, short, whole=attempt > 0)
        else:
            return self.state
        found = ground.state()
        fresh = {node: fill for node in anew if (fill := found.fill(node)).slots and not fill.kept}
        return found.with_fills({node: settled_on(self.problem, node, fill) for node, fill in fresh.items()})

    def _less_even(self, ground: Field) -> list[int]:
        """Return the shapes that are spread less evenly than rules let them and than they are now."""
        if not (found := ground.gates.uneven()):
            return []
        now = Field(self.problem, self.state).gates.uneven()
        worse = {workload for (policy, workload), by in found.items() if by > now.get((policy, workload), 0)}
        return [shape.index for shape in self.problem.shapes if shape.workload.id in worse]

    def _restore(self, anew: dict[int, Pattern], short: Mapping[int, float], *, whole: bool) -> None:
        """Leave nodes as they are that hold what finds no place otherwise, or not evenly, the fullest of it first.

        Parameters
        ----------
        whole : whether all of them, so that rules find a shape where it is now.
        """
        held = {node: self.state.fill(node).counts() for node in anew}
        for s, count in short.items():
            here = [node for node in anew if held[node][s]]
            for node in sorted(here, key=lambda node: (-held[node][s], node)):
                if count <= 0 and not whole:
                    break
                count -= held[node][s]
                del anew[node]

    def _changes(self, nodes: tuple[int, ...], patterns: list[Pattern]) -> dict[int, Pattern]:
        """Say which nodes of a lot are to hold something else than now: what they hold most of.

        Patterns that nodes hold now are theirs.
        """
        found: dict[int, Pattern] = {}
        same = set[int]()
        holders: dict[Pattern, list[int]] = {}
        for node in reversed(nodes):
            holders.setdefault(self.pattern(self.state.fill(node)), []).append(node)
        rest = []
        for pattern in patterns:
            if own := holders.get(pattern):
                same.add(own.pop())
            else:
                rest.append(pattern)
        left = {node: self.state.fill(node).counts() for node in nodes if node not in same}
        for pattern in sorted(rest, key=lambda each: (-self._size(counts_of(each)), each)):
            wanted = counts_of(pattern)
            compared = list(left)[:_COMPARED]
            best = max(compared, key=lambda node: (self._size(wanted & left[node]), -node))
            found[best] = pattern
            del left[best]
        return found | dict.fromkeys(left, ())

    def _size(self, counts: Counter[int]) -> int:
        """Return thousandths of GPUs that replicas ask for, and their number, as one number."""
        return sum((self._millis[s] + 1) * n for s, n in counts.items())
