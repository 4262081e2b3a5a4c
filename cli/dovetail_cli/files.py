"""Files that a command writes: whole or not at all; devices, pipes and open streams are never replaced."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from dovetail.documents import ALL_KINDS, API_VERSION, READ_KINDS
from dovetail.importers.project import ImportedProject, OutputExists, write_project
from dovetail.replacing import replace_all
from dovetail_cli.exit_codes import Finding
from dovetail_cli.problems import CommandError, usage
from dovetail_cli.render.words import printable

_HEAD = 1 << 16  # bytes, in which the first document of a file says what it is
_KIND = re.compile(rf"""(?:^|[{{,\s])["']?kind["']?\s*:\s*["']?(?P<kind>{"|".join(ALL_KINDS)})\b""", re.MULTILINE)
_STREAM = re.compile(r"/dev/(?:std(?P<named>out|err)|fd/(?P<number>[0-9]{1,4}))")


def check_writable(file: str) -> None:
    """Refuse a file that can never be written, before any work is done for it."""
    if file == "-":
        raise usage("'-' is no file to write to", "-o prints a result, such as -o yaml; ./- is a file of that name")
    path = Path(file)
    folder = path.parent
    if os.path.isdir(path):
        raise usage(f"{printable(file or '(an empty name)')} is a directory")
    if _is_special(file):
        if not os.access(file, os.W_OK):
            raise usage(f"{printable(file)} may not be written to")
        return
    if not os.path.isdir(folder):
        raise usage(f"the directory {printable(str(folder))} does not exist")
    if not os.access(folder, os.W_OK):
        raise usage(f"the directory {printable(str(folder))} may not be written to")
    if (kind := _source_in(path)) is not None:
        raise usage(f"{printable(file)} holds a {kind} document, which no result replaces", "name another file")


def check_replaceable(file: str) -> None:
    """Refuse what `check_writable` does, and what is no file of its own: others are written beside it."""
    check_writable(file)
    if _is_special(file):
        raise usage(f"{printable(file)} is no regular file", "-o yaml prints the document")


def check_distinct(files: Iterable[str]) -> None:
    """Refuse two files of one run that are the same: one would replace the other. Devices and pipes may be."""
    seen: dict[str, str] = {}
    for file in files:
        real = os.path.realpath(file)
        if real in seen and not _is_special(file):
            named = printable(file) if file == seen[real] else f"{printable(seen[real])} and {printable(file)}"
            raise usage(f"two results of this run would be the same file: {named}", "give each a file of its own")
        seen[real] = file


def write(file: str, text: str | bytes) -> None:
    """Write a file by way of a temporary one beside it: a failure leaves the old file untouched.

    What is no regular file is written to as it is.
    """
    if not _is_special(file):
        return write_all({file: text})
    with writing(file), open(_descriptor(file) or file, "wb") as stream:
        stream.write(_bytes(text))
    return None


@contextmanager
def writing(target: str) -> Iterator[None]:
    """Turn a failure of the file system into one that names the file or directory that was asked for."""
    try:
        yield
    except OSError as error:
        raise unwritable(target, error) from error


def unwritable(target: str, error: OSError, hint: str | None = None) -> CommandError:
    """Return what ends a command that cannot write to a file, a directory or a stream."""
    return CommandError(Finding.INTERNAL, f"{printable(target)} cannot be written: {error.strerror}", hint)


def write_folder(project: ImportedProject, out: Path, *, overwrite: bool, older: str) -> tuple[Path, ...]:
    """Write the files of a directory, those of an `older` run replaced only where that is asked for."""
    try:
        with writing(str(out)):
            return write_project(project, out, overwrite=overwrite)
    except OutputExists as error:
        hint = f"--force replaces {older}" if error.replaceable else "name another directory"
        raise usage(f"{error.paths[0]} is in the way", hint) from None


def _source_in(path: Path) -> str | None:
    """Return the kind that a file names first where it is one that people write, such as a Cluster."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD).decode(errors="replace")
    except OSError:
        return None
    found = _KIND.search(head) if API_VERSION in head else None
    return found["kind"] if found and found["kind"] in READ_KINDS else None


def _is_special(file: str) -> bool:
    """Tell whether a file is a device, a pipe, a socket or one of this process's streams."""
    exists, regular = os.path.exists(file), os.path.isfile(file) or os.path.isdir(file)
    return _STREAM.fullmatch(file) is not None or (exists and not regular)


def _descriptor(file: str) -> int | None:
    """Return a copy of the open stream that a name stands for: opened anew it would begin at its start."""
    found = _STREAM.fullmatch(file)
    if found is None:
        return None
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return os.dup(int(found["number"]) if found["number"] else {"out": 1, "err": 2}[found["named"]])


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text


def write_all(texts: Mapping[str, str | bytes]) -> None:
    """Write files that belong together: complete on the disk before any is replaced, and then all are, or none."""
    ready: list[tuple[Path, Path]] = []
    file = ""
    try:
        for file, text in texts.items():
            # A link stays a link: what it leads to is replaced.
            path = Path(os.path.realpath(file))
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
            ready.append((Path(temporary), path))
            with os.fdopen(handle, "wb") as stream:
                stream.write(_bytes(text))
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, _mode(path))
        replace_all(ready)
    except OSError as error:
        raise unwritable(error.filename2 or file, error, "what was there before is untouched") from error
    finally:
        for made, _ in ready:
            with suppress(OSError):
                made.unlink(missing_ok=True)


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
