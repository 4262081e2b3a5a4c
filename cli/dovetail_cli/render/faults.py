"""Faults in every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dovetail.faults import Fault, render_fault, render_faults, to_document
from dovetail_cli.render import annotated, annotation, junit, machine
from dovetail_cli.render.words import plural, printable

FORMATS = ("table", "json", "yaml", "junit", *annotated.FORMATS)


def rendered(faults: Sequence[Fault], name: str, verdict: str = "", files: Iterable[str] = ()) -> str:
    """Return faults in a format; as text, followed by a verdict (by default that they refuse the documents).

    Parameters
    ----------
    files : those that were read, as far as that is known; `junit` tells them as cases.
    """
    if name in annotated.FORMATS:
        return annotated.rendered(annotation.of_faults(faults), name)
    if name == "junit":
        return junit.rendered([junit.Suite("dovetail validate", tuple(_cases(faults, files)))], "dovetail validate")
    if name in ("json", "yaml"):
        return machine.rendered(to_document(faults), name)
    errors = sum(fault.severity == "error" for fault in faults)
    last = verdict or f"refused: {plural(errors, 'fault')}"
    return printable("\n".join(filter(None, (render_faults(faults), last))), keep="\n") + "\n"


def _cases(faults: Sequence[Fault], files: Iterable[str]) -> Iterable[junit.Case]:
    """Yield a case for each file; those without a fault that refuses them pass."""
    by_file: dict[str, list[Fault]] = {file: [] for file in files}
    for fault in faults:
        if fault.severity == "error":
            by_file.setdefault(fault.position.file if fault.position else "documents", []).append(fault)
    for file, found in sorted(by_file.items()):
        place = next((fault.position for fault in found), None)
        yield junit.Case(file, "documents", _trouble(found) if found else None, place)


def _trouble(faults: Sequence[Fault]) -> junit.Trouble:
    first = faults[0]
    more = f", and {plural(len(faults) - 1, 'more fault')}" if len(faults) > 1 else ""
    text = "\n".join(render_fault(fault) for fault in faults)
    return junit.Trouble("failure", first.code, first.message + more, text)
