"""How a command that wanted something else tells that documents are refused."""

from __future__ import annotations

from dovetail.faults import Refused
from dovetail_cli import streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.render import faults


def tell(refused: Refused, shown: str) -> ExitCode:
    """Tell the faults: on stdout where a program reads the format asked for, else on stderr."""
    if shown in faults.FORMATS and shown != "table":
        streams.answer(faults.rendered(refused.faults, shown))
    else:
        streams.say(faults.refused(refused.faults))
    return first_of([Finding.REFUSED])
