"""The built-in catalogue of accelerators (S1.4)."""

from dovetail.catalogue.catalogue import AcceleratorEntry, MemoryBasis, load

__all__ = ["AcceleratorEntry", "MemoryBasis", "load"]
