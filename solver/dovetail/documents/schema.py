"""The schemas of all kinds, and what a document breaks of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources.abc import Traversable
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator, TypeChecker, ValidationError
from jsonschema.validators import extend
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from dovetail.documents.compiled import TYPES, Check, Compiler, Scope, first_repeated, whole_pattern
from dovetail.documents.marks import PathPart
from dovetail.resources import schemas_folder


@dataclass(frozen=True, slots=True)
class Breach:
    """One keyword of a schema that a value breaks.

    Parameters
    ----------
    path
        Where the value is in the document.
    keyword, wanted, schema
        The keyword, what stands behind it, and the schema that holds both.
    value
        What was found.
    of_key
        Whether the value is a key of the mapping at ``path``.
    context, branch
        For alternatives: the breaches of each, and which of them a breach belongs to.
    """

    path: tuple[PathPart, ...]
    keyword: str
    wanted: Any
    value: Any
    schema: dict[str, Any]
    of_key: bool = False
    context: tuple[Breach, ...] = ()
    branch: int = 0


_MOST_ERRORS: Final = 100
_SUFFIX: Final = ".schema.json"


class Schemas:
    """All schemas of a folder.

    Parameters
    ----------
    root
        Holds ``<kind lowercase>.schema.json`` and ``rules/<rule>.schema.json``, which refer to each other by relative
        references. Nothing is ever fetched.
    """

    def __init__(self, root: Traversable) -> None:
        self._by_name = {name: _parsed(file) for name, file in sorted(_files(root, ""))}
        # What is referred to says no dialect: the general validator would take a class that is not ours for it.
        plain = [{key: part for key, part in each.items() if key != "$schema"} for each in self._by_name.values()]
        resources = [(each["$id"], Resource.from_contents(each, DRAFT202012)) for each in plain]
        self._registry: Registry[Any] = Registry().with_resources(resources).crawl()
        self._compiler = Compiler(self.lookup)
        self._validator_class = _validator_class(self._compiler)

    def names(self) -> tuple[str, ...]:
        """Return the names of the schemas: ``cluster``, ``rules/quota``."""
        return tuple(self._by_name)

    def schema(self, kind: str) -> dict[str, Any] | None:
        """Return the schema of a kind, or None when the folder has none."""
        return self._by_name.get(kind.lower())

    def root(self, kind: str) -> tuple[Any, Scope]:
        """Return the schema of a kind with its scope.

        Raises
        ------
        KeyError
            When the folder has none.
        """
        schema = self._by_name[kind.lower()]
        return schema, self._registry.resolver(schema["$id"])

    def lookup(self, reference: str, scope: Scope) -> tuple[Any, Scope]:
        """Return the schema that a reference names, and the scope of the references inside it."""
        resolved = scope.lookup(reference)
        return resolved.contents, resolved.resolver

    def is_valid(self, kind: str, value: Any) -> bool:
        """Whether a document is valid for its kind; fast."""
        return self._check(kind)(value)

    def breaches(self, kind: str, value: Any) -> list[Breach]:
        """Return what a document breaks, up to a limit."""
        if self.is_valid(kind, value):
            return []
        validator = self._validator_class(self._by_name[kind.lower()], registry=self._registry)
        return [_breach(error) for error in islice(validator.iter_errors(value), _MOST_ERRORS)]

    def _check(self, kind: str) -> Check:
        return self._compiler.compile(*self.root(kind))


@cache
def shipped_schemas() -> Schemas:
    """Return the schemas that dovetail ships."""
    return Schemas(schemas_folder())


def _breach(error: Any) -> Breach:
    first = error.schema_path[0] if error.schema_path else 0
    return Breach(
        path=tuple(error.absolute_path),
        keyword=str(error.validator),
        wanted=error.validator_value,
        value=error.instance,
        schema=error.schema if isinstance(error.schema, dict) else {},
        of_key="propertyNames" in error.schema_path,
        context=tuple(_breach(item) for item in islice(error.context or (), _MOST_ERRORS)),
        branch=first if isinstance(first, int) else 0,
    )


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            yield prefix + entry.name.removesuffix(_SUFFIX), entry


def _parsed(file: Traversable) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    return schema


def _validator_class(compiler: Compiler) -> Any:
    """Return the general validator with our types, linear ``uniqueItems``, and valid parts skipped."""
    base = Draft202012Validator.VALIDATORS

    def passes(schema: Any, value: Any) -> bool:
        check = compiler.known(schema)
        return check is not None and check(value)

    def reference(validator: Any, ref: str, value: Any, schema: Any) -> Iterator[ValidationError]:
        check = compiler.known_reference(schema)
        return iter(()) if check is not None and check(value) else base["$ref"](validator, ref, value, schema)

    def properties(validator: Any, subs: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(value, dict):
            bad = {key: sub for key, sub in subs.items() if key in value and not passes(sub, value[key])}
            yield from base["properties"](validator, bad, value, schema)

    def additional(validator: Any, sub: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(value, dict) and isinstance(sub, dict):
            known = schema.get("properties", {})
            value = {key: v for key, v in value.items() if key not in known and not passes(sub, v)}
        yield from base["additionalProperties"](validator, sub, value, schema)

    def items(validator: Any, sub: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            if not passes(sub, item):
                yield from validator.descend(item, sub, path=index)

    extended: Any = extend
    return extended(
        Draft202012Validator,
        {
            "$ref": reference,
            "properties": properties,
            "additionalProperties": additional,
            "items": items,
            "pattern": _pattern,
            "uniqueItems": _unique,
        },
        type_checker=TypeChecker({name: _type_check(types) for name, types in TYPES.items()}),
    )


def _type_check(types: frozenset[type]) -> Any:
    return lambda _, value: type(value) in types


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not whole_pattern(pattern).search(value):
        yield ValidationError("does not match")


def _unique(_: Any, unique: bool, value: Any, __: Any) -> Iterator[ValidationError]:
    if unique and isinstance(value, list) and (index := first_repeated(value)) is not None:
        yield ValidationError("listed twice", path=(index,))
