"""MIG geometry: what one GPU can be cut into, as arithmetic on one product's table (S3.3)."""

from dovetail.mig.arrange import (
    affordable,
    arrange,
    beside,
    budgets,
    fits,
    layouts,
    legal,
    maximal,
    multisets,
    positional,
)
from dovetail.mig.geometry import Counts, Geometry, Instance, Profile, parse_instance

__all__ = [
    "Counts",
    "Geometry",
    "Instance",
    "Profile",
    "affordable",
    "arrange",
    "beside",
    "budgets",
    "fits",
    "layouts",
    "legal",
    "maximal",
    "multisets",
    "parse_instance",
    "positional",
]
