"""What is left of a search's work and time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from dovetail.engine.solvers.answer import Effort

DEFAULT_WORK = 60.0  # units of deterministic work of a search that nobody limits


@dataclass(slots=True)
class Clock:
    """The clock's part in a search: `cut` tells whether it ended anything early, so that another run may differ."""

    cut: bool = False


@dataclass(slots=True)
class Budget:
    """Deterministic work left, and a deadline on the monotonic clock, None for none.

    Parameters
    ----------
    clock : that of the whole search.
    """

    work: float
    deadline: float | None = None
    clock: Clock = field(default_factory=Clock)

    def part(self, work: float, time_share: float = 1.0) -> Budget:
        """Return a budget of so much work for a part of the search, and of a share of the time that is left."""
        return Budget(work, self.moment(time_share), self.clock)

    def moment(self, share: float) -> float | None:
        """Return when a share of the time that is left will have passed, None without a deadline."""
        left = self.seconds()
        return self.deadline if left is None or share >= 1 else time.monotonic() + share * left

    def seconds(self) -> float | None:
        """Return the seconds left, None without a ceiling."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def units(self) -> float:
        """Return the units of work left, or the seconds where these are fewer: about as much (decision 0079)."""
        left = self.seconds()
        return self.work if left is None else min(self.work, left)

    def seconds_within(self, most: float) -> float:
        """Return the seconds that a last proof may take: those left, within reason."""
        left = self.seconds()
        return most if left is None else min(max(left, 1.0), most)

    def spent(self) -> bool:
        """Tell whether work or time has run out."""
        return self.work <= 0 or self.out_of_time()

    def seconds_before(self, moment: float | None) -> float:
        """Return how many seconds later than the ceiling a moment is, 0 where it is not."""
        return 0.0 if self.deadline is None or moment is None else max(0.0, moment - self.deadline)

    def out_of_time(self) -> bool:
        """Tell whether the ceiling in seconds is reached."""
        return self.late(self.deadline)

    def late(self, moment: float | None) -> bool:
        """Tell whether the clock has reached a moment, which ends something early."""
        late = moment is not None and time.monotonic() >= moment
        self.clock.cut |= late
        return late

    def hold_back(self, seconds: float) -> None:
        """End so many seconds earlier."""
        if self.deadline is not None:
            self.deadline -= seconds

    def effort(self, share: float = 1.0, workers: int = 1) -> Effort:
        """Return an effort that takes a share of what is left."""
        return Effort(max(self.work * share, 0.01), self.seconds(), workers)
