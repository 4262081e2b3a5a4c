"""`dovetail validate [PATH]`."""

from __future__ import annotations

from collections import Counter

from dovetail.faults import Fault, Refused, render_faults, to_document
from dovetail_cli import options, project, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.render import annotations, machine
from dovetail_cli.render.words import plural, printable

FORMATS = ("table", "json", "yaml", "github")


def run(
    path: options.PathArgument = ".",
    output: options.Output = "table",
    as_of: options.AsOf = None,
    also: options.Also = None,
) -> ExitCode:
    """Check documents.

    Every fault of every document is told at once, each with its place, its code and what was probably meant. Never
    loads a solver. Formats: table, json, yaml, github.
    """
    wanted = options.renderings(also or (), FORMATS)
    shown = options.output(output, FORMATS)
    question = project.Question(options.as_of(as_of))
    try:
        found = project.load(path, question)
    except Refused as refused:
        streams.publish(lambda name: _rendered(name, refused.faults, ""), shown, wanted)
        return first_of([Finding.REFUSED])
    streams.publish(lambda name: _rendered(name, found.warnings, _verdict(found)), shown, wanted)
    return ExitCode.DONE


def _rendered(name: str, faults: tuple[Fault, ...], verdict: str) -> str:
    if name == "table":
        errors = sum(fault.severity == "error" for fault in faults)
        verdict = verdict or f"refused: {plural(errors, 'fault')}"
        return printable("\n".join(filter(None, (render_faults(faults), verdict))), keep="\n") + "\n"
    if name == "github":
        return annotations.of_faults(faults)
    return machine.rendered(to_document(faults), name)


def _verdict(found: project.Project) -> str:
    counts = Counter(document.kind for document in found.documents.documents)
    kinds = ", ".join(plural(count, kind, _PLURALS.get(kind)) for kind, count in counts.items())
    warnings = f", {plural(len(found.warnings), 'warning')}" if found.warnings else ""
    return f"valid: {kinds}{warnings}"


_PLURALS = {"Policy": "Policies"}
