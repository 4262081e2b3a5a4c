"""How many can have a place each, where each kind may be on some hosts only: a matching of the most (Kuhn 1955)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


def matched(asking: Mapping[K, tuple[int, Collection[str]]], free: Mapping[str, int]) -> int:
    """Return how many have a place at the most.

    Parameters
    ----------
    asking : per kind, how many ask, and the hosts that they may be on.
    free : places by host.
    """
    matching = _Matching({kind: hosts for kind, (_, hosts) in asking.items()}, free)
    return sum(matching.place(kind) for kind, (count, _) in asking.items() for _ in range(count))


class _Matching(Generic[K]):
    """Who is on which host, as far as places were given."""

    def __init__(self, hosts: Mapping[K, Collection[str]], free: Mapping[str, int]) -> None:
        self._left = {name: count for name, count in free.items() if count}
        self._hosts = {kind: sorted(self._left.keys() & names) for kind, names in hosts.items()}
        self._on: defaultdict[str, Counter[K]] = defaultdict(Counter)

    def place(self, kind: K) -> bool:
        """Give a place to one of a kind, for which others may change to other hosts; tell whether there is one."""
        came: dict[str, tuple[K, str | None]] = {}  # who would come to a host, and from where
        seen, queue = {kind}, deque[tuple[K, str | None]]([(kind, None)])
        while queue:
            who, here = queue.popleft()
            for name in self._hosts[who]:
                if name in came:
                    continue
                came[name] = who, here
                if self._left[name]:
                    self._change(came, name)
                    return True
                others = [other for other, count in self._on[name].items() if count and other not in seen]
                seen.update(others)
                queue.extend((other, name) for other in others)
        return False

    def _change(self, came: Mapping[str, tuple[K, str | None]], name: str) -> None:
        """Let all change hosts by whom a place that is left on one comes to who asks."""
        self._left[name] -= 1
        there: str | None = name
        while there is not None:
            who, here = came[there]
            self._on[there][who] += 1
            if here is not None:
                self._on[here][who] -= 1
            there = here
