"""Tables of the reference, out of the schemas and the codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from dovetail.documents.kinds import READ_KINDS
from dovetail.documents.unsupported import MARK, VALUES_MARK

BASE = "https://dovetail.dev/schemas/v1alpha1/"
FOLDER = Path(__file__).resolve().parents[2] / "schemas"
QUANTITIES = ("cpu", "memory", "gpuAmount", "fraction", "duration", "money", "ratio")
NAMES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true` or `false`",
    "object": "mapping",
    "array": "list",
}

Schema = dict[str, Any]


@dataclass(slots=True)
class Reference:
    """Reads the schemas once: tables of fields, shared parts in the order they are met, and what is refused."""

    files: dict[str, Schema] = field(default_factory=dict)
    parts: dict[str, tuple[Schema, str]] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)

    def lookup(self, reference: str, base: str) -> tuple[Schema, str, str]:
        """Return the schema that a reference names, its base, and its short name."""
        target = urljoin(base, reference)
        file, _, pointer = target.removeprefix(BASE).partition("#")
        if file not in self.files:
            self.files[file] = json.loads((FOLDER / file).read_text(encoding="utf-8"))
        schema = self.files[file]
        for part in pointer.split("/")[1:]:
            schema = schema[part]
        return schema, target, pointer.rpartition("/")[2] or file.removesuffix(".schema.json")

    def kinds(self) -> str:
        """Return a section for every kind that people write, and one for every part that several kinds share."""
        sections = []
        for kind in READ_KINDS:
            schema, base, _ = self.lookup(f"{kind.lower()}.schema.json", BASE)
            if MARK in schema:
                self.refused.append((f"`kind: {kind}`", schema[MARK]))
                continue
            spec = schema["properties"]["spec"]
            # `metadata` is a part like others; its table comes with those.
            self.type_of(schema["properties"]["metadata"], base)
            sections.append(f"## {kind}\n\n{schema['description']}\n\n" + self.table(kind, spec, base))
        sections.append("## Shared parts\n\nWhat the tables above call by name.")
        done: set[str] = set()
        while waiting := [name for name in self.parts if name not in done]:
            done.add(waiting[0])
            schema, base = self.parts[waiting[0]]
            sections.append(f"### {waiting[0]}\n\n{schema['description']}\n\n" + self.table(waiting[0], schema, base))
        self._rules()
        return "\n\n".join(sections)

    def _rules(self) -> None:
        for file in sorted((FOLDER / "rules").glob("*.json")):
            rule = file.name.partition(".")[0]
            schema, base, _ = self.lookup(f"rules/{file.name}", BASE)
            if not any(name == f"`rule.{rule}`" for name, _ in self.refused):
                list(self.rows(schema, base, f"rule {rule}", ""))

    def table(self, owner: str, schema: Schema, base: str) -> str:
        """Return the table of fields of a schema."""
        lines = ["| field | value | needed | meaning |", "|---|---|---|---|"]
        for path, value, needed, meaning in self.rows(schema, base, owner, ""):
            lines.append(f"| `{path}` | {value} | {'yes' if needed else ''} | {escaped(meaning)} |")
        return "\n".join(lines)

    def rows(self, schema: Schema, base: str, owner: str, path: str) -> Iterator[tuple[str, str, bool, str]]:
        """Yield path, value, whether it is needed, and meaning of all fields below; note what is refused."""
        for name, sub in schema.get("properties", {}).items():
            at = f"{path}.{name}" if path else name
            yield from self._row(sub, base, owner, at, name in schema.get("required", ()))
        rest = schema.get("additionalProperties")
        if path and isinstance(rest, dict) and not self.is_part(rest, base):
            yield from self.rows(rest, base, owner, f"{path}.KEY")
        items = schema.get("items", {})
        if items and not self.is_part(items, base):
            yield from self.rows(items, base, owner, f"{path}[]")

    def _row(self, sub: Schema, base: str, owner: str, at: str, needed: bool) -> Iterator[tuple[str, str, bool, str]]:
        if MARK in sub:
            self.refused.append((f"`{owner}.{at}`", sub[MARK]))
            return
        self._refuse_values(sub, owner, at)
        self._refuse_values(sub.get("items", {}), owner, f"{at}[]")
        if "$ref" in sub:
            self._refuse_values(self.lookup(sub["$ref"], base)[0], owner, at)
        yield at, self.type_of(sub, base), needed, sub.get("description", "")
        if self.is_part(sub, base):
            return
        if "$ref" in sub and not sub["$ref"].startswith("rules/"):
            sub, base, _ = self.lookup(sub["$ref"], base)
        yield from self.rows(sub, base, owner, at)

    def _refuse_values(self, sub: Schema, owner: str, at: str) -> None:
        self.refused += [(f"`{owner}.{at}: {value}`", reason) for value, reason in sub.get(VALUES_MARK, {}).items()]
        if reason := sub.get("else", {}).get(MARK):
            self.refused.append((f"`{owner}.{at}` other than `{sub['if']['const']}`", reason))

    def is_part(self, schema: Schema, base: str) -> bool:
        """Tell whether a schema is described in a table of its own."""
        return "$ref" in schema and bool(self.lookup(schema["$ref"], base)[0].get("properties"))

    def type_of(self, schema: Schema, base: str) -> str:
        """Return what a value may be, in words."""
        if "$ref" in schema:
            return self._named(schema, base)
        if values := allowed(schema):
            return " ".join([", ".join(f"`{value}`" for value in values), *self._objects(schema)])
        types = schema.get("type", "object")
        found = [self._plain(t, schema, base) for t in ([types] if isinstance(types, str) else types)]
        return " or ".join(word for word in found if word)

    def _objects(self, schema: Schema) -> list[str]:
        return ["or mapping"] if "object" in schema.get("type", ()) else []

    def _plain(self, kind: str, schema: Schema, base: str) -> str:
        if kind == "array":
            return f"list of {self.type_of(schema['items'], base)}"
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"mapping to {self.type_of(schema['additionalProperties'], base)}"
        if kind == "object" and schema.get("properties") and all(MARK in s for s in schema["properties"].values()):
            return ""
        ends = [schema.get("minimum"), schema.get("maximum")] if kind in ("integer", "number") else [None, None]
        return NAMES[kind] + limits(*ends)

    def _named(self, schema: Schema, base: str) -> str:
        target, at, name = self.lookup(schema["$ref"], base)
        if name.startswith("rules/"):
            return f"[parameters]({name}.md)"
        if target.get("properties"):
            self.parts.setdefault(name, (target, at))
            return f"[{name}](#{name.lower()})"
        if name in QUANTITIES:
            return f"[{name}](#quantities)"
        if allowed(target) or target.get("type") not in ("string", None):
            return self.type_of(target, at)
        return f"[{name}](#names)" if target.get("type") == "string" else self.type_of(target, at)

    def names(self) -> str:
        """Return the table of the kinds of names."""
        common = self.lookup("common.schema.json", BASE)[0]["$defs"]
        rows = [
            f"| {name} | {escaped(schema['description'])} |"
            for name, schema in common.items()
            if schema.get("type") == "string" and "enum" not in schema and not name.startswith("mig")
        ]
        return "| name | is |\n|---|---|\n" + "\n".join(rows)

    def waiting(self) -> str:
        """Return the table of what is refused, by what it waits for."""
        grouped: dict[str, list[str]] = {}
        for name, reason in self.refused:
            grouped.setdefault(reason, []).append(name)
        rows = [f"| {reason} | {escaped(', '.join(names))} |" for reason, names in sorted(grouped.items())]
        return "| waits for | refused |\n|---|---|\n" + "\n".join(rows)


def allowed(schema: Schema) -> list[str]:
    """Return the values a schema lists, without those that are refused."""
    values = schema.get("enum") or schema.get("then", {}).get("enum") or []
    if "const" in schema:
        values = [schema["const"]]
    words = [str(v).lower() if isinstance(v, bool) else str(v) for v in values]
    return [word for word in words if word not in schema.get(VALUES_MARK, {})]


def limits(low: int | None, high: int | None) -> str:
    """Return the ends of a range in words."""
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    return f" from {low:,}" if low is not None else f" up to {high:,}" if high is not None else ""


def escaped(text: str) -> str:
    """Return a text for a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
