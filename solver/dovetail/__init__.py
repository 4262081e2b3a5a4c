"""dovetail plans GPU clusters from declarative policy, and proves how good the plan is."""

__version__ = "0.1.0"
