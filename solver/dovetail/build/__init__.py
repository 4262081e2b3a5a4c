"""From documents to a Spec: every reference resolved, every unit exact, all faults at once."""

from dovetail.build.build import Built, assemble, build, declares_current
from dovetail.build.contradictions import contradictions
from dovetail.build.origins import Origin, Origins, origins_of
from dovetail.build.placement import read_places

__all__ = [
    "Built",
    "Origin",
    "Origins",
    "assemble",
    "build",
    "contradictions",
    "declares_current",
    "origins_of",
    "read_places",
]
