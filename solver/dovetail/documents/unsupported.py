"""Fields and values that the format has but this version does not honour: found in documents, listed for tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dovetail.documents.compiled import Compiler, Scope
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


class Finder:
    """Walks documents and their schemas together."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._compiler = Compiler(schemas.lookup)
        self._marked: dict[int, bool] = {}

    def uses(self, kind: str, value: Any) -> list[Use]:
        """Return the uses in a document, each once."""
        schema, scope = self._schemas.root(kind)
        return list(dict.fromkeys(self._walk(schema, value, scope, ())))

    def _walk(self, schema: Any, value: Any, scope: Scope, path: Path) -> Iterator[Use]:
        if not isinstance(schema, dict) or not self._is_marked(schema, scope):
            return
        if MARK in schema:
            yield Use(path, schema[MARK])
            return
        if type(value) is str and value in schema.get(VALUES_MARK, ()):
            yield Use(path, schema[VALUES_MARK][value], value)
        for sub, sub_scope in self._in_place(schema, value, scope):
            yield from self._walk(sub, value, sub_scope, path)
        if type(value) is dict:
            known, rest = schema.get("properties", {}), schema.get("additionalProperties")
            for key, item in value.items():
                yield from self._walk(known.get(key, rest), item, scope, (*path, key))
        elif type(value) is list:
            for index, item in enumerate(value):
                yield from self._walk(schema.get("items"), item, scope, (*path, index))

    def _in_place(self, schema: dict[str, Any], value: Any, scope: Scope) -> Iterator[tuple[Any, Scope]]:
        """Yield the schemas that apply to the same value."""
        if "$ref" in schema:
            yield self._schemas.lookup(schema["$ref"], scope)
        for sub in schema.get("allOf", ()):
            yield sub, scope
        for keyword in ("anyOf", "oneOf"):
            for sub in schema.get(keyword, ()):
                if self._compiler.compile(sub, scope)(value):
                    yield sub, scope
        if "if" in schema:
            holds = self._compiler.compile(schema["if"], scope)(value)
            yield schema.get("then" if holds else "else"), scope

    def _is_marked(self, schema: dict[str, Any], scope: Scope) -> bool:
        """Whether a schema or anything below it carries a mark."""
        found = self._marked.get(id(schema))
        if found is None:
            reached = _reachable(self._schemas, schema, scope)
            found = any(MARK in sub or VALUES_MARK in sub for sub in reached)
            self._marked[id(schema)] = found
        return found


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
