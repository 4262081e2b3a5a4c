"""In which domain of every level a node lies, also where a case does not say it for every level.

Domains are a tree: a domain lies in one domain of every outer level, and all of it does. So a node that says nothing
of a level lies where others of its next inner domain lie. Where no other tells either, that inner domain, or the node
that is in none, stands for itself at the level: it counts, but it is no domain that could be asked for. An id that
lies in several outer domains names one domain in each of them, as a domain is its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.gang.case import Host

_STANDS = "alone:"  # before what stands for a domain


def planted(levels: Sequence[str], hosts: Sequence[Host]) -> tuple[Host, ...]:
    """Return nodes with their domains of all levels.

    Parameters
    ----------
    levels : outermost first.
    hosts : with the domains that a case tells.
    """
    inside, outside = [f"{_STANDS}{host.name}" for host in hosts], [""] * len(hosts)
    told: dict[str, list[str | None]] = {}
    home: dict[str, list[str]] = {}
    for level in reversed(levels):
        told[level] = _inferred([host.domain.get(level) for host in hosts], inside)
        inside = [f"{_STANDS}{inner}" if own is None else own for own, inner in zip(told[level], inside, strict=True)]
        home[level] = inside
    for level in levels:
        home[level] = outside = _apart(home[level], outside)
    found = []
    for index, host in enumerate(hosts):
        homes = {level: home[level][index] for level in levels}
        domain = {level: homes[level] for level in levels if told[level][index] is not None}
        found.append(replace(host, domain={**host.domain, **domain}, homes=homes))
    return tuple(found)


def _inferred(told: Sequence[str | None], inside: Sequence[str]) -> list[str | None]:
    """Return domains of a level, also of nodes that tell none and whose inner domain lies in one, and only one."""
    around: dict[str, set[str]] = {}
    for domain, inner in zip(told, inside, strict=True):
        if domain is not None:
            around.setdefault(inner, set()).add(domain)
    only = {inner: next(iter(domains)) for inner, domains in around.items() if len(domains) == 1}
    return [only.get(inner) if domain is None else domain for domain, inner in zip(told, inside, strict=True)]


def _apart(homes: Sequence[str], outside: Sequence[str]) -> list[str]:
    """Return homes of a level that differ where the homes around them do."""
    around: dict[str, set[str]] = {}
    for home, outer in zip(homes, outside, strict=True):
        around.setdefault(home, set()).add(outer)
    pairs = zip(homes, outside, strict=True)
    return [f"{outer} > {home}" if len(around[home]) > 1 else home for home, outer in pairs]
