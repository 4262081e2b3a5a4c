"""What changes for each workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.diff.model import Change, ChangeKind, Row
from dovetail.diff.passage import Passage
from dovetail.diff.shapes import gpus_of, serving, shape_of, wanted_shape
from dovetail.diff.sides import NOTHING, PlacesById, Side, still_declared
from dovetail.faults import CODES
from dovetail.placement import Place, Places
from dovetail.spec import ReplicaId, Spec


@dataclass(frozen=True, slots=True)
class Question:
    """What the changes of one workload follow from.

    `passage` is the way from the base to the target, where the documents are known and it is one. `happens` tells
    whether the target starts from the base: only then do replicas move and stop, else two plans merely have them in
    other places.
    """

    workload: str
    base: Side
    target: Side
    spec: Spec | None
    passage: Passage | None = None
    happens: bool = True

    @property
    def known(self) -> bool:
        """Whether the target's documents declare the workload; where they are not known, whether its plan does."""
        return self.target.known or (self.spec is not None and self.workload in self.spec.by_id)

    @property
    def lost(self) -> Places:
        """Replicas of the base whose place is gone."""
        return {} if self.passage is None else self.passage.context.today.lost

    def goes(self, replica: ReplicaId) -> bool:
        """Tell whether a replica of the base is asked for no more: not declared, or not needed for a rate (S5.3)."""
        if replica not in self.target.places and not still_declared(replica, self.spec, self.target, self.base):
            return True
        return self.by_rate and self.passage is not None and replica not in self.passage.context.today.present()

    @property
    def by_rate(self) -> bool:
        """Whether the workload asks for a rate alone, as far as the documents are known."""
        workload = None if self.spec is None else self.spec.by_id.get(self.workload)
        return workload is not None and workload.asks_rate

    @property
    def in_place(self) -> Mapping[ReplicaId, str]:
        """Replicas that start anew on the place that they have, and why."""
        return {} if self.passage is None else self.passage.in_place


def changes_of(question: Question) -> Iterator[Change]:
    """Yield the changes of one workload, at most one of each kind."""
    base, target = question.base, question.target
    if not question.known:
        yield _change(question, "remove", before=base.places)
    elif not base.places and not target.places:
        yield from _waiting(question)
    elif not base.places:
        yield _added(question)
    else:
        yield from _changed(question)


def _waiting(question: Question) -> Iterator[Change]:
    """Yield a change when the workload is new, or waits for other reasons or with other replicas than before."""
    if not question.target.known:
        yield Change("resize", question.workload, 0, why=f"replicas {question.base.declared} -> 0, none was admitted")
    elif question.base != question.target:
        yield _waits(question)


def _waits(question: Question) -> Change:
    target = question.target
    return Change(
        "wait",
        question.workload,
        replicas=target.declared,
        shape=wanted_shape(question.spec, question.workload),
        declared=target.declared,
        why=_titles(target.reasons),
        reasons=target.reasons,
    )


def _added(question: Question) -> Change:
    """Return the change of a workload that gets in, with what keeps the rest of it out where it is not all of it."""
    base, target = question.base, question.target
    why = _why_added(base)
    if target.declared > len(target.places):
        was = f"was 0 of {base.declared}" if base.known else why
        why = f"{_part_of(question)} ({was}){_because(target)}"
    return _change(question, "add", after=target.places, why=why, reasons=target.reasons)


def _changed(question: Question) -> Iterator[Change]:
    """Yield the changes of a workload with running replicas on the base's side."""
    base, target = question.base.places, question.target.places
    goes = {
        replica: place for replica, place in base.items() if target.get(replica) != place and question.goes(replica)
    }
    moved = [r for r, place in base.items() if r not in goes and r in target and place != target[r]]
    started = {replica: place for replica, place in target.items() if replica not in base or replica in goes}
    stopped = {r: place for r, place in base.items() if r not in goes and r not in target}
    if moved:
        kind: ChangeKind = "move" if question.happens else "elsewhere"
        yield _change(
            question,
            kind,
            {r: base[r] for r in moved},
            {r: target[r] for r in moved},
            why=_why_moved(question, moved),
        )
    yield from _in_place(question)
    yield from _stops(question, stopped)
    if started or goes:
        yield _change(question, "resize", goes, started, why=_why_resized(question))
    elif not stopped and question.base.declared != question.target.declared:
        yield _asks_otherwise(question)


def _why_moved(question: Question, moved: list[ReplicaId]) -> str:
    """Return whose place is gone, of those who are elsewhere: they restart, the others move (S5.3)."""
    gone = sum(replica in question.lost for replica in moved)
    if gone == len(moved):
        return "its place is gone" if gone == 1 else "their places are gone"
    return f"the place of {gone:,} is gone" if gone else ""


def _in_place(question: Question) -> Iterator[Change]:
    """Yield the change of replicas that keep their place and start anew all the same (S5.4)."""
    base, target, anew = question.base.places, question.target.places, question.in_place
    own = {replica: place for replica, place in base.items() if replica in anew and target.get(replica) == place}
    if own:
        yield _change(question, "restart", own, own, why=", ".join(sorted({anew[replica] for replica in own})))


def _asks_otherwise(question: Question) -> Change:
    """Return the change of a workload that has what it had, but asks for another number of replicas."""
    target, running = question.target, len(question.target.places)
    why = f"{_part_of(question)} (was {running} of {question.base.declared}){_because(target)}"
    shape = shape_of(question.spec, list(target.places.values()))
    return Change(
        "resize", question.workload, 0, 0, shape, running, running, target.declared, why=why, reasons=target.reasons
    )


def _part_of(question: Question) -> str:
    side = question.target
    return f"{len(side.places)}{_of_declared(question)} admitted{serving(side.result)}"


def _of_declared(question: Question) -> str:
    """Return of how many replicas, nothing where a rate alone is asked for: nobody asked for a number of them."""
    return "" if question.by_rate else f" of {question.target.declared}"


def _stops(question: Question, stopped: PlacesById) -> Iterator[Change]:
    reasons = question.target.reasons
    gone = {replica: place for replica, place in stopped.items() if replica in question.lost}
    evicted = {replica: place for replica, place in stopped.items() if replica not in question.lost}
    if evicted:
        kind: ChangeKind = "evict" if question.happens else "out"
        yield _change(question, kind, evicted, why=_titles(reasons), reasons=reasons)
    if gone:
        why = "its place no longer exists" if len(gone) == 1 else "their places no longer exist"
        yield _change(question, "gone", gone, why=why, reasons=reasons)


def _change(
    question: Question,
    kind: ChangeKind,
    before: PlacesById | None = None,
    after: PlacesById | None = None,
    *,
    why: str = "",
    reasons: tuple[str, ...] = (),
) -> Change:
    before, after = before or {}, after or {}
    places = list((after or before).values())
    return Change(
        kind,
        question.workload,
        replicas=len(before.keys() | after.keys()),
        gpus=gpus_of(places),
        shape=shape_of(question.spec, places),
        before=len(question.base.places),
        after=len(question.target.places),
        declared=question.target.declared,
        why=why,
        reasons=reasons,
        rows=tuple(rows_of(before, after)),
    )


def rows_of(before: PlacesById, after: PlacesById) -> Iterator[Row]:
    """Yield replicas in order, those next to each other with equal places as one row."""
    pending: Row | None = None
    for replica in sorted(before.keys() | after.keys()):
        row = _row(replica, before.get(replica), after.get(replica))
        if pending and _continues(pending, row):
            pending = Row(row.role_id, pending.first, row.last, row.before, row.after)
            continue
        if pending:
            yield pending
        pending = row
    if pending:
        yield pending


def _row(replica: ReplicaId, before: Place | None, after: Place | None) -> Row:
    return Row(replica.role_id, replica.ordinal, replica.ordinal, before, after)


def _continues(run: Row, row: Row) -> bool:
    return (run.role_id, run.last + 1, run.before, run.after) == (row.role_id, row.first, row.before, row.after)


def _why_added(base: Side) -> str:
    if base is NOTHING or not base.known:
        return "new"
    reason = _titles(base.reasons)
    return f"was: {reason}" if reason else "was not admitted"


def _why_resized(question: Question) -> str:
    target = question.target
    before, after = len(question.base.places), len(target.places)
    all_of_it = after >= target.declared
    if before != after:
        part = "" if all_of_it else f"{_of_declared(question)}{serving(target.result)}{_because(target)}"
        return f"replicas {before} -> {after}{part}"
    if all_of_it:
        return f"{after} replicas, others than before"
    return f"{_part_of(question)}, others than before{_because(target)}"


def _because(side: Side) -> str:
    return f": {_titles(side.reasons)}" if side.reasons else ""


def _titles(reasons: Iterable[str]) -> str:
    """Return what reason codes mean, the dominant one first."""
    return ", ".join(CODES[code].title if code in CODES else code for code in reasons)
