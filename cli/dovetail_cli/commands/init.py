"""`dovetail init [DIR]`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from dovetail_cli import files, streams
from dovetail_cli.example import FILES, KEPT
from dovetail_cli.exit_codes import ExitCode
from dovetail_cli.problems import usage
from dovetail_cli.render.words import printable

_Directory = Annotated[str, typer.Argument(metavar="DIR", help="Where to write; made if it does not exist.")]
_FALLBACK = "example"


def run(directory: _Directory = ".") -> ExitCode:
    """Write an example.

    A small project that plans at once: a cluster, three workloads, the policies of the pack `baseline`, a test, and a
    job for a build server. Nothing that exists is ever overwritten.
    """
    root = Path(directory)
    if os.path.exists(root) and not os.path.isdir(root):
        raise usage(f"{printable(directory)} is not a directory")
    taken = sorted(name for name in FILES if name not in KEPT and os.path.exists(root / name))
    if taken:
        raise usage(
            f"{printable(str(root / taken[0]))} exists already", "nothing was written; choose another directory"
        )
    name = _name(root)
    # What may stay as it is (KEPT) is left alone; everything else is new.
    written = {file: text for file, text in FILES.items() if not os.path.exists(root / file)}
    for file, text in written.items():
        target = root / file
        with files.writing(str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
        files.write(str(target), text.replace("{name}", name))
    listed = "\n".join(f"  {root / file}" for file in written)
    streams.answer(
        printable(f"wrote\n{listed}\nnext: dovetail plan {directory} --out {root / 'plan.yaml'}", keep="\n")
    )
    return ExitCode.DONE


def _name(root: Path) -> str:
    """Return the directory's name as a name for the project."""
    name = re.sub(r"[^a-z0-9-]+", "-", root.resolve().name.lower()).strip("-")
    return name[:40].strip("-") or _FALLBACK
