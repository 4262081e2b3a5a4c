"""Reads YAML 1.2 through libyaml's events, with faults at their places.

Values are built from events on an explicit stack: no recursion, so that depth is a limit and never a crash, and every
limit is checked before memory is spent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from dovetail.collector import collector_paused
from dovetail.documents.scalars import ScalarError, resolve
from dovetail.documents.source import DEEPEST, Source, SourceLog

MOST_ALIASED: Final = 100_000
"""Values (long texts count by 64 characters) that aliases may repeat in one file."""

_DIRECTIVE: Final = re.compile(r"^%(?!YAML[ \t]+1\.2[ \t]*(?:#.*)?$)", re.MULTILINE)
_NO_KEY: Final = object()
_OPEN: Final = object()


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A value as read, and where its text starts and ends."""

    value: Any
    start: int
    end: int


class Stop(Exception):
    """Nothing after this place can be read; the fault is in the log."""


@dataclass(slots=True)
class _Anchor:
    """What an alias may refer to: its value, how many values it holds, and how deep they are nested."""

    value: Any
    weight: int = 1
    height: int = 0


def events(text: str) -> Iterator[Any]:
    """Yield the parser's events, from libyaml where it is there, else from pure Python."""
    parser = parser_of(text)
    try:
        get: Callable[[], Any] = parser.get_event
        while True:
            event = get()
            yield event
            if type(event) is StreamEndEvent:
                return
    finally:
        parser.dispose()


def parser_of(text: str) -> Any:
    """Return libyaml's parser of a text, or the one in pure Python where libyaml is missing."""
    try:
        from yaml import cyaml
    except ImportError:
        return yaml.SafeLoader(text)
    parser: Any = cyaml
    return parser.CParser(text)


def read_yaml(source: Source, log: SourceLog) -> list[RawDocument]:
    """Return the documents of a YAML text; faults go to the log.

    Documents before a syntax error are returned, so that their faults are told as well.
    """
    builder = _Builder(source, log)
    found = _DIRECTIVE.search(source.text)
    if found is not None:
        log.add("DT1019", "directives other than %YAML 1.2 are not supported", found.start())
        return []
    try:
        with collector_paused():
            builder.run(events(source.text))
    except Stop:
        pass
    except yaml.MarkedYAMLError as error:
        _add_syntax_error(error, log)
    except yaml.YAMLError as error:
        log.add("DT1004", f"the text is not YAML: {str(error).splitlines()[0]}", 0)
    return builder.documents


def _add_syntax_error(error: yaml.MarkedYAMLError, log: SourceLog) -> None:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or "the text is not YAML"
    message = f"{problem} {error.context}" if error.context else problem
    log.add("DT1004", message, mark.index if mark else 0, _syntax_hint(error, mark, log.source.text))


def _syntax_hint(error: yaml.MarkedYAMLError, mark: Any, text: str) -> str | None:
    problem, context = error.problem or "", error.context or ""
    if mark is not None and text[mark.index : mark.index + 1] == "\t":
        return "indent with spaces, not tabs"
    if "mapping values are not allowed" in problem:
        return "put quotes around a text that holds ': ', or look at the indentation"
    if "cannot start any token" in problem:
        return "put quotes around a text that starts with a special character"
    if "flow" in context and mark is not None:
        return f"look at the bracket opened in line {_opened(error, mark, text)}"
    return None


def _opened(error: yaml.MarkedYAMLError, mark: Any, text: str) -> int:
    """Return the line of the bracket that is not closed; the parser tells it of a list or mapping, of a value not."""
    told = error.context_mark.index if error.context_mark is not None else len(text)
    if text[told : told + 1] not in ("[", "{"):
        told = max(0, *(text.rfind(bracket, 0, mark.index) for bracket in "[{"))
    return text.count("\n", 0, told) + 1


class _Builder:
    """Builds plain values from events.

    ``_stack`` holds the containers around the open one, each with the key that waits for its value.
    """

    def __init__(self, source: Source, log: SourceLog) -> None:
        self.documents: list[RawDocument] = []
        self._source = source
        self._log = log
        self._stack: list[tuple[Any, Any]] = []
        self._open: Any = None
        self._key: Any = _NO_KEY
        self._root: Any = None
        self._start = 0
        self._anchors: dict[str, Any] = {}
        self._watched: list[tuple[str, int, int, list[int]]] = []
        self._weight = 0
        self._aliased = 0
        self._resolved_before: dict[str, Any] = {}

    def run(self, stream: Iterator[Any]) -> None:
        """Consume all events."""
        handlers: dict[type, Callable[[Any], None]] = {
            ScalarEvent: self._scalar,
            MappingStartEvent: self._start_container,
            SequenceStartEvent: self._start_container,
            MappingEndEvent: self._end_container,
            SequenceEndEvent: self._end_container,
            AliasEvent: self._alias,
            DocumentStartEvent: self._start_document,
            DocumentEndEvent: self._end_document,
            StreamStartEvent: lambda _: None,
            StreamEndEvent: lambda _: None,
        }
        for event in stream:
            handlers[type(event)](event)

    def _start_document(self, event: Any) -> None:
        # The slice starts at a line's start, so that an indented first line keeps its meaning.
        self._start = event.start_mark.index - event.start_mark.column
        self._root = None
        self._anchors = {}
        self._watched = []

    def _end_document(self, event: Any) -> None:
        self.documents.append(RawDocument(self._root, self._start, event.end_mark.index))

    def _scalar(self, event: Any) -> None:
        text = event.value
        self._weight += 1 + (len(text) >> 6)
        if event.tag is not None:
            self._add("DT1007", f"tag {_tag(event.tag)} is not supported", event, "leave the tag out")
        value = text if event.style else self._resolved(text, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(value, 1 + (len(text) >> 6))
        self._put(value, event)

    def _resolved(self, text: str, event: Any) -> Any:
        if text in self._resolved_before:
            return self._resolved_before[text]
        try:
            value = resolve(text)
        except ScalarError as error:
            self._add(error.code, error.message, event)
            return 0
        if value is not text:
            self._resolved_before[text] = value
        return value

    def _put(self, value: Any, event: Any) -> None:
        """Store a value where the open container waits for one."""
        container = self._open
        if type(container) is dict:
            if self._key is _NO_KEY:
                self._take_key(value, event)
            else:
                container[self._key] = value
                self._key = _NO_KEY
        elif container is None:
            self._root = value
        else:
            container.append(value)

    def _take_key(self, key: Any, event: Any) -> None:
        if type(key) is not str:
            shown = getattr(event, "value", "")
            self._add("DT1006", "a key must be text", event, f'write "{shown}"' if shown else None)
            key = str(key)
        elif key == "<<" and not getattr(event, "style", None):
            self._add("DT1008", "merge keys are not supported", event, "spell the fields out")
        elif key in self._open:
            self._add("DT1005", f"key {_short(key)} is given twice", event)
        self._key = key
        self._open.setdefault(key, None)

    def _start_container(self, event: Any) -> None:
        self._weight += 1
        if event.tag is not None:
            self._add("DT1007", f"tag {_tag(event.tag)} is not supported", event, "leave the tag out")
        depth = len(self._stack) + 1
        self._check_depth(depth, event)
        if type(self._open) is dict and self._key is _NO_KEY:
            self._stop("DT1006", "a key must be text, not a list or mapping", event)
        value: Any = {} if type(event) is MappingStartEvent else []
        if event.anchor is not None:
            self._anchors[event.anchor] = _OPEN
            self._watched.append((event.anchor, self._weight, depth, [depth]))
        self._stack.append((self._open, self._key))
        self._open, self._key = value, _NO_KEY
        for _, _, _, deepest in self._watched:
            deepest[0] = max(deepest[0], depth)

    def _end_container(self, event: Any) -> None:
        value, depth = self._open, len(self._stack)
        self._open, self._key = self._stack.pop()
        if self._watched and self._watched[-1][2] == depth:
            anchor, before, _, deepest = self._watched.pop()
            self._anchors[anchor] = _Anchor(value, self._weight - before + 1, deepest[0] - depth + 1)
        self._put(value, event)

    def _alias(self, event: Any) -> None:
        target = self._anchors.get(event.anchor)
        if target is None:
            self._stop("DT1009", f"there is no anchor &{_short(event.anchor)} before this alias", event)
        if target is _OPEN:
            self._stop("DT1010", f"*{_short(event.anchor)} stands inside its own anchor", event)
        assert isinstance(target, _Anchor)
        self._weight += target.weight
        self._aliased += target.weight
        if self._aliased > MOST_ALIASED:
            self._stop("DT1011", "aliases repeat too many values", event)
        depth = len(self._stack) + target.height
        self._check_depth(depth, event)
        for _, _, _, deepest in self._watched:
            deepest[0] = max(deepest[0], depth)
        self._put(_copy(target.value), event)

    def _check_depth(self, depth: int, event: Any) -> None:
        if depth > DEEPEST:
            self._stop("DT1012", f"values are nested more than {DEEPEST} deep", event)

    def _add(self, code: str, message: str, event: Any, hint: str | None = None) -> None:
        self._log.add(code, message, event.start_mark.index, hint)

    def _stop(self, code: str, message: str, event: Any) -> None:
        self._add(code, message, event)
        raise Stop


def _copy(value: Any) -> Any:
    """Return a copy that shares no container; depth is limited, so recursion is safe."""
    if type(value) is dict:
        return {key: _copy(item) for key, item in value.items()}
    if type(value) is list:
        return [_copy(item) for item in value]
    return value


def _tag(tag: str) -> str:
    return _short(tag.replace("tag:yaml.org,2002:", "!!"))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
