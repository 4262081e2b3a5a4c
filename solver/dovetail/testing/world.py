"""The world of a test: documents of its own in place of the project's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dovetail.documents import Document, DocumentSet, load_file
from dovetail.documents.kinds import READ_KINDS
from dovetail.documents.paths import ENDINGS, files_below, is_inside, matching, stays_inside
from dovetail.documents.reading import duplicate_faults
from dovetail.faults import FaultLog, Refused
from dovetail.testing.reading import PolicyTest
from dovetail.whatif import SetDocument, Spot, Unfit

_OUSTS: Final = MappingProxyType(
    {
        "Cluster": ("Cluster", "Placement"),
        "Workload": ("Workload", "Placement", "Waiver"),
        "Placement": ("Placement",),
    }
)
"""What of the project a given document of a kind leaves out: the others of its kind, and what speaks of those."""

_KINDS: Final = ("Cluster", "Accelerator", "Workload", "Policy", "Waiver", "Objective", "Placement")
_ASIDE: Final = ("Scenario", "Sweep", "PolicyTest")


def world_of(documents: DocumentSet, test: PolicyTest, log: FaultLog) -> DocumentSet:
    """Return the documents that the cases of a test start from; what is wrong with those given goes to the log.

    The cluster, the workloads and what runs today are those given, where any are; everything else is the project's,
    unless a document of the same kind and name is given. Policies that are not under test take no part.
    """
    given = [*_of_files(documents.root, test, log), *_inline(test)]
    log.extend(duplicate_faults(given))
    ousted = {kind for document in given for kind in _OUSTS.get(document.kind, ())}
    replaced = {(document.kind, document.identity) for document in given}
    kept = [
        document
        for document in documents.documents
        if document.kind not in ousted and (document.kind, document.identity) not in replaced
    ]
    found = [document for document in (*kept, *given) if _takes_part(document, test)]
    return replace(documents, documents=tuple(sorted(found, key=_canonical)))


def _canonical(document: Document) -> tuple[int, str, str]:
    return READ_KINDS.index(document.kind), document.namespace or "", document.name


def _takes_part(document: Document, test: PolicyTest) -> bool:
    if document.kind in _ASIDE:
        return False
    if test.policies is None:
        return True
    if document.kind == "Policy":
        return document.name in test.policies
    return document.kind != "Waiver" or document.spec.get("policy") in test.policies


def _inline(test: PolicyTest) -> Iterator[Document]:
    for index, row in enumerate(test.document.spec.get("documents", ())):
        yield SetDocument(test.document, ("spec", "documents", index), row)


def _of_files(root: Path, test: PolicyTest, log: FaultLog) -> Iterator[Document]:
    present = list(files_below(root)) if test.given else []
    read: set[str] = set()
    for index, pattern in enumerate(test.given):
        spot = test.spot / "given" / index
        found = (
            [path for path in matching(present, pattern) if path.endswith(ENDINGS)] if stays_inside(pattern) else []
        )
        if not found:
            log.append(spot.fault(Unfit("DT1811", f"no file of the project matches {pattern[:60]}")))
        for path in found:
            if not is_inside(root / path, root):
                log.append(spot.fault(Unfit("DT1811", f"{path} leads outside the project")))
            elif path not in read:
                read.add(path)
                yield from _of_file(root / path, spot, log)


def _of_file(path: Path, spot: Spot, log: FaultLog) -> Iterator[Document]:
    try:
        documents = load_file(path)
    except Refused as refused:
        log.extend(refused.faults)
        return
    for document in documents:
        if document.kind in _KINDS:
            yield document
        else:
            hint = f"a world is made of {', '.join(_KINDS)}"
            log.append(spot.fault(Unfit("DT1812", f"{path} holds a document of kind {document.kind}", hint=hint)))
