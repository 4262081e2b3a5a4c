"""Where a part of a scenario is written, and how to complain about it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from dovetail.documents import Document
from dovetail.documents.marks import PathPart
from dovetail.faults import Fault, Position, nearest

_MOST_COMPARED: Final = 20_000


class Unfit(Exception):
    """A part of a scenario does not fit the project.

    Parameters
    ----------
    code : of the DT18xx range.
    message : one sentence without a final stop.
    path : where, from the value of the patch or expectation on.
    of_key : whether the key is at fault, rather than its value.
    """

    def __init__(
        self, code: str, message: str, *path: PathPart, hint: str | None = None, of_key: bool = False
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
        self.hint = hint
        self.of_key = of_key


def unknown(code: str, what: str, name: str, known: Collection[str], *path: PathPart, of_key: bool = False) -> Unfit:
    """Return the complaint that something is not there, with what was probably meant."""
    near = nearest(name, known) if len(known) <= _MOST_COMPARED else None
    hint = f"did you mean {near}?" if near else None
    return Unfit(code, f"there is no {what} '{name}'", *path, hint=hint, of_key=of_key)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a document, or, without a document, an option of a command line such as `--fail rack=r3`."""

    document: Document | None = None
    path: tuple[PathPart, ...] = ()
    option: str = ""

    def __truediv__(self, part: PathPart) -> Spot:
        """Return the place one step further in."""
        return replace(self, path=(*self.path, part))

    def __str__(self) -> str:
        """Return `file:line`, or the option."""
        place = self.position
        return self.option if place is None else f"{place.file}:{place.line}"

    @property
    def position(self) -> Position | None:
        """Where it stands, None for an option."""
        return None if self.document is None else self.document.position(*self.path)

    def fault(self, unfit: Unfit) -> Fault:
        """Return a complaint as a fault at its place."""
        if self.document is None:
            return Fault(unfit.code, f"{self.option}: {unfit.message}", None, unfit.hint)
        path = (*self.path, *unfit.path)
        return self.document.fault(unfit.code, unfit.message, *path, hint=unfit.hint, of_key=unfit.of_key)


class SetDocument(Document):
    """A document that stands inside another one, as the value of a `set` patch; its places are in the outer one."""

    def __init__(self, outer: Document, path: tuple[PathPart, ...], value: dict[str, Any]) -> None:
        super().__init__(outer._source, replace(outer._raw, value=value))
        self._path = path

    def _offset(self, path: tuple[PathPart, ...], of_key: bool) -> int:
        return super()._offset((*self._path, *path), of_key)
