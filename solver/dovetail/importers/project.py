"""What an importer makes: the files of a project, and how they reach the disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from dovetail.faults import Fault
from dovetail.replacing import replace_all


@dataclass(frozen=True, slots=True)
class ImportedProject:
    """The documents that an importer made.

    Parameters
    ----------
    files
        Text by file name; names are relative, with ``/`` between their parts.
    owned
        Every name that this importer may ever write.  When an older import is replaced, owned files
        that are no longer among `files` go, so that no document of the older import stays behind.
    warnings
        What of the input is not part of them although one might think so.
    """

    files: Mapping[str, str]
    owned: frozenset[str]
    warnings: tuple[Fault, ...] = ()


class OutputExists(Exception):
    """Files are in the way, and nobody said that they may be replaced, or something else is, which never is.

    Attributes
    ----------
    paths : tuple of Path
        What is in the way, sorted.
    replaceable : bool
        Whether all of them are files below a directory.
    """

    def __init__(self, paths: tuple[Path, ...], *, replaceable: bool) -> None:
        super().__init__(", ".join(map(str, paths)))
        self.paths = paths
        self.replaceable = replaceable


def write_project(project: ImportedProject, out: Path, *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write a project's files below a directory, which is made if it does not exist.

    Everything is first written to a scratch directory and then moved: a new directory appears whole or
    not at all, and in one that holds something already all files are replaced, or none.  Other files there
    are left alone.

    Returns
    -------
    tuple of Path
        The files written, sorted.

    Raises
    ------
    OutputExists
        If `out` is not a directory, if a directory in it has the name of a file of this project, or a file that of
        a directory, or if it holds such a file and `overwrite` is False; then nothing was changed.
    """
    existing = _in_the_way(project, out)
    ours = {out / name for name in project.owned | project.files.keys()}
    lasting = tuple(path for path in existing if path not in ours or os.path.isdir(path))
    if lasting:
        raise OutputExists(lasting, replaceable=False)
    if existing and not overwrite:
        raise OutputExists(existing, replaceable=True)
    into = os.path.isdir(out)
    # On the file system that the files will stay on, so that moving them is one step each.
    beside = out if into else out.parent
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=beside, prefix=".import-") as scratch:
        # A directory of its own inside: the scratch one is readable by its maker only.
        draft = Path(scratch) / "draft"
        _write_all(project.files, draft)
        if into:
            _move_into(draft, out, project)
        else:
            draft.rename(out)
    return tuple(sorted(out / name for name in project.files))


def _in_the_way(project: ImportedProject, out: Path) -> tuple[Path, ...]:
    if os.path.lexists(out) and not os.path.isdir(out):
        return (out,)
    names = project.owned | project.files.keys()
    files = {out / name for name in names if os.path.lexists(out / name)}
    folders = {out / folder for name in project.files for folder in PurePath(name).parents}
    return tuple(sorted(files | {path for path in folders if os.path.lexists(path) and not os.path.isdir(path)}))


def _write_all(files: Mapping[str, str], draft: Path) -> None:
    draft.mkdir()
    for name, text in files.items():
        path = draft / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def _move_into(draft: Path, out: Path, project: ImportedProject) -> None:
    """Move the files of a draft into a directory, and those of an older import that are no more out of it."""
    gone = [name for name in sorted(project.owned - project.files.keys()) if os.path.lexists(out / name)]
    for name in project.files:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
    for name in gone:
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
    replace_all(
        [
            *((draft / name, out / name) for name in sorted(project.files)),
            *((out / name, draft / name) for name in gone),
        ]
    )
