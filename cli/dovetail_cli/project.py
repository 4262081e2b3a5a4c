"""A project as a command sees it: its documents, what they mean, and what the command line adds to that."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dovetail.build import assemble, contradictions, declares_current
from dovetail.documents import Document, DocumentSet, load_file, load_project
from dovetail.faults import Fault, Position, Refused, nearest
from dovetail.plan import NameTaken, Plan, current_of, limited
from dovetail.spec import Current, Options, Spec
from dovetail_cli import streams
from dovetail_cli.plans import read_plan
from dovetail_cli.problems import usage
from dovetail_cli.render import faults
from dovetail_cli.render.words import printable

_SHIPPED = "dovetail:"


@dataclass(frozen=True, slots=True)
class Question:
    """What a command line asks about a project, beside its documents.

    Parameters
    ----------
    base : the plan to start from; what runs today, unless something else says that (S6.5).
    current : a file that says what runs today.
    options : limits that only this command line has; they are part of the digest (S6.2).
    """

    as_of: dt.date
    base: Plan | None = None
    current: str | None = None
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class Project:
    """Documents and what they mean."""

    documents: DocumentSet
    spec: Spec
    warnings: tuple[Fault, ...] = ()


def load(path: str, question: Question) -> Project:
    """Load a project and make its Spec, or raise `Refused` with all faults."""
    documents = load_project(path)
    try:
        built = assemble(documents, current=_current(documents, question), as_of=question.as_of)
    except Refused as refused:
        raise Refused((*documents.warnings, *refused.faults)) from None
    return Project(documents, _limited(built.spec, question.options), (*documents.warnings, *built.warnings))


def judged(project: Project) -> Project:
    """Return a project with what is odd about its policies together.

    Raises
    ------
    Refused
        With the conflicts of hard policies that no plan could keep, before anything is searched.
    """
    found = contradictions(project.documents, project.spec)
    errors = tuple(fault for fault in found if fault.severity == "error")
    if errors:
        raise Refused(errors)
    return replace(project, warnings=(*project.warnings, *found))


def tell_warnings(warnings: Sequence[Fault]) -> None:
    """Say on stderr what is odd about documents, as far as people read it there; `validate` tells all."""
    if warnings:
        streams.say(faults.folded(warnings))


def tell_of_another(plan: Plan | None, reference: str | None, project: Project) -> None:
    """Say on stderr that a plan is one of another project, as far as names tell that."""
    if plan is not None and plan.name != project.spec.name:
        streams.warn(f"{printable(reference or '')} is a plan of '{plan.name}', not of '{project.spec.name}'")


def _current(documents: DocumentSet, question: Question) -> Current | Document | None:
    """Return what tells what runs today where the documents do not: `--current`, else the base (S6.5)."""
    if question.current is not None:
        return _current_of_file(question.current)
    if question.base is not None and not declares_current(documents):
        return current_of(question.base)
    return None


def _current_of_file(file: str) -> Current | Document:
    if not os.path.isfile(file):
        return current_of(read_plan(file))
    found = load_file(file)
    kinds = {document.kind for document in found}
    if kinds == {"Plan"}:
        return current_of(read_plan(file))
    if len(found) != 1 or kinds != {"Placement"}:
        raise usage(f"--current {printable(file)} must hold one document, of kind Placement or Plan")
    return found[0]


def _limited(spec: Spec, options: Options) -> Spec:
    """Return a Spec with the limits of a command line as hard policies."""
    try:
        return limited(spec, Options(options.max_moves, tuple(sorted({_workload(spec, n) for n in options.pins}))))
    except NameTaken as error:
        raise usage(str(error)) from None


def _workload(spec: Spec, name: str) -> str:
    if name in spec.declared:
        return name
    near = nearest(name, spec.declared)
    raise usage(f"--pin {printable(name)}: there is no such workload", f"did you mean {near}?" if near else None)


class Places:
    """Where policies and workloads are written, for messages that point there."""

    def __init__(self, documents: DocumentSet | None) -> None:
        self._documents = documents

    def workload(self, identity: str) -> Position | None:
        """Return where a workload is written."""
        return self._of("Workload", identity)

    def policy(self, name: str) -> Position | None:
        """Return where a policy is written: its document, else its entry in a pack of the project's own."""
        return self._of("Policy", name) or next(self._in_packs(name), None)

    def _of(self, kind: str, identity: str) -> Position | None:
        found = (d for d in self._all(kind) if d.identity == identity)
        return next((d.key_position("metadata", "name") for d in found), None)

    def _in_packs(self, name: str) -> Iterator[Position]:
        for pack in self._all("PolicyPack"):
            if pack.file.startswith(_SHIPPED):
                continue
            for index, policy in enumerate(pack.spec.get("policies", ())):
                if policy.get("name") == name:
                    yield pack.key_position("spec", "policies", index, "name")

    def _all(self, kind: str) -> Iterable[Document]:
        return self._documents.of_kind(kind) if self._documents else ()
