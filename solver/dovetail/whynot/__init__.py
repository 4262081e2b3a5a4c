"""Why a workload is not admitted, in numbers, and ways out that were planned."""

from dovetail.whynot.shortage import Shortage, binding, shortages
from dovetail.whynot.ways import Way, ways

__all__ = ["Shortage", "Way", "binding", "shortages", "ways"]
