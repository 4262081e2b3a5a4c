"""The built-in catalogue of accelerators (S1.4)."""

from dovetail.catalogue.catalogue import AcceleratorEntry, MemoryBasis, load
from dovetail.catalogue.partitions import geometries, offered

__all__ = ["AcceleratorEntry", "MemoryBasis", "geometries", "load", "offered"]
