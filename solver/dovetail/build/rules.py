"""The parameters of rules, read from documents; `READERS` has one line per rule of `dovetail.rules.TABLE`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final, Literal

from dovetail.build.cursor import Cursor
from dovetail.quantities import parse_cpu, parse_gpus, parse_memory
from dovetail.rules import Rule
from dovetail.rules.admission import Admission
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec.cluster import GPU_LEVEL

_LIMITS: Final[Mapping[str, Callable[[object], int]]] = {
    "gpus": parse_gpus,
    "cpu": parse_cpu,
    "memory": partial(parse_memory, rounding="down"),
}


def _separate(here: Cursor) -> Rule:
    return Separate(by=here.raw("by"), at=here.raw("at"), label=here.raw("label"))


def _spread(here: Cursor) -> Rule:
    return Spread(over=here.raw("over"), max_per_domain=here.raw("maxPerDomain"), max_skew=here.raw("maxSkew"))


def _exclusive(here: Cursor) -> Rule:
    return Exclusive(at=here.raw("at"))


def _require(_: Cursor) -> Rule:
    return Require()


def _forbid(_: Cursor) -> Rule:
    return Forbid()


def _quota(here: Cursor) -> Rule:
    limits = tuple((key, value.quantity(_LIMITS[key], 0)) for key, value in here.fields("limit"))
    return Quota(limits=tuple(sorted(limits)), per=here.raw("per", "all"), label=here.raw("label"))


def _move(here: Cursor) -> Rule:
    return Move(max_moves=here.raw("maxMoves"), never=here.raw("never", False))


def _admission(_: Cursor) -> Rule:
    return Admission()


@dataclass(frozen=True, slots=True)
class Reader:
    """How a rule is read, and what it does with `match.nodes`.

    `level` is the parameter that names a level; `inside` are levels inside the node that it may name as well.
    """

    read: Callable[[Cursor], Rule]
    nodes: Literal["required", "honoured", "refused"]
    level: str | None = None
    inside: tuple[str, ...] = ()


READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "separate": Reader(_separate, "honoured", "at", (GPU_LEVEL,)),
        "spread": Reader(_spread, "honoured", "over"),
        "exclusive": Reader(_exclusive, "honoured", "at", (GPU_LEVEL,)),
        "require": Reader(_require, "required"),
        "forbid": Reader(_forbid, "required"),
        "quota": Reader(_quota, "refused"),
        "move": Reader(_move, "refused"),
        "admission": Reader(_admission, "refused"),
    }
)
