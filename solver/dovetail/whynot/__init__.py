"""Why a workload is where it is, or is not admitted, in numbers; what was planned to tell that."""

from dovetail.whynot.barring import Bar, applying, barring
from dovetail.whynot.cuts import Cut, cuts_of
from dovetail.whynot.explanation import Explanation, to_document
from dovetail.whynot.here import Change, Elsewhere, Tried, Without, tried, without
from dovetail.whynot.modes import Shared, modes_of
from dovetail.whynot.shortage import Shortage, shortages
from dovetail.whynot.ways import Way, ways

__all__ = [
    "Bar",
    "Change",
    "Cut",
    "Elsewhere",
    "Explanation",
    "Shared",
    "Shortage",
    "Tried",
    "Way",
    "Without",
    "applying",
    "barring",
    "cuts_of",
    "modes_of",
    "shortages",
    "to_document",
    "tried",
    "ways",
    "without",
]
