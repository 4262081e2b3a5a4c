"""Loads a project: its file, the documents it names, its policy packs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from dovetail import resources
from dovetail.documents.document import Document
from dovetail.documents.kinds import API_VERSION, READ_KINDS, WRITTEN_KINDS
from dovetail.documents.paths import ENDINGS, MOST_FILES, files_below, is_inside, matching, stays_inside
from dovetail.documents.reading import check_all, duplicate_faults, read_source, source_of_file
from dovetail.documents.source import Source
from dovetail.faults import Fault, FaultLog, Position, nearest

PROJECT_FILE: Final = "dovetail.yaml"
SHIPPED: Final = "dovetail:policies/"
"""Stands before the file names of shipped packs in faults."""

_KIND_LINE: Final = re.compile(r"^kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)
_ANY_KIND: Final = re.compile(rf"kind[\"']?[ \t]*:[ \t]*[\"']?(?:{'|'.join(READ_KINDS)})\b")


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """All documents of a project, packs included, each checked by itself.

    Parameters
    ----------
    documents
        In canonical order: by kind, namespace, name; never by file.
    root
        The directory that paths are relative to.
    warnings
        Faults that do not refuse the project.
    """

    documents: tuple[Document, ...]
    root: Path
    warnings: tuple[Fault, ...] = ()

    def of_kind(self, kind: str) -> tuple[Document, ...]:
        """Return the documents of one kind, in canonical order."""
        return tuple(document for document in self.documents if document.kind == kind)

    def find(self, kind: str, name: str, namespace: str | None = None) -> Document | None:
        """Return one document by its identity."""
        wanted = (kind, namespace, name)
        return next((d for d in self.documents if (d.kind, d.namespace, d.name) == wanted), None)

    @property
    def project(self) -> Document | None:
        """The Project document, where there is one."""
        found = self.of_kind("Project")
        return found[0] if found else None


def load_project(path: str | Path) -> DocumentSet:
    """Load a directory with a ``dovetail.yaml``, a directory without, or a single file.

    A ``dovetail.yaml`` with a Project may be given itself. Where there is none, every YAML and JSON file directly in
    the directory is read that holds documents of ours; foreign documents in them are left alone. What dovetail writes
    (plans and reports) is never read here.

    Raises
    ------
    Refused
        With all faults of all documents together.
    """
    loader = _Loader(Path(path), str(path))
    documents = loader.load()
    loader.log.raise_if_errors()
    return DocumentSet(tuple(sorted(documents, key=_canonical)), loader.root, loader.log.warnings)


def _canonical(document: Document) -> tuple[int, str, str, str]:
    return READ_KINDS.index(document.kind), document.namespace or "", document.name, document.file


class _Loader:
    """Loads one project; the log holds what is wrong with it."""

    def __init__(self, path: Path, shown: str) -> None:
        self.log = FaultLog()
        self._file = None if os.path.isdir(path) else path
        self.root = path if self._file is None else path.parent
        self._given = shown
        self._left_out: set[str] = set()
        self._shown = shown if self._file is None else Path(shown).parent.as_posix()

    def load(self) -> list[Document]:
        """Return the documents without faults."""
        documents = self._raw()
        if not documents and not self.log.errors:
            hint = "a plan is given to show, diff and verify" if "Plan" in self._left_out else None
            self.log.add("DT1016", f"no documents found in {self._given}", hint=hint)
        documents += list(self._packs(documents))
        self.log.extend(duplicate_faults(documents))
        self._check_one_project(documents)
        return check_all(documents, self.log)

    def _raw(self) -> list[Document]:
        if self._file is not None:
            documents = self._read(self._file, self._given)
            return self._followed(documents) if self._file.name == PROJECT_FILE else documents
        if os.path.lexists(self.root / PROJECT_FILE):
            documents = self._read(self.root / PROJECT_FILE, self._named(PROJECT_FILE))
            if self.log.errors or _projects(documents):
                return self._followed(documents)
            if not documents:
                message = f"{self._named(PROJECT_FILE)} is empty"
                hint = "all documents that lie in its directory are read, as if it were not there"
                self.log.add("DT1902", message, hint=hint, severity="warning")
        return self._not_followed(self._loose_documents())

    def _read(self, path: Path, shown: str) -> list[Document]:
        source = source_of_file(path, shown, self.log)
        if source is None:
            return []
        if _is_written(source):
            self._left_out.update(_KIND_LINE.findall(source.text))
            return []
        documents = read_source(source, self.log)
        self._left_out.update(document.kind for document in documents if document.kind in WRITTEN_KINDS)
        return [document for document in documents if document.kind not in WRITTEN_KINDS]

    def _named(self, relative: str) -> str:
        return relative if self._shown == "." else (Path(self._shown) / relative).as_posix()

    def _followed(self, documents: list[Document]) -> list[Document]:
        """Return the documents of a project file with those of the files that its Project names."""
        projects = _projects(documents)
        present = list(files_below(self.root, self._unreadable)) if projects else []
        chosen = {path for project in projects for path in self._chosen(project, present)}
        for relative in sorted(chosen - {PROJECT_FILE}):
            documents += self._read(self.root / relative, self._named(relative))
        return documents

    def _not_followed(self, documents: list[Document]) -> list[Document]:
        """Return documents that lay in a directory; a Project among them that names files elsewhere is refused."""
        for project in _projects(documents):
            named = [pattern for _, pattern in _patterns(project) if stays_inside(pattern)]
            present = list(islice(files_below(self.root), MOST_FILES)) if named else []
            found = {path for pattern in named for path in _documents_of(present, pattern)}
            if left := sorted(path for path in found if "/" in path):
                message = f"{left[0]} and {len(left) - 1} more" if len(left) > 1 else left[0]
                hint = f"a Project names files in {PROJECT_FILE} alone"
                self.log.append(project.fault("DT1021", f"not read: {message}", "spec", "documents", hint=hint))
        return documents

    def _unreadable(self, error: OSError) -> None:
        shown = self._named(Path(error.filename).relative_to(self.root).as_posix())
        self.log.add("DT1001", f"{shown} cannot be read: {error.strerror}")

    def _chosen(self, project: Document, present: list[str]) -> Iterator[str]:
        """Yield the files that the project's patterns name; add faults for patterns that lead outside."""
        if len(present) > MOST_FILES:
            self.log.append(project.fault("DT1020", f"the directory holds more than {MOST_FILES} files"))
            return
        for index, pattern in _patterns(project):
            where = ("spec", "documents", index)
            if not stays_inside(pattern):
                message = f"{pattern[:60]} leads outside the project"
                self.log.append(project.fault("DT1017", message, *where))
                continue
            found = _documents_of(present, pattern)
            if not found:
                message = f"no file matches {pattern[:60]}"
                self.log.append(project.fault("DT1901", message, *where, severity="warning"))
            for path in found:
                if is_inside(self.root / path, self.root):
                    yield path
                else:
                    self.log.append(project.fault("DT1017", f"{path} leads outside the project", *where))

    def _loose_documents(self) -> list[Document]:
        documents: list[Document] = []
        try:
            found = sorted(os.listdir(self.root))
        except OSError as error:
            self.log.add("DT1001", f"{self._given} cannot be read: {error.strerror}")
            return documents
        for path in (self.root / name for name in found if name.endswith(ENDINGS) and not name.startswith(".")):
            if os.path.exists(path) and not is_inside(path, self.root):
                self.log.add("DT1017", f"{self._named(path.name)} leads outside the directory")
                continue
            source = source_of_file(path, self._named(path.name), self.log)
            if source is not None and _holds_ours(source) and not _is_written(source):
                documents += [d for d in read_source(source, self.log) if _is_ours(d)]
        return documents

    def _packs(self, documents: list[Document]) -> Iterator[Document]:
        own = {document.name for document in documents if document.kind == "PolicyPack"}
        files = {document.file for document in documents}
        for project in documents:
            named = project.spec.get("packs") if project.kind == "Project" else None
            packs = named if isinstance(named, list) else []
            for index, pack in enumerate(packs):
                if not isinstance(pack, str) or pack in own or pack in packs[:index]:
                    continue
                for document in self._pack(project, index, pack):
                    if document.file not in files:
                        yield document

    def _pack(self, project: Document, index: int, pack: str) -> list[Document]:
        """Return the documents of a shipped pack."""
        if pack in resources.pack_names():
            return read_source(Source(f"{SHIPPED}{pack}.yaml", resources.pack_text(pack)), self.log)
        near = nearest(pack, resources.pack_names())
        hint = f"did you mean {near}?" if near else f"shipped: {', '.join(resources.pack_names())}"
        if pack.endswith(ENDINGS):
            hint = "name the file under `documents`, and here the PolicyPack document that it holds"
        message = f"unknown policy pack {pack[:60]}"
        self.log.append(project.fault("DT1018", message, "spec", "packs", index, hint=hint))
        return []

    def _check_one_project(self, documents: Iterable[Document]) -> None:
        projects = _projects(documents)
        for other in projects[1:]:
            at: Position = projects[0].position()
            self.log.append(other.fault("DT1303", f"there is another Project at {at}", "kind"))


def _projects(documents: Iterable[Document]) -> list[Document]:
    return [document for document in documents if document.kind == "Project"]


def _patterns(project: Document) -> Iterator[tuple[int, str]]:
    """Yield the patterns of a Project that are text, each with its position."""
    patterns = project.spec.get("documents")
    for index, pattern in enumerate(patterns if isinstance(patterns, list) else ()):
        if isinstance(pattern, str):
            yield index, pattern


def _documents_of(present: list[str], pattern: str) -> list[str]:
    """Return the files that a pattern matches and that may hold documents."""
    return [path for path in matching(present, pattern) if path.endswith(ENDINGS)]


def _is_written(source: Source) -> bool:
    """Whether all documents of a YAML text are of kinds that dovetail writes; seen without parsing it."""
    kinds = set(_KIND_LINE.findall(source.text))
    return bool(kinds) and kinds <= set(WRITTEN_KINDS)


def _holds_ours(source: Source) -> bool:
    return API_VERSION.split("/")[0] + "/" in source.text or _ANY_KIND.search(source.text) is not None


def _is_ours(document: Document) -> bool:
    """Whether a document is meant for dovetail: by its version, or by its kind where it has no version."""
    version = document.value.get("apiVersion")
    if document.kind in WRITTEN_KINDS:
        return False
    if isinstance(version, str):
        return version.startswith("dovetail")
    return document.kind in READ_KINDS
