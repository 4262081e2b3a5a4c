"""Fields and values that the format has but this version does not honour: found in documents, listed for tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.documents.compiled import Check, Compiler, Scope
from dovetail.documents.marks import PathPart
from dovetail.documents.schema import Schemas, shipped_schemas

MARK: Final = "x-dovetail-unsupported"
VALUES_MARK: Final = "x-dovetail-unsupported-values"

Path = tuple[PathPart, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """Where a document uses something that waits for ``reason``; ``value`` when only that value does."""

    path: Path
    reason: str
    value: str | None = None


@dataclass(slots=True)
class _Node:
    """What of a schema can lead to a mark; everything else is left out, so that documents are walked quickly."""

    mark: str | None
    values: Mapping[str, str]
    same: list[tuple[Check | None, _Node]] = field(default_factory=list)
    properties: dict[str, _Node] = field(default_factory=dict)
    unmarked: frozenset[str] = frozenset()
    rest: _Node | None = None
    items: _Node | None = None


class Finder:
    """Walks documents and their schemas together."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._compiler = Compiler(schemas.lookup)
        self._nodes: dict[int, _Node | None] = {}

    def uses(self, kind: str, value: Any) -> list[Use]:
        """Return the uses in a document, each once."""
        node = self._node(*self._schemas.root(kind))
        found: list[Use] = []
        if node is not None:
            _walk(node, value, (), found)
        return list(dict.fromkeys(found))

    def _node(self, schema: Any, scope: Scope) -> _Node | None:
        """Return the node of a schema, or None when neither it nor anything below it carries a mark."""
        if not isinstance(schema, dict):
            return None
        if id(schema) not in self._nodes:
            reached = _reachable(self._schemas, schema, scope)
            marked = any(MARK in sub or VALUES_MARK in sub for sub in reached)
            node = _Node(schema.get(MARK), schema.get(VALUES_MARK, {})) if marked else None
            self._nodes[id(schema)] = node
            if node is not None:
                self._fill(node, schema, scope)
        return self._nodes[id(schema)]

    def _fill(self, node: _Node, schema: dict[str, Any], scope: Scope) -> None:
        properties = {key: self._node(sub, scope) for key, sub in schema.get("properties", {}).items()}
        node.properties = {key: sub for key, sub in properties.items() if sub is not None}
        node.unmarked = frozenset(properties) - frozenset(node.properties)
        node.rest = self._node(schema.get("additionalProperties"), scope)
        node.items = self._node(schema.get("items"), scope)
        for condition, sub, at in self._in_place(schema, scope):
            inner = self._node(sub, at)
            if inner is not None:
                node.same.append((condition, inner))

    def _in_place(self, schema: dict[str, Any], scope: Scope) -> Iterator[tuple[Check | None, Any, Scope]]:
        """Yield the schemas that apply to the same value, each with the condition under which it does."""
        if "$ref" in schema:
            yield None, *self._schemas.lookup(schema["$ref"], scope)
        for sub in schema.get("allOf", ()):
            yield None, sub, scope
        for sub in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            yield self._compiler.compile(sub, scope), sub, scope
        if "if" in schema:
            condition = self._compiler.compile(schema["if"], scope)
            yield condition, schema.get("then"), scope
            yield (lambda value: not condition(value)), schema.get("else"), scope


def _walk(node: _Node, value: Any, path: Path, found: list[Use]) -> None:
    if node.mark is not None:
        found.append(Use(path, node.mark))
        return
    if type(value) is str and value in node.values:
        found.append(Use(path, node.values[value], value))
    for condition, same in node.same:
        if condition is None or condition(value):
            _walk(same, value, path, found)
    if type(value) is dict:
        for key in node.properties.keys() & value.keys() if node.rest is None else value:
            below_it = node.properties.get(key) or (None if key in node.unmarked else node.rest)
            if below_it is not None:
                _walk(below_it, value[key], (*path, key), found)
    elif type(value) is list and node.items is not None:
        for index, item in enumerate(value):
            _walk(node.items, item, (*path, index), found)


def _reachable(schemas: Schemas, schema: dict[str, Any], scope: Scope) -> list[dict[str, Any]]:
    """Return a schema and all below it, each once."""
    found = {id(schema): schema}
    waiting = [(schema, scope)]
    while waiting:
        for _, sub, at in below(schemas, *waiting.pop()):
            if id(sub) not in found:
                found[id(sub)] = sub
                waiting.append((sub, at))
    return list(found.values())


def below(schemas: Schemas, schema: dict[str, Any], scope: Scope) -> Iterator[tuple[str | None, Any, Scope]]:
    """Yield the schemas below one: the step of the path (None: the same value), the schema, its scope."""
    if "$ref" in schema:
        yield None, *schemas.lookup(schema["$ref"], scope)
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from ((None, sub, scope) for sub in schema.get(keyword, ()) if isinstance(sub, dict))
    for keyword in ("if", "then", "else"):
        if isinstance(schema.get(keyword), dict):
            yield None, schema[keyword], scope
    yield from ((key, sub, scope) for key, sub in schema.get("properties", {}).items() if isinstance(sub, dict))
    if isinstance(schema.get("additionalProperties"), dict):
        yield "*", schema["additionalProperties"], scope
    if isinstance(schema.get("items"), dict):
        yield "[]", schema["items"], scope


def leaves(kind: str, schemas: Schemas | None = None) -> tuple[str, ...]:
    """Return the paths of all leaves of a kind's schema, sorted, such as ``spec.nodeGroups[].name``.

    ``*`` stands for any key of a mapping, ``[]`` for any entry of a list; a leaf is a value with nothing below it.
    """
    return tuple(sorted(_leaves(kind, schemas)))


def unsupported_leaves(kind: str, schemas: Schemas | None = None) -> dict[str, str]:
    """Return the leaves that are refused, each with what it waits for.

    An enumerated value that is refused while its field is honoured stands as ``path=value``.
    """
    found = _leaves(kind, schemas)
    return {path: reason for path, reason in sorted(found.items()) if reason is not None}


def _leaves(kind: str, schemas: Schemas | None) -> dict[str, str | None]:
    schemas = schemas or shipped_schemas()
    found: dict[str, str | None] = {}
    _collect(schemas, *schemas.root(kind), "", None, (), found)
    inner = {prefix for path in found for prefix in _prefixes(path)}
    return {path: reason for path, reason in found.items() if path not in inner}


def _prefixes(path: str) -> list[str]:
    """Return the paths of everything around a path."""
    return [path[: match.start()] for match in re.finditer(r"\.|\[\]", path.partition("=")[0])]


def _collect(
    schemas: Schemas,
    schema: dict[str, Any],
    scope: Scope,
    path: str,
    reason: str | None,
    above: tuple[int, ...],
    found: dict[str, str | None],
) -> None:
    if id(schema) in above:
        return
    reason = reason or schema.get(MARK)
    for value, phrase in schema.get(VALUES_MARK, {}).items():
        found[f"{path}={value}"] = reason or phrase
    parts = list(below(schemas, schema, scope))
    if path and not any(step is not None for step, _, _ in parts):
        found[path] = found.get(path) or reason
    for step, sub, sub_scope in parts:
        under = path if step is None else _joined(path, step)
        _collect(schemas, sub, sub_scope, under, reason, (*above, id(schema)), found)


def _joined(path: str, step: str) -> str:
    return path + step if step == "[]" else f"{path}.{step}" if path else step
