"""Where the shipped schemas and policy packs are found.

An installed package carries them inside itself; a checkout has them at its root.
"""

from __future__ import annotations

import importlib.resources
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

__all__ = ["folder", "pack_names", "pack_text", "policies_folder", "schemas_folder"]


@cache
def folder(name: str) -> Traversable:
    """Return a folder of shipped data files.

    Raises
    ------
    FileNotFoundError
        When the installation lacks it.
    """
    package = importlib.resources.files("dovetail")
    for place in (package / name, Path(__file__).resolve().parents[2] / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(f"the installation of dovetail lacks its {name} folder")


def schemas_folder() -> Traversable:
    """Return the folder of the JSON Schemas."""
    return folder("schemas")


def policies_folder() -> Traversable:
    """Return the folder of the shipped policy packs."""
    return folder("policies")


def pack_names() -> tuple[str, ...]:
    """Return the names of the shipped policy packs, sorted; empty when the folder is missing."""
    try:
        files = policies_folder().iterdir()
    except FileNotFoundError:
        return ()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def pack_text(name: str) -> str:
    """Return the text of a shipped policy pack."""
    return (policies_folder() / f"{name}.yaml").read_text(encoding="utf-8")
