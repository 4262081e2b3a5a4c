"""Places of values, found by a second pass over the text only when somebody asks.

A mark is the offset of a scalar, or a pair of the offset of a container and the marks of its children.
"""

from __future__ import annotations

from typing import Any

from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from dovetail.documents.yaml_reader import events

Mark = int | tuple[int, Any]
"""Children of a list are a list of marks; those of a mapping are a dict of key to (key offset, mark)."""

PathPart = str | int


class MarkBuilder:
    """Builds a tree of marks from starts, ends and scalars; shared by the readers."""

    def __init__(self) -> None:
        self.root: Mark = 0
        self._stack: list[tuple[Any, Any]] = []
        self._open: Any = None
        self._key: tuple[str, int] | None = None

    def start(self, is_mapping: bool, offset: int) -> Mark:
        """Open a container."""
        children: Any = {} if is_mapping else []
        mark = (offset, children)
        self.put(mark)
        self._stack.append((self._open, self._key))
        self._open, self._key = children, None
        return mark

    def end(self) -> None:
        """Close the open container."""
        self._open, self._key = self._stack.pop()

    def scalar(self, text: str, offset: int) -> None:
        """Take a scalar: a key where one is due, else a value."""
        if type(self._open) is dict and self._key is None:
            self._key = (text, offset)
        else:
            self.put(offset)

    def put(self, mark: Mark) -> None:
        """Store the mark of a value; of equal keys the last one counts, as in the value."""
        if type(self._open) is dict:
            if self._key is not None:
                key, offset = self._key
                self._open[key] = (offset, mark)
            self._key = None
        elif self._open is None:
            self.root = mark
        else:
            self._open.append(mark)

    @property
    def key_is_due(self) -> bool:
        """Whether the open container is a mapping that waits for a key."""
        return type(self._open) is dict and self._key is None


def yaml_marks(text: str) -> Mark:
    """Return the marks of the one document in a text that is known to be readable."""
    builder = MarkBuilder()
    anchors: dict[str, tuple[str, Mark]] = {}
    for event in events(text):
        kind = type(event)
        if kind is ScalarEvent:
            builder.scalar(event.value, event.start_mark.index)
            if event.anchor is not None:
                anchors[event.anchor] = (event.value, event.start_mark.index)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            mark = builder.start(kind is MappingStartEvent, event.start_mark.index)
            if event.anchor is not None:
                anchors[event.anchor] = ("", mark)
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            builder.end()
        elif kind is AliasEvent:
            _alias(builder, anchors[event.anchor], event.start_mark.index)
    return builder.root


def _alias(builder: MarkBuilder, target: tuple[str, Mark], offset: int) -> None:
    """Put an alias: itself where it stands, its children where the anchor has them."""
    text, mark = target
    if builder.key_is_due:
        builder.scalar(text, offset)
    else:
        builder.put(offset if isinstance(mark, int) else (offset, mark[1]))


def find(root: Mark, path: tuple[PathPart, ...], of_key: bool) -> int:
    """Return the offset of a value or of its key; of the nearest parent where the path leaves the text."""
    mark, offset = root, root if isinstance(root, int) else root[0]
    for part in path:
        children = None if isinstance(mark, int) else mark[1]
        if isinstance(children, dict) and part in children:
            key_offset, mark = children[part]
        elif isinstance(children, list) and isinstance(part, int) and 0 <= part < len(children):
            mark = children[part]
            key_offset = mark if isinstance(mark, int) else mark[0]
        else:
            return offset
        offset = key_offset if of_key else (mark if isinstance(mark, int) else mark[0])
    return offset
