"""A place in a document: its value, what stands below it, and how to complain about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeVar

from dovetail.documents import Document
from dovetail.faults import FaultLog, Severity, nearest
from dovetail.quantities import QuantityError

_COMPARISONS: Final = 200_000
_EXPANDED: Final = 1_000_000
_SELECTED: Final = 500_000
_MOST_LISTED: Final = 5

V = TypeVar("V")


@dataclass(slots=True)
class Log(FaultLog):
    """Faults of a build, and how much effort may still go into suggestions, names spelt out, and warnings.

    Each effort is bounded, so that no document of hostile shape takes long.
    """

    comparisons_left: int = _COMPARISONS
    expanded_left: int = _EXPANDED
    selections_left: int = _SELECTED

    @property
    def size(self) -> int:
        """How many faults there are so far, so that what follows from a fault need not be told as well."""
        return len(self._faults)

    def may_select(self, candidates: int) -> bool:
        """Tell whether a selector may be tried on so many candidates, only to warn where it selects none."""
        self.selections_left -= candidates
        return self.selections_left >= 0

    def suggest(self, word: str, choices: Iterable[str]) -> str | None:
        """Return the hint that names the nearest choice, None where none is near or effort is spent."""
        known = tuple(choices)
        if len(known) > self.comparisons_left:
            return None
        self.comparisons_left -= len(known)
        found = nearest(word, known)
        return f"did you mean {found}?" if found else None


@dataclass(frozen=True, slots=True)
class Cursor:
    """A value in a document that follows its schema."""

    document: Document
    log: Log = field(repr=False)
    value: Any
    path: tuple[str | int, ...] = ()

    def __getitem__(self, key: str) -> Cursor:
        """Return the value under a key that is given."""
        return Cursor(self.document, self.log, self.value[key], (*self.path, key))

    def get(self, key: str) -> Cursor | None:
        """Return the value under a key, None where it is left out."""
        return self[key] if key in self.value else None

    def raw(self, key: str, default: Any = None) -> Any:
        """Return the plain value under a key."""
        return self.value.get(key, default)

    def fields(self, key: str | None = None) -> Iterator[tuple[str, Cursor]]:
        """Yield the entries of this mapping, or of the one under a key; nothing where it is left out."""
        here = self if key is None else self.get(key)
        if here is not None:
            for name in here.value:
                yield name, here[name]

    def items(self, key: str) -> Iterator[Cursor]:
        """Yield the entries of the list under a key; nothing where it is left out."""
        for index in range(len(self.value.get(key, ()))):
            yield self.item(key, index)

    def item(self, key: str, index: int) -> Cursor:
        """Return one entry of the list under a key."""
        return Cursor(self.document, self.log, self.value[key][index], (*self.path, key, index))

    def fault(self, code: str, message: str, hint: str | None = None, *, of_key: bool = False) -> None:
        """Add a fault at this value, or at its key."""
        self._add(code, message, hint, of_key, "error")

    def warn(self, code: str, message: str, hint: str | None = None, *, of_key: bool = False) -> None:
        """Add a warning at this value, or at its key."""
        self._add(code, message, hint, of_key, "warning")

    def _add(self, code: str, message: str, hint: str | None, of_key: bool, severity: Severity) -> None:
        self.log.append(self.document.fault(code, message, *self.path, hint=hint, of_key=of_key, severity=severity))

    def refer(self, code: str, what: str, known: Collection[str]) -> str | None:
        """Return the name that stands here where it is known; else add a fault with the nearest known one."""
        name: str = self.value
        if name in known:
            return name
        self.fault(code, f"there is no {what} '{name}'", self.log.suggest(name, known) or listed("there are", known))
        return None

    def quantity(self, parse: Callable[[Any], V], default: V) -> V:
        """Return the amount that stands here; a fault and the default where it is none."""
        try:
            return parse(self.value)
        except QuantityError as error:
            self.fault(error.code, error.message, error.hint)
            return default

    def amount(self, key: str, parse: Callable[[Any], int], default: int = 0) -> int:
        """Return the amount under a key; the default where it is left out."""
        here = self.get(key)
        return default if here is None else here.quantity(parse, default)


def listed(what: str, there: Collection[str]) -> str:
    """Return the first few names that there are, as a hint."""
    names = sorted(there)
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    return f"{what}: {', '.join(names[:_MOST_LISTED])}{more}" if names else f"{what}: none"


def frozen(mapping: Mapping[str, V]) -> Mapping[str, V]:
    """Return a read-only copy in order of its keys, so that the order in documents means nothing."""
    return MappingProxyType(dict(sorted(mapping.items())))


def cursor(document: Document, log: Log) -> Cursor:
    """Return the place of a document's `spec`; an empty one where it has none."""
    return Cursor(document, log, document.spec, ("spec",))


__all__ = ["Cursor", "Log", "cursor", "frozen", "listed"]
