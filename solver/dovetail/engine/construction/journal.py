"""What is done in a field to find a place, so that it can be undone where it led to none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.construction.leavers import Leaver, come_back, fewest, leave
from dovetail.engine.construction.placing import Outlooks, Put, Told
from dovetail.engine.construction.returning import back_home
from dovetail.problem import Present


class Journal:
    """Changes a field, and undoes what it changed, last first."""

    def __init__(self, outlooks: Outlooks) -> None:
        self.outlooks = outlooks
        self._undo: list[Callable[[], object]] = []

    @property
    def field(self) -> Field:
        """The field that is changed."""
        return self.outlooks.field

    def mark(self) -> int:
        """Return what to undo to, so that all that is done from now on is undone."""
        return len(self._undo)

    def leave(self, leaver: Leaver) -> None:
        """Take a replica off its node."""
        leave(self.field, leaver)
        self._undo.append(partial(come_back, self.field, leaver))

    def place(self, shape: int, nodes: Bools | None = None) -> bool:
        """Place a replica where there is room, on some nodes."""
        self.outlooks.reopen(shape)
        puts = self.outlooks.place(shape, 1, nodes=nodes)
        self.placed(puts)
        return bool(puts)

    def placed(self, puts: list[Put]) -> None:
        """Enter replicas that were placed just now."""
        self._undo += [partial(self.field.undo, *told) for told in self.outlooks.told(puts)]

    def back(self, node: int, place: Present) -> Leaver | None:
        """Put a replica that waits back where it ran, None without room there."""
        found = back_home(self.field, node, place)
        if found is not None:
            self._undo.append(partial(leave, self.field, found))
        return found

    def all_back(self, leavers: Sequence[Leaver]) -> Sequence[Leaver]:
        """Put replicas of one workload back where they ran, as many as may be there together; return the others.

        Of what counts together only that is all or nobody, or as many as it goes on with, in whole steps (`fewest`).
        """
        mark, problem = self.mark(), self.field.problem
        there = [found for each in leavers if each.place and (found := self.back(each.put[0], each.place))]
        workload = problem.shapes[leavers[0].shape].workload
        if len(there) < len(leavers) and workload.joint:
            least, count = fewest(workload), self.field.admitted[leavers[0].shape]
            if least is None or count < least[0]:
                self.undo(mark)
                return leavers
            for _ in range((count - least[0]) % least[1]):
                self.leave(there.pop())
        spots = Counter((each.put[0], each.place) for each in there)
        away = []
        for each in leavers:
            spots[each.put[0], each.place] -= 1
            if spots[each.put[0], each.place] < 0:
                away.append(each)
        return away

    def cleared(self, done: Sequence[Told | Leaver]) -> None:
        """Enter what others did: who was put where, and who left."""
        for each in done:
            if isinstance(each, Leaver):
                self._undo.append(partial(come_back, self.field, each))
            else:
                self._undo.append(partial(self.field.undo, *each))

    def enter(self, undo: Callable[[], object]) -> None:
        """Enter how to undo what was noted beside the field, so that it is undone with what it is about."""
        self._undo.append(undo)

    def undo(self, mark: int = 0) -> None:
        """Undo all that was done since a mark."""
        while len(self._undo) > mark:
            self._undo.pop()()
        self.outlooks.forget()

    def keep(self) -> None:
        """Keep all that was done."""
        self._undo.clear()
