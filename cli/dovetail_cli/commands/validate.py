"""`dovetail validate [PATH]`."""

from __future__ import annotations

from collections import Counter

from dovetail.faults import Refused
from dovetail.testing import check_tests
from dovetail_cli import options, project, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.render import faults
from dovetail_cli.render.words import plural

_PLURALS = {"Policy": "Policies"}


def run(
    path: options.PathArgument = ".",
    output: options.Output = "table",
    as_of: options.AsOf = None,
    also: options.Also = None,
) -> ExitCode:
    """Check documents.

    Every fault of every document is told at once, each with its place, its code and what was probably meant. Never
    loads a solver. Formats: table, json, yaml, junit, github, gitlab, sarif.
    """
    shown = options.output(output, faults.FORMATS)
    wanted = options.renderings(also or (), faults.FORMATS)
    question = project.Question(options.as_of(as_of))
    try:
        found = project.judged(project.load(path, question))
        check_tests(found.documents, as_of=question.as_of)
    except Refused as refused:
        wrong = refused.faults
        streams.publish(lambda name, screen: faults.rendered(wrong, name), shown, wanted)
        return first_of([Finding.REFUSED])
    files = [document.file for document in found.documents.documents]
    streams.publish(lambda name, screen: faults.rendered(found.warnings, name, _verdict(found), files), shown, wanted)
    return ExitCode.DONE


def _verdict(found: project.Project) -> str:
    counts = Counter(document.kind for document in found.documents.documents)
    kinds = ", ".join(plural(count, kind, _PLURALS.get(kind)) for kind, count in counts.items())
    warnings = f"; {plural(len(found.warnings), 'warning')}" if found.warnings else ""
    return f"valid: {kinds}{warnings}"
