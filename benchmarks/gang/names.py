"""Names of a case as names that documents may carry, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NODE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?")


def labels(names: Iterable[str], fallback: str, taken: Iterable[str] = ()) -> Mapping[str, str]:
    """Return a DNS label per name: its own where it is one, else one made of it."""
    return _unique(names, _LABEL, fallback, set(taken))


def hosts(names: Iterable[str]) -> Mapping[str, str]:
    """Return a node's name per name."""
    return _unique(names, _NODE, "node", set())


def _unique(names: Iterable[str], good: re.Pattern[str], fallback: str, taken: set[str]) -> Mapping[str, str]:
    """Return a new name per name, in their own order: that of levels has a meaning."""
    found: dict[str, str] = {}
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if good.fullmatch(name) and name not in taken:
            found[name] = name
            taken.add(name)
    for name in wanted:
        if name not in found:
            found[name] = _made(name, fallback, taken)
            taken.add(found[name])
    return {name: found[name] for name in wanted}


def _made(name: str, fallback: str, taken: set[str]) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50] or fallback
    number, candidate = 0, stem
    while candidate in taken:
        number += 1
        candidate = f"{stem}-{number}"
    return candidate
