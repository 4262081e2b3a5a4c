"""Files that a command writes: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from dovetail_cli.exit_codes import Finding
from dovetail_cli.problems import CommandError, usage
from dovetail_cli.render.words import printable


def check_writable(file: str) -> None:
    """Refuse a file that can never be written, before any work is done for it."""
    path = Path(file)
    folder = path.parent
    if path.is_dir():
        raise usage(f"{printable(file)} is a directory")
    if not folder.is_dir():
        raise usage(f"the directory {printable(str(folder))} does not exist")
    if not os.access(folder, os.W_OK):
        raise usage(f"the directory {printable(str(folder))} may not be written to")


def write(file: str, text: str) -> None:
    """Write a file by way of a temporary one beside it: a failure leaves the old file untouched."""
    # A link stays a link: what it leads to is replaced.
    path = Path(os.path.realpath(file))
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        message = f"{printable(file)} cannot be written: {error.strerror}"
        raise CommandError(Finding.INTERNAL, message, "what was there before is untouched") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def _mode(path: Path) -> int:
    """Return the permissions of the file that is replaced, else those of any new file."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def run_file(out: str) -> str:
    """Return where times and logs of a run go: `plan.run.json` beside `plan.yaml`."""
    path = Path(out)
    return str(path.with_name(f"{path.stem}.run.json"))
