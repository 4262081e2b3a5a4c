"""The text of replica identities, as documents and plans write it: `[namespace/]workload[.role]#index`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.spec.workload import ReplicaId

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_RANGE = re.compile(rf"((?:{_LABEL}/)?{_LABEL})(?:\.({_LABEL}))?#([0-9]{{1,9}})(?:-([0-9]{{1,9}}))?", re.ASCII)


class IdentityError(ValueError):
    """A text that names no replica; the message says what is wrong, without a final stop."""


@dataclass(frozen=True, slots=True, order=True)
class ReplicaRange:
    """The replicas `first` to `last`, both included, of one role of a workload; its text is `a.b#0-411`."""

    workload: str
    role: str
    first: int
    last: int

    @property
    def size(self) -> int:
        """How many replicas it stands for."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        """Return the text of the range; that of a single replica when it holds one."""
        start = str(ReplicaId(self.workload, self.role, self.first))
        return start if self.last == self.first else f"{start}-{self.last}"

    def replicas(self) -> Iterator[ReplicaId]:
        """Yield the replicas, by index."""
        return (ReplicaId(self.workload, self.role, index) for index in range(self.first, self.last + 1))


def parse_range(text: str) -> ReplicaRange:
    """Return the replicas that `a.b#3` or `a.b#0-411` stands for.

    An index is written without leading zeros, so that every replica has one text only.

    Raises
    ------
    IdentityError
        If the text is malformed, or the range runs backwards.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise IdentityError(f"'{text[:80]}' is not a replica such as team/train.worker#0")
    workload, role, first, last = match[1], match[2] or "", match[3], match[4]
    for index in (first, last):
        if index is not None and index != str(int(index)):
            raise IdentityError(f"index {index} of '{text[:80]}' has leading zeros")
    if last is not None and int(last) < int(first):
        raise IdentityError(f"the range {first}-{last} of '{text[:80]}' runs backwards")
    return ReplicaRange(workload, role, int(first), int(last or first))


def speaks_of(row: str, subject: str) -> bool:
    """Tell whether the text of replicas, such as `a.b#0-411`, speaks of one of them, of its workload or of its role.

    Nothing is said of whether either text is well formed.
    """
    of, _, indices = row.partition("#")
    named, _, index = subject.partition("#")
    first, _, last = indices.partition("-")
    if not index:
        return named in (of, of.partition(".")[0])
    return of == named and index.isdigit() and int(first) <= int(index) <= int(last or first)
