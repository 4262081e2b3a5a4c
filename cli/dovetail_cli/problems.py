"""What ends a command early; `main` turns each into a message and an exit code."""

from __future__ import annotations

from dovetail_cli.exit_codes import Finding


class CommandError(Exception):
    """A command cannot go on.

    Parameters
    ----------
    finding : what kind of end this is; decides the exit code.
    message : one sentence for the user, without a final stop.
    hint : what to do about it.
    """

    def __init__(self, finding: Finding, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.finding = finding
        self.message = message
        self.hint = hint


def usage(message: str, hint: str | None = None) -> CommandError:
    """Return the error of a command line that makes no sense."""
    return CommandError(Finding.USAGE, message, hint)
