"""Finds the files of a project: patterns that stay inside its root, in an order of their own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from functools import cache
from pathlib import Path, PurePosixPath

MOST_FILES = 100_000
ENDINGS = (".yaml", ".yml", ".json")


def files_below(root: Path, unreadable: Callable[[OSError], None] | None = None) -> Iterator[str]:
    """Yield the paths of all files below a directory, relative, with ``/``.

    Hidden folders are left out, and linked folders are not entered, so that loops end.

    Parameters
    ----------
    unreadable
        Is told of folders that may not be opened.
    """
    for folder, folders, files in os.walk(root, onerror=unreadable, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        relative = Path(folder).relative_to(root)
        yield from ((relative / name).as_posix() for name in sorted(files))


def matching(paths: list[str], pattern: str) -> list[str]:
    """Return the paths that a pattern matches; ``**`` stands for any number of folders.

    As in a shell, a hidden file is matched by a pattern alone whose own last part begins with a dot.
    """
    parts = tuple(part for part in pattern.split("/") if part not in ("", "."))
    return [path for path in paths if _matches(tuple(path.split("/")), parts)]


def stays_inside(pattern: str) -> bool:
    """Whether a pattern is relative and never climbs."""
    pure = PurePosixPath(pattern)
    return not pure.is_absolute() and ".." not in pure.parts and "\\" not in pattern and "\0" not in pattern


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path, links followed, is below a directory; a loop of links is not."""
    try:
        return path.resolve(strict=True).is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def _matches(names: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Match folder by folder; the set of reached parts keeps many ``**`` linear."""
    reached = _past_stars({0}, parts)
    for name in names:
        after = {at for at in reached if at < len(parts) and parts[at] == "**"}
        after |= {at + 1 for at in reached if at < len(parts) and parts[at] != "**" and _fits(name, parts[at])}
        reached = _past_stars(after, parts)
    return len(parts) in reached


def _past_stars(reached: set[int], parts: tuple[str, ...]) -> set[int]:
    found = set(reached)
    for at in sorted(reached):
        while at < len(parts) and parts[at] == "**":
            at += 1
            found.add(at)
    return found


def _fits(name: str, part: str) -> bool:
    hidden = name.startswith(".") and not part.startswith(".")
    return not hidden and _compiled(part).match(name) is not None


@cache
def _compiled(part: str) -> re.Pattern[str]:
    return re.compile(translate(part))
