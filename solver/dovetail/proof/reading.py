"""Reads a certificate: anything that is none is refused with a fault at its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.collector import collector_paused
from dovetail.documents import Document, load_text
from dovetail.faults import FaultLog, Position
from dovetail.proof.certificate import Branch, Certificate, Cut, Fork, Forks, Leaf, Multipliers, Proof


def read(text: str, file: str) -> Certificate:
    """Return the certificate in a text.

    Parameters
    ----------
    text : JSON where `file` ends in `.json`, else YAML.
    file : the name shown in faults.

    Raises
    ------
    Refused
        With every fault of the text and of its schema, and for what is no certificate (DT2008).
    """
    documents = load_text(text, file)
    log = FaultLog()
    if len(documents) != 1 or documents[0].kind != "Certificate":
        kinds = ", ".join(document.kind for document in documents) or "nothing"
        message = f"a certificate is one document of kind Certificate; this file holds {kinds}"
        log.add("DT2008", message, Position(file, 1, 1))
        log.raise_if_errors()
    with collector_paused():
        return _certificate(documents[0])


def _certificate(document: Document) -> Certificate:
    log = FaultLog()
    spec = document.spec
    tiers: dict[str, Proof] = {}
    for number, row in enumerate(spec.get("tiers", ())):
        proof = _proof(document, log, row, ("spec", "tiers", number))
        if proof.tier in tiers:
            message = f"tier {proof.tier} has two proofs"
            log.append(document.fault("DT2008", message, "spec", "tiers", number, "tier"))
        tiers[proof.tier] = proof
    never = spec.get("infeasible")
    infeasible = None if never is None else _proof(document, log, never, ("spec", "infeasible"))
    log.raise_if_errors()
    return Certificate(document.name, spec["inputs"], tuple(tiers.values()), infeasible)


def _proof(document: Document, log: FaultLog, row: Mapping[str, Any], at: tuple[str | int, ...]) -> Proof:
    for number, node in enumerate(row["tree"]):
        if ("variable" in node) != ("most" in node) or ("variable" in node) == ("multipliers" in node):
            message = "a node of a tree has variable and most, or multipliers"
            log.append(document.fault("DT2008", message, *at, "tree", number))
    log.raise_if_errors()
    return Proof(
        tier=row.get("tier", ""),
        bound=int(row["bound"]),
        tree=tuple(map(_node, row["tree"])),
        kind=row["kind"],
        given={name: int(value) for name, value in row.get("given", {}).items()},
        cuts=tuple(map(_cut, row.get("cuts", ()))),
    )


def _node(row: Mapping[str, Any]) -> Branch | Leaf:
    if "variable" in row:
        return Branch(int(row["variable"]), int(row["most"]))
    prices = {int(block): _prices(found) for block, found in row.get("prices", {}).items()}
    return Leaf(_multipliers(row["multipliers"]), int(row.get("denominator", 1)), prices)


def _prices(found: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Multipliers | Forks:
    if isinstance(found, Mapping):
        return _multipliers(found)
    return tuple(Fork(int(row["shape"]), int(row["most"])) if "shape" in row else _multipliers(row) for row in found)


def _cut(row: Mapping[str, Any]) -> Cut:
    flipped = tuple(sorted(map(int, row.get("flipped", ()))))
    return Cut(_multipliers(row["multipliers"]), int(row.get("denominator", 1)), flipped)


def _multipliers(row: Mapping[str, Any]) -> Multipliers:
    return {int(position): int(value) for position, value in row.items()}
