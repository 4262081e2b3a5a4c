"""Limits of one planning run, which no document holds and which a plan therefore tells itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """What a command line adds to the documents.

    Parameters
    ----------
    max_moves : the most running replicas that may move, None for no such limit.
    pins : ids of the workloads of which no replica may move, sorted.
    """

    max_moves: int | None = None
    pins: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is any limit."""
        return self.max_moves is not None or bool(self.pins)
