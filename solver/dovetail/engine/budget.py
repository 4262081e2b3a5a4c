"""What is left of a search's work and time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dovetail.engine.answer import Effort


@dataclass(slots=True)
class Budget:
    """Deterministic work left, and a deadline on the monotonic clock, None for none."""

    work: float
    deadline: float | None = None

    def seconds(self) -> float | None:
        """Return the seconds left, None without a ceiling."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def spent(self) -> bool:
        """Tell whether work or time has run out."""
        return self.work <= 0 or self.out_of_time()

    def out_of_time(self) -> bool:
        """Tell whether the ceiling in seconds is reached."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def hold_back(self, seconds: float) -> None:
        """End so many seconds earlier."""
        if self.deadline is not None:
            self.deadline -= seconds

    def effort(self, share: float = 1.0, workers: int = 1) -> Effort:
        """Return an effort that takes a share of what is left."""
        return Effort(max(self.work * share, 0.01), self.seconds(), workers)
