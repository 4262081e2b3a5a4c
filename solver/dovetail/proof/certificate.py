"""What a certificate says: per tier a bound, and a tree of multipliers that shows it without a solver."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.documents.kinds import API_VERSION

Multipliers = Mapping[int, int]
"""Integers per position in the rows: those of the model, then the one of the target, then the cuts."""


EXACT: Final = "exact"
"""The kind of proofs that are about the exact model of the whole."""

FLEET: Final = "fleet"
"""The kind of proofs that are about counts per kind of node."""

FLEET_PRICED: Final = "fleet-priced"
"""The same, nodes of different prices told apart."""

FLEET_COST: Final = "fleet-cost"
"""The same, and what rules keep apart on single nodes set aside: small enough for tiers that count nodes in use."""


FLEET_IDLE: Final = "fleet-idle"
"""The same as `fleet-cost`, and what idle GPU is good for."""

FLEET_IDLE_SIDED: Final = "fleet-idle-sided"
"""The same as `fleet-priced`, and what idle GPU is good for."""

FLEET_STANDING: Final = "fleet-standing"
"""Counts per kind of node, and of what runs there how much stays where it is."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Cases of what one node holds: at most so many replicas of a shape, or more."""

    shape: int
    most: int


Forks = tuple[Fork | Multipliers, ...]
"""Cases of what a node of a block holds in preorder, as a `Tree`: forks, and the prices of each case."""

Prices = Mapping[int, Multipliers | Forks]
"""Per block, integers per position in it; or cases of what a node of it holds, each with its own."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Multipliers that bound the objective within a leaf's box.

    Parameters
    ----------
    denominator : what multipliers and prices are divided by.
    prices : for kinds of models that have blocks.
    """

    multipliers: Multipliers
    denominator: int = 1
    prices: Prices = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Branch:
    """An inner node: either a variable is at most `most`, or it is more."""

    variable: int
    most: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A row that every integer solution keeps, by mixed-integer rounding of rows before it.

    Parameters
    ----------
    multipliers : of the rows, divided by `denominator`, that are added up and then rounded.
    flipped : variables that are counted down from their upper bound; the others are counted up from their lower one.
    """

    multipliers: Multipliers
    denominator: int = 1
    flipped: tuple[int, ...] = ()


Tree = tuple[Branch | Leaf, ...]
"""The nodes in preorder: a branch, all below `at most`, all below `more`."""


@dataclass(frozen=True, slots=True)
class Proof:
    """That no plan passes a bound.

    Parameters
    ----------
    tier : the tier's name; empty where the proof shows that there is no plan at all.
    bound : in the tier's own units and sense.
    kind : which rows it is about, a key of `dovetail.proof.table.MODELS`.
    given : what earlier tiers are assumed to have reached.
    """

    tier: str
    bound: int
    tree: Tree
    kind: str = EXACT
    given: Mapping[str, int] = field(default_factory=dict)
    cuts: tuple[Cut, ...] = ()


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proofs that stand beside one plan; `inputs` is the plan's digest of what it depends on (S6.2).

    `infeasible` stands alone: a proof that there is no plan.
    """

    name: str
    inputs: str
    tiers: tuple[Proof, ...] = ()
    infeasible: Proof | None = None

    def of(self, tier: str) -> Proof | None:
        """Return the proof of a tier, None where there is none."""
        return next((proof for proof in self.tiers if proof.tier == tier), None)


def digest_of(text: str) -> str:
    """Return the digest of a certificate's text, as its plan tells it."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8')).hexdigest()}"


def write(certificate: Certificate) -> str:
    """Return a certificate's canonical text: JSON, a line per node of a tree; equal certificates give equal bytes."""
    head = {"apiVersion": API_VERSION, "kind": "Certificate", "metadata": {"name": certificate.name}}
    parts = [f'"inputs":{_json(certificate.inputs)}']
    if certificate.infeasible is not None:
        parts.append('"infeasible":' + _proof(certificate.infeasible))
    if certificate.tiers:
        parts.append('"tiers":[\n' + ",\n".join(map(_proof, certificate.tiers)) + "\n]")
    return _json(head)[:-1] + ',"spec":{\n' + ",\n".join(parts) + "\n}}\n"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def _proof(proof: Proof) -> str:
    """Return a proof's text; what would be empty is left out."""
    head: dict[str, Any] = {"tier": proof.tier} if proof.tier else {}
    head |= {"bound": proof.bound, "kind": proof.kind}
    if proof.given:
        head["given"] = dict(sorted(proof.given.items()))
    parts = [_json(head)[1:-1]]
    if proof.cuts:
        parts.append('"cuts":[\n' + ",\n".join(_json(_cut(cut)) for cut in proof.cuts) + "\n]")
    parts.append('"tree":[\n' + ",\n".join(map(_json, map(_node, proof.tree))) + "\n]")
    return "{" + ",".join(parts) + "}"


def _node(node: Branch | Leaf) -> dict[str, Any]:
    if isinstance(node, Branch):
        return {"variable": node.variable, "most": node.most}
    row: dict[str, Any] = {**_over(node.denominator), "multipliers": dict(_ascending(node.multipliers))}
    if node.prices:
        row["prices"] = {str(block): _prices(prices) for block, prices in sorted(node.prices.items())}
    return row


def _prices(prices: Multipliers | Forks) -> dict[str, int] | list[dict[str, int]]:
    if isinstance(prices, Mapping):
        return dict(_ascending(prices))
    return [
        {"shape": each.shape, "most": each.most} if isinstance(each, Fork) else dict(_ascending(each))
        for each in prices
    ]


def _cut(cut: Cut) -> dict[str, Any]:
    row: dict[str, Any] = {**_over(cut.denominator), "multipliers": dict(_ascending(cut.multipliers))}
    return {**row, "flipped": sorted(cut.flipped)} if cut.flipped else row


def _over(denominator: int) -> dict[str, int]:
    return {} if denominator == 1 else {"denominator": denominator}


def _ascending(multipliers: Multipliers) -> Iterator[tuple[str, int]]:
    return ((str(position), value) for position, value in sorted(multipliers.items()) if value)
