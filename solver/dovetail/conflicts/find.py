"""Conflicts of a Spec: every check over all hard policies, each result cut down to what it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from dovetail.conflicts.checks import TABLE, Check, Found, barred, lost_for_good, told_short
from dovetail.conflicts.facts import Facts, Ground
from dovetail.spec import Spec, Workload

_MOST_TOLD: Final = 20
_MOST_WORKLOADS: Final = 2_000
"""Workloads that are looked at one by one; a project of more is left to the search."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Hard policies that cannot all hold, none of which could be left out of it.

    Parameters
    ----------
    code : the kind of conflict; DT1920 where nothing is demanded, but a workload can never be admitted; DT1921 where
        one runs where it must not and never moves, DT1922 where today excuses what never can be.
    kind : `impossible` where no plan keeps the policies, `never` where none that keeps them admits the workload,
        `stuck` where one policy keeps up what breaks the other, `excused` where nothing ever mends one: both of what
        today excuses (S4.5).
    policies : their names, sorted.
    workloads : ids of the workloads that it is about.
    """

    code: str
    kind: Literal["impossible", "never", "stuck", "excused"]
    policies: tuple[str, ...]
    workloads: tuple[str, ...]
    why: str


def conflicts_of(spec: Spec) -> tuple[Conflict, ...]:
    """Return what is certain of a Spec's hard policies, at most so many conflicts of each kind."""
    ground = Ground(spec)
    if not ground.closed and not any(ground.claims.values()):
        return ()
    impossible = _distinct(_impossible(ground))
    blamed = {name for conflict in impossible for name in conflict.workloads}
    lasting = (*_distinct(_stuck(ground)), *_distinct(_excused(ground)))
    return (*impossible, *_distinct(_never(ground, blamed)), *lasting)


def _distinct(conflicts: Iterator[Conflict]) -> tuple[Conflict, ...]:
    """Return one conflict for the same policies and the same reason to contradict each other."""
    found: dict[tuple[str, tuple[str, ...]], Conflict] = {}
    for conflict in conflicts:
        found.setdefault((conflict.code, conflict.policies), conflict)
        if len(found) == _MOST_TOLD:
            break
    return tuple(found.values())


def _impossible(ground: Ground) -> Iterator[Conflict]:
    facts = Facts(ground, frozenset(ground.policies))
    for code, check in TABLE.items():
        for found in _first_of_each(check(facts), set()):
            names, least = _irreducible(facts, check, found)
            yield Conflict(code, "impossible", names, least.workloads, least.why)


def _never(ground: Ground, blamed: set[str]) -> Iterator[Conflict]:
    """Yield what can never be admitted because of policies, beyond what is told as impossible already."""
    names = frozenset(ground.policies)
    demanded = Facts(ground, names).needed
    told: set[frozenset[str]] = set()
    waiting = [w for w in ground.spec.workloads if w.id not in ground.running and w.id not in blamed]
    for workload in waiting[:_MOST_WORKLOADS]:
        if workload.id in demanded:
            continue
        itself = frozenset({workload.id})
        facts = Facts(ground, names, itself, itself)
        for check in TABLE.values() if _all_or_nothing(workload) else (barred, lost_for_good):
            for found in _first_of_each(check(facts), told):
                policies, least = _irreducible(facts, check, found)
                if policies and least.workloads:
                    yield Conflict("DT1920", "never", policies, least.workloads, least.why)


def _all_or_nothing(workload: Workload) -> bool:
    """Tell whether a workload is admitted with all of its replicas or not at all."""
    return workload.replicas == 1 or (workload.atomic and not workload.elastic)


def _stuck(ground: Ground) -> Iterator[Conflict]:
    """Yield what runs on a node that one policy closes to it, while another one never lets it move."""
    stays = {name: frozenset(w.id for w in claims.stays) for name, claims in ground.claims.items()}
    binding = [name for name, ids in sorted(stays.items()) if ids]
    for row in ground.spec.current.replicas if binding else ():
        for name, closed in sorted(ground.closed.items()):
            if row.node in closed and row.replica.workload in ground.scopes[name].ids:
                for keeping in (each for each in binding if row.replica.workload in stays[each]):
                    policies = tuple(sorted((name, keeping)))
                    why = f"{row.replica} runs on {row.node}, which '{name}' closes to it, and may not move"
                    yield Conflict("DT1921", "stuck", policies, (row.replica.workload,), why)


def _excused(ground: Ground) -> Iterator[Conflict]:
    """Yield the policies that hold more free than there would be if nothing ran, which today excuses."""
    for name, claims in sorted(ground.claims.items()):
        if claims.short is not None and ground.excused(name):
            yield Conflict("DT1922", "excused", (name,), (), told_short(claims.short))


def _first_of_each(found: Iterable[Found], told: set[frozenset[str]]) -> Iterator[Found]:
    """Yield the first finding of each set of policies; many workloads meet the same ones."""
    for each in found:
        if each.policies not in told:
            told.add(each.policies)
            yield each


def _irreducible(facts: Facts, check: Check, found: Found) -> tuple[tuple[str, ...], Found]:
    """Return policies of which none can be left out, and what the check finds of them alone."""
    facts = facts.about(frozenset(found.workloads)).only(found.policies)
    least = found
    for name in sorted(found.policies):
        fewer = facts.only(facts.names - {name})
        again = next(check(fewer), None)
        if again is not None:
            facts, least = fewer, again
    return tuple(sorted(facts.names)), least
