"""Faults in every format."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.faults import Fault, render_faults, to_document
from dovetail_cli.render import github, machine
from dovetail_cli.render.words import plural, printable

FORMATS = ("table", "json", "yaml", "github")


def rendered(faults: Sequence[Fault], name: str, verdict: str = "") -> str:
    """Return faults in a format; as text, followed by a verdict (by default that they refuse the documents)."""
    if name == "github":
        return github.of_faults(faults)
    if name in ("json", "yaml"):
        return machine.rendered(to_document(faults), name)
    errors = sum(fault.severity == "error" for fault in faults)
    last = verdict or f"refused: {plural(errors, 'fault')}"
    return printable("\n".join(filter(None, (render_faults(faults), last))), keep="\n") + "\n"
