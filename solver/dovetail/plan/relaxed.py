"""What a bound may ignore beside policies: rules and demands that no document names (S5.2)."""

from __future__ import annotations

from typing import Final

NODES: Final = "cpu, memory and resources of single nodes"
INSIDES: Final = "islands and sockets of single nodes"
MIX: Final = "mix"
TODAY: Final = "current state"
INSTANCES: Final = "which instances services are on"
MEMORY: Final = "share memory"
MODES: Final = "sharing modes"

UNNAMED: Final = frozenset({NODES, INSIDES, MIX, TODAY, INSTANCES, MEMORY, MODES})
"""The words for them, as plans write them in `relaxed`."""
