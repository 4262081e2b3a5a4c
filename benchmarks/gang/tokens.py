"""Stand-ins that count gangs, sets and jobs where documents count replicas.

A token is a workload without any use for the hardware of a case: it is there, or not, together with what it stands
for. `marks` are labels that policies group by. That of a set or a job is worth more replicas than a case has pods, so
"this many replicas of the group" can only be met with the token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from benchmarks.gang.case import Case, Gang

RESOURCE, NODE = "token", "tokens"


@dataclass(frozen=True, slots=True)
class Token:
    """A stand-in: its name, how many replicas it has, what each is worth, and the groups that it belongs to."""

    name: str
    replicas: int = 1
    value: int = 0
    marks: Mapping[str, str] = field(default_factory=dict)


def heavy(case: Case) -> int:
    """Return more than the pods of all gangs."""
    return 1 + sum(gang.pods for gang in case.gangs)


def of_set(index: int) -> str:
    """Return the name of the token of a set, by its place in the case."""
    return f"token-set-{index}"


def of_gang(case: Case, gang: Gang) -> str:
    """Return the name of the token of a gang."""
    return f"token-gang-{case.gangs.index(gang)}"


def of_job(index: int) -> str:
    """Return the name of the token of a job."""
    return f"token-job-{index}"


def marks(case: Case, gang: Gang) -> Mapping[str, str]:
    """Return the groups that a gang belongs to: itself, its sets and its job."""
    found = {f"set-{index}": "in" for index, each in enumerate(case.sets) if gang.name in each.gangs}
    return {of_gang(case, gang): "in", **found, **_job(case, gang.name)}


def tokens(case: Case) -> Iterator[Token]:
    """Yield the tokens of a case: of sets that may be incomplete, of their gangs, and of jobs."""
    counted: dict[str, dict[str, str]] = {}
    for index, each in enumerate(case.sets):
        if each.partial:
            job = {} if each.optional else _job(case, next(iter(each.gangs), ""))
            yield Token(of_set(index), heavy(case), marks={f"set-{index}": "in", **job})
        for name in each.gangs if each.min_subgroups else ():
            token = of_gang(case, case.gang[name])
            counted.setdefault(token, {token: "in"})[f"set-{index}"] = "in"
    yield from (Token(name, marks=found) for name, found in counted.items())
    for index in range(len(case.jobs)):
        yield Token(of_job(index), heavy(case), value=1, marks={"job": f"j{index}"})


def _job(case: Case, gang: str) -> Mapping[str, str]:
    return next(({"job": f"j{index}"} for index, job in enumerate(case.jobs) if gang in job.gangs), {})
