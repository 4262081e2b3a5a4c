"""One document, with the places of everything in it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from dovetail.collector import collector_paused
from dovetail.documents.json_reader import json_marks
from dovetail.documents.marks import Mark, PathPart, find, yaml_marks
from dovetail.documents.source import Source
from dovetail.documents.yaml_reader import RawDocument
from dovetail.faults import Fault, Position, Severity


class Document:
    """A document as plain data, which knows the place of every value.

    Parameters
    ----------
    source
        The text it was read from.
    raw
        Its value and its part of the text.

    Notes
    -----
    Values are dict, list, str, int, Decimal, bool and None; do not change them. Places are found by a second pass on
    first use, so that a large document without faults costs nothing for them.
    """

    def __init__(self, source: Source, raw: RawDocument) -> None:
        self._source = source
        self._raw = raw
        self.value: dict[str, Any] = raw.value

    def __repr__(self) -> str:
        return f"Document({self.kind} {self.identity})"

    @property
    def kind(self) -> str:
        """The kind, such as ``Workload``; empty when the document has none."""
        kind = self.value.get("kind")
        return kind if isinstance(kind, str) else ""

    @property
    def name(self) -> str:
        """``metadata.name``; empty when the document has none."""
        return self._metadata("name") or ""

    @property
    def namespace(self) -> str | None:
        """``metadata.namespace``."""
        return self._metadata("namespace")

    @property
    def identity(self) -> str:
        """``[namespace/]name``, unique per kind."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def spec(self) -> dict[str, Any]:
        """The ``spec``; empty when the document has none."""
        spec = self.value.get("spec")
        return spec if isinstance(spec, dict) else {}

    @property
    def file(self) -> str:
        """The name of the file, as shown to people."""
        return self._source.file

    @property
    def start(self) -> int:
        """The offset in the file's text where the document starts."""
        return self._raw.start

    def position(self, *path: PathPart) -> Position:
        """Return where the value at a path stands; its nearest parent when it is not in the text."""
        return self._source.position(self._offset(path, of_key=False))

    def key_position(self, *path: PathPart) -> Position:
        """Return where the key of the value at a path stands."""
        return self._source.position(self._offset(path, of_key=True))

    def line_text(self, line: int) -> str:
        """Return the text of a line of the file, counted from 1."""
        return self._source.line_text(line)

    def fault(
        self,
        code: str,
        message: str,
        *path: PathPart,
        hint: str | None = None,
        of_key: bool = False,
        severity: Severity = "error",
    ) -> Fault:
        """Return a fault at the value at a path, or at its key."""
        return self._source.fault(code, message, self._offset(path, of_key), hint, severity)

    def _metadata(self, key: str) -> str | None:
        metadata = self.value.get("metadata")
        value = metadata.get(key) if isinstance(metadata, dict) else None
        return value if isinstance(value, str) else None

    def _offset(self, path: tuple[PathPart, ...], of_key: bool) -> int:
        return self._raw.start + find(self._marks, path, of_key)

    @cached_property
    def _marks(self) -> Mark:
        text = self._source.text[self._raw.start : self._raw.end]
        with collector_paused():
            return json_marks(text) if is_json(self._source.file) else yaml_marks(text)


def is_json(file: str) -> bool:
    """Whether a file is read as JSON rather than YAML."""
    return file.endswith(".json")
