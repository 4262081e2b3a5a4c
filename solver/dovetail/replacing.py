"""Several files put in their places: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class _Moved(NamedTuple):
    """A file that is in its place, and the one that was there before, under another name."""

    source: Path
    target: Path
    older: Path | None


def replace_all(moves: Iterable[tuple[Path, Path]]) -> None:
    """Move complete files to their places one by one, and take all of it back where one of them cannot be moved.

    What is replaced has a second name beside its new file until all is done. A file system without hard links has no
    second names: what was replaced there by then stays so.

    Parameters
    ----------
    moves : pairs of a file and its place, on one file system; no two of a kind.

    Raises
    ------
    OSError
        If a file cannot be moved; its place is the error's `filename2`.
    """
    done: list[_Moved] = []
    names: list[Path] = []
    try:
        for source, target in moves:
            names.append(source.with_name(f"{source.name}.older"))
            there = os.path.lexists(target)
            older = _second_name(target, names[-1]) if there else None
            os.replace(source, target)
            if older or not there:
                done.append(_Moved(source, target, older))
    except BaseException:
        for move in reversed(done):
            _take_back(move)
        raise
    finally:
        for name in names:
            with suppress(OSError):
                name.unlink(missing_ok=True)


def _second_name(file: Path, name: Path) -> Path | None:
    """Give a file a second name; None where it cannot have one."""
    with suppress(OSError):
        os.link(file, name, follow_symlinks=False)
        return name
    return None


def _take_back(move: _Moved) -> None:
    with suppress(OSError):
        if move.older:
            os.replace(move.older, move.target)
        else:
            os.replace(move.target, move.source)
