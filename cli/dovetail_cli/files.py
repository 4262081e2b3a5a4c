"""Files that a command writes: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath

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


def write(file: str, text: str | bytes) -> None:
    """Write a file by way of a temporary one beside it: a failure leaves the old file untouched."""
    write_all({file: text})


def write_all(texts: Mapping[str, str | bytes]) -> None:
    """Write files that belong together: all are complete on the disk before the first one replaces an old one."""
    ready: list[tuple[str, Path]] = []
    file = ""
    try:
        for file, text in texts.items():
            # A link stays a link: what it leads to is replaced.
            path = Path(os.path.realpath(file))
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
            ready.append((temporary, path))
            with os.fdopen(handle, "wb") as stream:
                stream.write(text.encode("utf-8") if isinstance(text, str) else text)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, _mode(path))
        while ready:
            os.replace(*ready[0])
            del ready[0]
    except OSError as error:
        message = f"{printable(file)} cannot be written: {error.strerror}"
        raise CommandError(Finding.INTERNAL, message, "what was there before is untouched") from error
    finally:
        for temporary, _ in ready:
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


def certificate_file(plan: str) -> str:
    """Return where the certificate of a plan is: `plan.cert.json` beside `plan.yaml`; of `REV:path` likewise."""
    folder, slash, name = plan.rpartition("/")
    revision, colon, name = name.rpartition(":") if not slash else ("", "", name)
    return f"{folder}{slash}{revision}{colon}{PurePath(name).stem}.cert.json"


def remove_certificate(file: str) -> None:
    """Remove the certificate of a plan that was replaced by one without; anything else of that name stays."""
    path = Path(file)
    with suppress(OSError, UnicodeDecodeError):
        with path.open(encoding="utf-8") as stream:
            ours = '"kind":"Certificate"' in stream.readline(1000)
        if ours:
            path.unlink()
