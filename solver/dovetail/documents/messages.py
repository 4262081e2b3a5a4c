"""Turns what the validator found into faults that a person can act on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from dovetail.documents.compiled import TYPES
from dovetail.documents.document import Document
from dovetail.documents.marks import PathPart
from dovetail.documents.schema import Breach
from dovetail.faults import Fault, nearest

_NAMES: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_DNS_1123: Final = "at most 63 of a-z, 0-9 and '-', starting and ending with a letter or digit"
_LONGEST_SHOWN: Final = 60


class Translator:
    """Translates the errors of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def faults(self, errors: Sequence[Breach]) -> Iterator[Fault]:
        """Yield the faults of some errors."""
        for error in errors:
            if error.of_key:
                yield self._bad_key(error)
            else:
                yield from _TRANSLATIONS.get(error.keyword, Translator._other)(self, error)

    def _fault(
        self, code: str, message: str, path: Sequence[PathPart], hint: str | None = None, of_key: bool = False
    ) -> Fault:
        return self._document.fault(code, message, *path, hint=hint, of_key=of_key)

    def _bad_key(self, error: Breach) -> Fault:
        path = [*error.path, str(error.value)]
        message = f"{shown(error.value)} is not allowed as a key here"
        return self._fault("DT1105", message, path, _description(error), of_key=True)

    def _unknown(self, error: Breach) -> Iterator[Fault]:
        known = error.schema.get("properties", {})
        path = list(error.path)
        is_rule = path[-1:] == ["rule"]
        code, what = ("DT1111", "rule") if is_rule else ("DT1101", "field")
        for key in error.value:
            if key not in known:
                near = nearest(key, known)
                hint = f"did you mean {near}?" if near else _listed(known)
                yield self._fault(code, f"unknown {what} {shown(key)}", [*path, key], hint, of_key=True)

    def _missing(self, error: Breach) -> Iterator[Fault]:
        path = list(error.path)
        place = f"{path[-1]}" if path and isinstance(path[-1], str) else "this entry" if path else "document"
        sub = error.schema.get("properties", {})
        for key in error.wanted:
            if key not in error.value:
                hint = sub.get(key, {}).get("description") if isinstance(sub.get(key), dict) else None
                yield self._fault("DT1102", f"{place} lacks the field {key}", path, hint, of_key=True)

    def _type(self, error: Breach) -> Iterator[Fault]:
        wanted = error.wanted
        listed = [wanted] if isinstance(wanted, str) else list(wanted)
        message = f"expected {_either([_NAMES[name] for name in listed])}, got {_named(error.value)}"
        yield self._fault("DT1103", message, error.path, _type_hint(listed, error.value) or _description(error))

    def _choice(self, error: Breach) -> Iterator[Fault]:
        value, allowed = error.value, error.wanted
        choices = allowed if error.keyword == "enum" else [allowed]
        texts = [choice for choice in choices if isinstance(choice, str)]
        near = nearest(value, texts) if isinstance(value, str) else None
        hint = f"did you mean {near}?" if near and len(choices) > 1 else _description(error)
        message = f"expected {_either([shown_plain(choice) for choice in choices])}, got {shown(value)}"
        yield self._fault("DT1104", message, error.path, hint)

    def _pattern(self, error: Breach) -> Iterator[Fault]:
        path = list(error.path)
        if path in (["metadata", "name"], ["metadata", "namespace"]) and self._document.kind != "Accelerator":
            yield self._fault("DT1302", f"{shown(error.value)} is not a valid name", path, _DNS_1123)
        else:
            yield self._fault(
                "DT1105", f"{shown(error.value)} does not have the right form", path, _description(error)
            )

    def _bound(self, error: Breach) -> Iterator[Fault]:
        words = {
            "minimum": "at least",
            "maximum": "at most",
            "exclusiveMinimum": "more than",
            "exclusiveMaximum": "less than",
            "multipleOf": "a multiple of",
        }
        wanted = f"{words[error.keyword]} {error.wanted}"
        yield self._fault("DT1106", f"{shown(error.value)} is not {wanted}", error.path, _description(error))

    def _length(self, error: Breach) -> Iterator[Fault]:
        path = list(error.path)
        if path in (["metadata", "name"], ["metadata", "namespace"]) and self._document.kind != "Accelerator":
            yield self._fault("DT1302", f"{shown(error.value)} is not a valid name", path, _DNS_1123)
            return
        one, many = ("character", "characters") if isinstance(error.value, str) else ("entry", "entries")
        word = "at least" if error.keyword.startswith("min") else "at most"
        message = f"expected {word} {error.wanted} {one if error.wanted == 1 else many}, got {len(error.value)}"
        yield self._fault("DT1107", message, path, _description(error))

    def _size(self, error: Breach) -> Iterator[Fault]:
        fewest, most = error.schema.get("minProperties"), error.schema.get("maxProperties")
        known = error.schema.get("properties", {})
        if fewest == most == 1 and known:
            message = f"expected exactly one of {_either(list(known))}, got {len(error.value)}"
        else:
            word = "at least" if error.keyword == "minProperties" else "at most"
            unit = "field" if error.wanted == 1 else "fields"
            message = f"expected {word} {error.wanted} {unit}, got {len(error.value)}"
        yield self._fault("DT1109", message, error.path, _description(error), of_key=True)

    def _repeated(self, error: Breach) -> Iterator[Fault]:
        value = error.value[error.path[-1]] if error.path else None
        yield self._fault("DT1108", f"{shown(value)} is listed twice", error.path, "leave one of the two out")

    def _alternatives(self, error: Breach) -> Iterator[Fault]:
        """Collapse the errors of all alternatives into those of the one that was probably meant."""
        path = list(error.path)
        branches = _by_branch(error)
        if not branches:
            yield self._fault("DT1110", "more than one of the alternatives is given", path, of_key=True)
        elif all(_only_required(errors) for errors in branches):
            keys = [key for errors in branches for item in errors for key in item.wanted]
            unique = list(dict.fromkeys(keys))
            yield self._fault("DT1110", f"exactly one of {_either(unique)} is needed", path, of_key=True)
        elif all(_is_wrong_type(errors, path) for errors in branches):
            names = [name for errors in branches for name in _wanted_types(errors)]
            message = f"expected {_either(list(dict.fromkeys(names)))}, got {_named(error.value)}"
            yield self._fault("DT1103", message, path)
        else:
            fitting = [errors for errors in branches if not _is_wrong_type(errors, path)]
            yield from self.faults(sorted(fitting, key=_distance)[0])

    def _never(self, error: Breach) -> Iterator[Fault]:
        forbidden = error.wanted
        keys = forbidden.get("required") if isinstance(forbidden, dict) else None
        message = f"{' and '.join(keys)} do not go together" if keys else "this is not allowed here"
        if keys and len(keys) == 1:
            message = f"{keys[0]} is not allowed here"
        yield self._fault("DT1110", message, error.path, _description(error), of_key=True)

    def _other(self, error: Breach) -> Iterator[Fault]:
        message = "this is not allowed here"
        yield self._fault("DT1114", message, error.path, _description(error), of_key=True)


_TRANSLATIONS: Final[Mapping[str, Callable[[Translator, Breach], Iterator[Fault]]]] = {
    "additionalProperties": Translator._unknown,
    "required": Translator._missing,
    "type": Translator._type,
    "enum": Translator._choice,
    "const": Translator._choice,
    "pattern": Translator._pattern,
    "minimum": Translator._bound,
    "maximum": Translator._bound,
    "exclusiveMinimum": Translator._bound,
    "exclusiveMaximum": Translator._bound,
    "multipleOf": Translator._bound,
    "minLength": Translator._length,
    "maxLength": Translator._length,
    "minItems": Translator._length,
    "maxItems": Translator._length,
    "minProperties": Translator._size,
    "maxProperties": Translator._size,
    "uniqueItems": Translator._repeated,
    "oneOf": Translator._alternatives,
    "anyOf": Translator._alternatives,
    "not": Translator._never,
}


def shown(value: Any) -> str:
    """Return a value for a message, short whatever it holds."""
    if isinstance(value, str):
        text = "".join(char if char.isprintable() else "?" for char in value[: _LONGEST_SHOWN + 1])
        return f"'{text}'" if len(text) <= _LONGEST_SHOWN else f"'{text[:_LONGEST_SHOWN]}...'"
    return shown_plain(value)


def shown_plain(value: Any) -> str:
    """Return a value as it is written, without quotes."""
    if isinstance(value, dict | list):
        return _named(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _named(value: Any) -> str:
    if isinstance(value, str) and len(value) <= _LONGEST_SHOWN:
        return f"text {shown(value)}"
    if isinstance(value, int | Decimal) or value is None:
        return shown_plain(value)
    return next((_NAMES[name] for name, types in TYPES.items() if type(value) in types), "something else")


def _type_hint(wanted: list[str], value: Any) -> str | None:
    if wanted == ["string"] and isinstance(value, int | Decimal):
        return f'put quotes around it: "{shown_plain(value)}"'
    if isinstance(value, str) and "string" not in wanted:
        if {"integer", "number"} & set(wanted) and value.strip().replace(".", "", 1).isdecimal():
            return f"leave the quotes out: {value.strip()[:_LONGEST_SHOWN]}"
        if "boolean" in wanted and value.lower() in ("yes", "no", "on", "off", "y", "n", "true", "false"):
            return f"write {'true' if value.lower() in ('yes', 'on', 'y', 'true') else 'false'}"
    return None


def _either(words: list[str]) -> str:
    if len(words) <= 1:
        return "".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _listed(known: Mapping[str, Any]) -> str | None:
    if not known:
        return "it takes no fields: {}"
    return f"known here: {', '.join(known)}" if 0 < len(known) <= 12 else None


def _description(error: Breach) -> str | None:
    description = error.schema.get("description")
    return description if isinstance(description, str) else None


def _by_branch(error: Breach) -> list[list[Breach]]:
    branches: dict[int, list[Breach]] = {}
    for item in error.context:
        branches.setdefault(item.branch, []).append(item)
    return list(branches.values())


def _only_required(errors: list[Breach]) -> bool:
    return all(item.keyword == "required" for item in errors)


def _is_wrong_type(errors: list[Breach], path: list[PathPart]) -> bool:
    return any(item.keyword == "type" and list(item.path) == path for item in errors)


def _wanted_types(errors: list[Breach]) -> list[str]:
    wanted = next(item.wanted for item in errors if item.keyword == "type")
    return [_NAMES[name] for name in ([wanted] if isinstance(wanted, str) else wanted)]


def _distance(errors: list[Breach]) -> tuple[int, int]:
    """How far a value is from an alternative: wrong discriminators first, then the number of errors."""
    return (sum(item.keyword in ("const", "enum") for item in errors), len(errors))
