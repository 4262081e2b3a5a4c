"""Hard policies that contradict each other, found by arithmetic on the documents before any search (S4.4).

What is found is certain: no plan keeps all policies of a conflict (`impossible`), or none that does admits the
workload (`never`). What is not found is left to the search: these checks look for what people write, not for all.
"""

from dovetail.conflicts.find import Conflict, conflicts_of

__all__ = ["Conflict", "conflicts_of"]
