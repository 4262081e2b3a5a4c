"""From documents to a Spec: every reference resolved, every unit exact, all faults at once."""

from dovetail.build.build import Built, assemble, build, current_from, declares_current

__all__ = ["Built", "assemble", "build", "current_from", "declares_current"]
