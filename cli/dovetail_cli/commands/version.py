"""`dovetail version`."""

from __future__ import annotations

import platform

from dovetail import __version__
from dovetail_cli import streams
from dovetail_cli.exit_codes import ExitCode


def run() -> ExitCode:
    """Print the version of dovetail and of Python."""
    streams.answer(f"dovetail {__version__} (Python {platform.python_version()})")
    return ExitCode.DONE
