"""What a patch of a scenario is: one typed change to a project (S7.1)."""

from __future__ import annotations

from typing import Final

from dovetail.documents import DocumentSet
from dovetail.spec import Spec

Subject = tuple[str, str]
"""Kind and identity of the document that a patch changes; a project has one Cluster, so its name says nothing."""

CLUSTER: Final[Subject] = ("Cluster", "")


class Patch:
    """One change; each kind overrides one of the hooks, and none changes what it is given."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the change in words."""
        raise NotImplementedError

    @property
    def subject(self) -> Subject:
        """What is changed."""
        return CLUSTER

    def redeclared(self, documents: DocumentSet) -> DocumentSet:
        """Return the documents with the change."""
        return documents

    def beside(self, documents: DocumentSet) -> Patch:
        """Return the patch with what it needs to know of the documents that the Spec was made of."""
        return self

    def applied(self, spec: Spec) -> Spec:
        """Return the Spec with the change; raise `Unfit` where it does not fit."""
        return spec

    def settled(self, spec: Spec) -> None:
        """Raise `Unfit` where what is changed does not fit after all patches; the last one of a subject is asked."""
