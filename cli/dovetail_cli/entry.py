"""Where the process of a command line begins: until the commands are loaded, Ctrl-C just ends it."""

from __future__ import annotations

import signal
from contextlib import suppress


def main() -> None:
    """Load the command line and run it; what is loaded here takes a while, and a traceback would say nothing."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dovetail_cli.main import main as run

    run()
