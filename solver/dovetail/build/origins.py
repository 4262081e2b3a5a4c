"""Where the policies of a project come from: documents, packs, and what of packs was replaced or left out (S4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dovetail.build.cursor import Log, cursor
from dovetail.build.policies import Chosen, Source, chosen_policies
from dovetail.documents import DocumentSet
from dovetail.faults import Position


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one policy is written.

    Parameters
    ----------
    rule : the rule as the document has it.
    pack, version : the pack and its version; both empty for a document of its own.
    """

    name: str
    position: Position
    rule: Mapping[str, Any]
    description: str = ""
    pack: str = ""
    version: str = ""

    @property
    def kind(self) -> Literal["document", "pack"]:
        """Whether a pack brought the policy."""
        return "pack" if self.pack else "document"


@dataclass(frozen=True, slots=True)
class Origins:
    """Where policies come from: those that apply, by name, and those of packs that do not.

    Parameters
    ----------
    replaced : policies of packs that a document of the same name replaces.
    left_out : policies of packs that the project leaves out, with where it does.
    waivers : where each waiver is written, by name.
    """

    applied: Mapping[str, Origin]
    replaced: tuple[Origin, ...] = ()
    left_out: tuple[tuple[Origin, Position], ...] = ()
    waivers: Mapping[str, Position] | None = None


def origins_of(documents: DocumentSet) -> Origins:
    """Return where the policies of a project that builds come from."""
    log = Log()
    project = cursor(documents.project, log) if documents.project else None
    chosen: Chosen = chosen_policies(documents, project, log)
    return Origins(
        applied={name: _origin(source) for name, source in chosen.applied.items()},
        replaced=tuple(_origin(source) for source in chosen.replaced),
        left_out=tuple((_origin(source), place.document.position(*place.path)) for source, place in chosen.left_out),
        waivers={d.name: d.key_position("metadata", "name") for d in documents.of_kind("Waiver")},
    )


def _origin(source: Source) -> Origin:
    document, body = source.body.document, source.body
    path = (*body.path, "name") if source.pack else ("metadata", "name")
    return Origin(
        name=source.name,
        position=document.key_position(*path),
        rule=body.raw("rule"),
        description=body.raw("description", ""),
        pack=source.pack,
        version=document.spec.get("version", "") if source.pack else "",
    )
