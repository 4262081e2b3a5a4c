"""Scenarios as a command line names them: a file, a document of the project, options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dovetail.documents import Document, DocumentSet, load_file
from dovetail.faults import Refused, nearest
from dovetail.whatif import Scenario, Spot, Step, read_scenario, step
from dovetail_cli.problems import CommandError, usage
from dovetail_cli.render.words import printable

_MOST = 1_000_000


def find(documents: DocumentSet, reference: str) -> Scenario:
    """Return the scenario that a file holds, or else the one of the project that has this name."""
    if os.path.isfile(reference):
        return read_scenario(_of_file(reference))
    named = {document.identity: document for document in documents.of_kind("Scenario")}
    if reference not in named:
        near = nearest(reference, named)
        hint = f"did you mean {near}?" if near else "give a file, or the name of a Scenario document of the project"
        raise usage(f"there is no scenario {printable(reference)}", hint)
    return read_scenario(named[reference])


def _of_file(file: str) -> Document:
    found = [document for document in load_file(file) if document.kind == "Scenario"]
    if len(found) != 1:
        raise usage(f"{printable(file)} holds {len(found)} documents of kind Scenario, and one is wanted")
    return found[0]


def with_options(scenario: Scenario, options: Mapping[str, Iterable[str] | None]) -> Scenario:
    """Return a scenario with the patches of options after its own.

    Parameters
    ----------
    options : the values of each option, by its name; applied in the order of `OPTIONS`.
    """
    steps = [made for name in OPTIONS for value in options.get(name) or () for made in _steps(name, value)]
    return replace(scenario, steps=(*scenario.steps, *steps))


def _steps(name: str, value: str) -> Iterator[Step]:
    text = f"{name} {printable(value)}"
    yield step(OPTIONS[name](value, text), Spot(option=text))


def _pair(value: str, text: str, example: str) -> tuple[str, str]:
    left, _, right = value.partition("=")
    if not left or not right:
        raise usage(f"{text}: expected {example}")
    return left, right


def _count(number: str, least: int, text: str) -> int:
    digits = number.lstrip("0") or number[:1]
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9 or not least <= int(digits) <= _MOST:
        raise usage(f"{text}: expected a number from {least} to {_MOST:,} after '='")
    return int(digits)


def _add(value: str, text: str) -> dict[str, Any]:
    group, number = _pair(value, text, "GROUP=+N, such as h100=+4")
    return {"add": {"group": group, "nodes": _count(number.removeprefix("+"), 1, text)}}


def _scale(value: str, text: str) -> dict[str, Any]:
    target, number = _pair(value, text, "WORKLOAD=N, or WORKLOAD.ROLE=N")
    workload, _, role = target.partition(".")
    named = {"workload": workload, "role": role} if role else {"workload": workload}
    return {"scale": {**named, "replicas": _count(number, 0, text)}}


def _domain(kind: str) -> Callable[[str, str], dict[str, Any]]:
    def read(value: str, text: str) -> dict[str, Any]:
        level, domain = _pair(value, text, "LEVEL=DOMAIN, such as rack=r3 or node=gpu-007")
        return {kind: {level: domain}}

    return read


OPTIONS: Mapping[str, Callable[[str, str], dict[str, Any]]] = MappingProxyType(
    {
        "--add": _add,
        "--drop-policy": lambda value, _: {"drop": {"policy": value}},
        "--drop": lambda value, _: {"drop": {"workload": value}},
        "--scale": _scale,
        "--fail": _domain("fail"),
        "--cordon": _domain("cordon"),
    }
)
"""How each option is read into a patch, in the order that options apply in, whatever theirs on the command line."""


def usage_of(refused: Refused) -> CommandError | None:
    """Return the error of options that do not fit the project; None where documents are refused."""
    first = refused.faults[0]
    if any(fault.position is not None or not fault.code.startswith("DT18") for fault in refused.faults):
        return None
    return usage(first.message, first.hint)
