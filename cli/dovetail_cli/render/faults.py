"""Faults in every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dovetail.faults import CODES, Fault, render_fault, render_faults, to_document
from dovetail_cli.render import annotated, annotation, junit, machine
from dovetail_cli.render.words import plural, printable

FORMATS = ("table", "json", "yaml", "junit", *annotated.FORMATS)

_FEW = 3  # of one code that are told one by one; of more, so many are named


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


def refused(found: Sequence[Fault]) -> str:
    """Return the faults that end a command as text: errors one by one, after what is odd beside them."""
    errors = [fault for fault in found if fault.severity == "error"]
    odd = folded(fault for fault in found if fault.severity == "warning")
    return "\n".join(filter(None, [odd, rendered(errors, "table").rstrip("\n")]))


def folded(warnings: Iterable[Fault]) -> str:
    """Return warnings as text beside the answer of a command: those of a code that many have in one line."""
    by_code: dict[str, list[Fault]] = {}
    for fault in warnings:
        by_code.setdefault(fault.code, []).append(fault)
    return "\n".join(render_faults(each) if len(each) <= _FEW else _in_one_line(each) for each in by_code.values())


def _in_one_line(alike: Sequence[Fault]) -> str:
    """Return how many warnings of one code there are, and the first few that do not say the same."""
    first: dict[str, str] = {}
    for fault in alike:
        first.setdefault(fault.message, f"{fault.position}: {fault.message}" if fault.position else fault.message)
    told = "; ".join(list(first.values())[:_FEW])
    title = CODES[alike[0].code].title
    return f"warning {alike[0].code}: {title}, {len(alike):,} times: {told} ('dovetail validate' tells all)"


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
