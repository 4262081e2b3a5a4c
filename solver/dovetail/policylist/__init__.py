"""What policies a project has, whom they bind, where they come from, and what each costs (S4.2)."""

from dovetail.policylist.document import to_document
from dovetail.policylist.listing import LiftedBy, Listed, PolicyList, listing
from dovetail.policylist.price import GPUS, Interval, Price, Priced, Pricing, priceable, priced

__all__ = [
    "GPUS",
    "Interval",
    "LiftedBy",
    "Listed",
    "PolicyList",
    "Price",
    "Priced",
    "Pricing",
    "listing",
    "priceable",
    "priced",
    "to_document",
]
