"""Reads a text into documents and checks each of them by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

from dovetail.documents.document import Document, is_json
from dovetail.documents.json_reader import read_json
from dovetail.documents.kinds import ALL_KINDS, API_VERSION, READ_KINDS
from dovetail.documents.messages import Translator, shown
from dovetail.documents.schema import Schemas, shipped_schemas
from dovetail.documents.source import LARGEST_FILE, MOST_FAULTS, Source, SourceLog, TooManyFaults, checked, decode
from dovetail.documents.unsupported import Finder, Use
from dovetail.documents.yaml_reader import read_yaml
from dovetail.faults import Fault, FaultLog, Position, nearest

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


class Checker:
    """Checks documents against the schemas of their kinds."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._finder = Finder(schemas)

    def faults(self, document: Document) -> list[Fault]:
        """Return what is wrong with a document by itself; its kind decides what is looked at."""
        if found := _kind_fault(document):
            return [found]
        kind = document.kind
        uses = self._finder.uses(kind, document.value)
        breaches = self._schemas.breaches(kind, document.value)
        covered = [use.path for use in uses if use.value is None]
        told = [breach for breach in breaches if not _is_within(breach.path, covered)]
        faults = [_not_yet(document, use) for use in uses[: MOST_FAULTS + 1]]
        faults += islice(Translator(document).faults(told), MOST_FAULTS + 1)
        return faults + list(_bad_names(document, faults))


@cache
def shipped_checker() -> Checker:
    """Return the checker with the schemas that dovetail ships."""
    return Checker(shipped_schemas())


def read_source(source: Source, log: FaultLog) -> list[Document]:
    """Return the documents of a text, not checked yet; empty ones are left out."""
    source_log = SourceLog(source, log)
    try:
        raws = read_json(source, source_log) if is_json(source.file) else read_yaml(source, source_log)
        documents = []
        for raw in raws:
            if isinstance(raw.value, dict):
                documents.append(Document(source, raw))
            elif raw.value is not None:
                source_log.add("DT1015", "a document must be a mapping", raw.start)
    except TooManyFaults:
        return []
    return documents


def check_all(documents: Iterable[Document], log: FaultLog, checker: Checker | None = None) -> list[Document]:
    """Check documents, and return those without faults; at most so many faults per file are told."""
    checker = checker or shipped_checker()
    good: list[Document] = []
    told: dict[str, int] = {}
    # Where reading found fault, the value is only a stand-in: what its schema says of it would be noise.
    stand_ins = {fault.position for fault in log.errors}
    for document in documents:
        if told.get(document.file, 0) > MOST_FAULTS:
            continue
        faults = [fault for fault in checker.faults(document) if fault.position not in stand_ins]
        if not faults:
            good.append(document)
            continue
        told[document.file] = told.get(document.file, 0) + len(faults)
        log.extend(faults[:MOST_FAULTS])
        if told[document.file] > MOST_FAULTS:
            log.append(document.fault("DT1115", "this file has more faults than are shown"))
    return good


def load_text(text: str, file: str) -> list[Document]:
    """Return the documents of a text, of any kind, read and checked one by one.

    Parameters
    ----------
    text
        YAML, or JSON when ``file`` ends in ``.json``.
    file
        The name shown in faults.

    Raises
    ------
    Refused
        With all faults of all documents.
    """
    log = FaultLog()
    source = _from_text(text, file, log)
    documents = check_all(read_source(source, log) if source else [], log)
    log.raise_if_errors()
    return documents


def load_file(path: str | Path) -> list[Document]:
    """Return the documents of a file, of any kind, read and checked one by one.

    Raises
    ------
    Refused
        With all faults of all documents.
    """
    log = FaultLog()
    source = source_of_file(Path(path), str(path), log)
    documents = check_all(read_source(source, log) if source else [], log)
    log.raise_if_errors()
    return documents


def source_of_file(path: Path, file: str, log: FaultLog) -> Source | None:
    """Return the text of a file, or None after adding a fault."""
    try:
        if not path.is_file():
            reason = "is a directory" if path.is_dir() else "does not exist" if not path.exists() else "is no file"
            log.add("DT1001", f"{file} {reason}")
            return None
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        log.add("DT1001", f"{file} cannot be read: {getattr(error, 'strerror', None) or 'not a path'}")
        return None
    return decode(data, file, log)


def _from_text(text: str, file: str, log: FaultLog) -> Source | None:
    try:
        return decode(text.encode("utf-8"), file, log)
    except UnicodeEncodeError as error:
        return checked(Source(file, text[: error.start] + "\x00"), log)


def _kind_fault(document: Document) -> Fault | None:
    """Return a fault when the document is of no known kind and version: nothing else can be judged then."""
    value = document.value
    for key in ("apiVersion", "kind"):
        if key not in value:
            example = API_VERSION if key == "apiVersion" else "Workload"
            return document.fault("DT1102", f"document lacks the field {key}", hint=f"write {key}: {example}")
    if value["apiVersion"] != API_VERSION:
        message = f"unknown apiVersion {shown(value['apiVersion'])}"
        return document.fault("DT1113", message, "apiVersion", hint=f"this version reads {API_VERSION}")
    if document.kind not in ALL_KINDS:
        near = nearest(document.kind, READ_KINDS)
        hint = f"did you mean {near}?" if near else f"known: {', '.join(READ_KINDS)}"
        return document.fault("DT1112", f"unknown kind {shown(value['kind'])}", "kind", hint=hint)
    return None


def _not_yet(document: Document, use: Use) -> Fault:
    hint = "leave it out; docs/reference/documents.md lists what is not supported yet"
    if not use.path:
        message = f"kind {document.kind} is not supported yet ({use.reason})"
        return document.fault("DT1900", message, "kind", hint=hint)
    what = shown(use.value) if use.value is not None else use.path[-1]
    what = f"this entry of {use.path[-2]}" if isinstance(what, int) else what
    message = f"{what} is not supported yet ({use.reason})"
    return document.fault("DT1900", message, *use.path, hint=hint, of_key=use.value is None)


def _is_within(path: tuple[str | int, ...], covered: list[tuple[str | int, ...]]) -> bool:
    return any(path[: len(outer)] == outer for outer in covered)


def _bad_names(document: Document, faults: list[Fault]) -> Iterator[Fault]:
    """Yield a fault for each part of the identity that is no DNS-1123 label and is not told of yet.

    Accelerators are named by product, such as ``H100-80GB``; their schema judges those names.
    """
    told = {fault.position for fault in faults}
    if document.kind == "Accelerator":
        return
    for key, value in (("name", document.name), ("namespace", document.namespace)):
        if value and not _LABEL.fullmatch(value):
            message = f"{shown(value)} is not a valid name"
            hint = "at most 63 of a-z, 0-9 and '-', starting and ending with a letter or digit"
            fault = document.fault("DT1302", message, "metadata", key, hint=hint)
            if fault.position not in told:
                yield fault


def duplicate_faults(documents: Iterable[Document]) -> Iterator[Fault]:
    """Yield a fault for each document whose identity another one of its kind has, naming both places."""
    first: dict[tuple[str, str], Document] = {}
    for document in sorted(documents, key=_place):
        other = first.setdefault((document.kind, document.identity), document)
        if other is not document:
            at: Position = other.key_position("metadata", "name")
            message = f"{document.kind} {document.identity} is given twice; the other one is at {at}"
            yield document.fault("DT1301", message, "metadata", "name", hint="rename or delete one of the two")


def _place(document: Document) -> tuple[str, int]:
    return document.file, document.start
