"""JSON Schemas compiled to plain functions that only say yes or no.

A valid document is by far the usual case, and inventories and plans have hundreds of thousands of values. The
compiled form decides those far faster than a general validator, which is asked only where something is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

Check = Callable[[Any], bool]
Scope = Any
"""What relative references start from: a resolver of the registry."""
Lookup = Callable[[str, Scope], tuple[Any, Scope]]
"""From a reference and its scope to the schema it names and the scope of that one."""

NUMBERS: Final = frozenset({int, Decimal})
TYPES: Final[Mapping[str, frozenset[type]]] = {
    "object": frozenset({dict}),
    "array": frozenset({list}),
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": NUMBERS,
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
}
"""What each JSON type is here. ``4.0`` is no integer: whoever writes a point means something else than a count."""

ANNOTATIONS: Final = frozenset(
    {
        "$schema",
        "$id",
        "$defs",
        "$comment",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "x-dovetail-unsupported",
        "x-dovetail-unsupported-values",
    }
)


class Compiler:
    """Compiles schemas; each (sub)schema once, known again by its identity as an object."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._checks: dict[int, Check] = {}
        self._references: dict[int, Check] = {}
        self._kept: list[Any] = []

    def known(self, schema: Any) -> Check | None:
        """Return the compiled form of a schema that was compiled before."""
        return self._checks.get(id(schema))

    def known_reference(self, schema: Any) -> Check | None:
        """Return the compiled form of what the ``$ref`` of a compiled schema names."""
        return self._references.get(id(schema))

    def compile(self, schema: Any, scope: Scope) -> Check:
        """Return the compiled form of a schema that stands in a scope."""
        if schema is True or schema is False:
            return _always if schema else _never
        found = self._checks.get(id(schema))
        if found is not None:
            return found
        # A schema may refer to itself: what refers to it meanwhile looks it up when called.
        self._checks[id(schema)] = lambda value: self._checks[id(schema)](value)
        self._kept.append(schema)
        check = _all_of([part for part in self._parts(schema, scope) if part is not _always])
        self._checks[id(schema)] = check
        return check

    def _parts(self, schema: dict[str, Any], scope: Scope) -> list[Check]:
        parts: list[Check] = []
        done: set[str] = set()
        if "type" in schema:
            parts.append(_type(schema["type"]))
        for keywords, build in _GROUPS.items():
            if any(keyword in schema for keyword in keywords):
                parts.append(build(self, schema, scope))
                done |= set(keywords)
        unknown = schema.keys() - done - ANNOTATIONS - {"type"}
        if unknown:
            raise NotImplementedError(f"schema keywords that are not compiled: {', '.join(sorted(unknown))}")
        return parts

    def _ref(self, schema: dict[str, Any], scope: Scope) -> Check:
        check = self.compile(*self._lookup(schema["$ref"], scope))
        self._references[id(schema)] = check
        return check

    def _object(self, schema: dict[str, Any], scope: Scope) -> Check:
        properties = {key: self.compile(sub, scope) for key, sub in schema.get("properties", {}).items()}
        rest = self.compile(schema.get("additionalProperties", True), scope)
        names = self.compile(schema.get("propertyNames", True), scope)
        required = frozenset(schema.get("required", ()))
        fewest, most = schema.get("minProperties", 0), schema.get("maxProperties", float("inf"))
        open_names = names is _always

        def check(value: Any) -> bool:
            if type(value) is not dict:
                return True
            if not (required <= value.keys() and fewest <= len(value) <= most):
                return False
            for key, item in value.items():
                if not properties.get(key, rest)(item):
                    return False
            return open_names or all(map(names, value))

        return check

    def _array(self, schema: dict[str, Any], scope: Scope) -> Check:
        items = self.compile(schema.get("items", True), scope)
        fewest, most = schema.get("minItems", 0), schema.get("maxItems", float("inf"))
        unique = schema.get("uniqueItems", False)

        def check(value: Any) -> bool:
            if type(value) is not list:
                return True
            if not fewest <= len(value) <= most or not all(map(items, value)):
                return False
            return not unique or first_repeated(value) is None

        return check

    def _combined(self, schema: dict[str, Any], scope: Scope) -> Check:
        every = [self.compile(sub, scope) for sub in schema.get("allOf", ())]
        some = [self.compile(sub, scope) for sub in schema.get("anyOf", ())]
        one = [self.compile(sub, scope) for sub in schema.get("oneOf", ())]
        never = self.compile(schema.get("not", False), scope)

        def check(value: Any) -> bool:
            if not all(sub(value) for sub in every) or never(value):
                return False
            if some and not any(sub(value) for sub in some):
                return False
            return not one or sum(sub(value) for sub in one) == 1

        return check

    def _conditional(self, schema: dict[str, Any], scope: Scope) -> Check:
        condition = self.compile(schema.get("if", True), scope)
        then = self.compile(schema.get("then", True), scope)
        otherwise = self.compile(schema.get("else", True), scope)
        return lambda value: then(value) if condition(value) else otherwise(value)


def _always(_: Any) -> bool:
    return True


def _never(_: Any) -> bool:
    return False


def _all_of(parts: list[Check]) -> Check:
    if not parts:
        return _always
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        first, second = parts
        return lambda value: first(value) and second(value)
    return lambda value: all(part(value) for part in parts)


def _type(names: str | list[str]) -> Check:
    listed = [names] if isinstance(names, str) else names
    allowed = frozenset().union(*(TYPES[name] for name in listed))
    return lambda value: type(value) in allowed


def _choices(_: Compiler, schema: dict[str, Any], __: Scope) -> Check:
    groups = [schema["enum"]] if "enum" in schema else []
    groups += [[schema["const"]]] if "const" in schema else []
    return lambda value: all(any(same(value, choice) for choice in choices) for choices in groups)


def _text(_: Compiler, schema: dict[str, Any], __: Scope) -> Check:
    pattern = whole_pattern(schema["pattern"]) if "pattern" in schema else None
    fewest, most = schema.get("minLength", 0), schema.get("maxLength", float("inf"))
    search = pattern.search if pattern is not None else None

    def check(value: Any) -> bool:
        if type(value) is not str:
            return True
        return fewest <= len(value) <= most and (search is None or search(value) is not None)

    return check


def _number(_: Compiler, schema: dict[str, Any], __: Scope) -> Check:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    multiple = schema.get("multipleOf")

    def check(value: Any) -> bool:
        return type(value) not in NUMBERS or (
            (lowest is None or value >= lowest)
            and (highest is None or value <= highest)
            and (above is None or value > above)
            and (below is None or value < below)
            and (multiple is None or value % multiple == 0)
        )

    return check


_GROUPS: Final[Mapping[tuple[str, ...], Callable[[Compiler, dict[str, Any], Scope], Check]]] = {
    ("enum", "const"): _choices,
    ("pattern", "minLength", "maxLength"): _text,
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"): _number,
    ("$ref",): Compiler._ref,
    (
        "properties",
        "additionalProperties",
        "propertyNames",
        "required",
        "minProperties",
        "maxProperties",
    ): Compiler._object,
    ("items", "minItems", "maxItems", "uniqueItems"): Compiler._array,
    ("allOf", "anyOf", "oneOf", "not"): Compiler._combined,
    ("if", "then", "else"): Compiler._conditional,
}
"""The keywords that are understood, in the order in which they are checked: cheap ones first."""


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal as JSON: a truth value is not a number."""
    return (type(left) is bool) == (type(right) is bool) and bool(left == right)


def whole_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern whose ``$`` means the end, as in JSON Schema, and not also before a final line break."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern))


def first_repeated(values: list[Any]) -> int | None:
    """Return the index of the first entry that stands before it already; linear, whatever the entries are."""
    seen: set[Any] = set()
    for index, value in enumerate(values):
        frozen = _frozen(value)
        if frozen in seen:
            return index
        seen.add(frozen)
    return None


def _frozen(value: Any) -> Any:
    if type(value) is dict:
        return ("dict", frozenset((key, _frozen(item)) for key, item in value.items()))
    if type(value) is list:
        return ("list", tuple(_frozen(item) for item in value))
    return ("bool", value) if type(value) is bool else value
