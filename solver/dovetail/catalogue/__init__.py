"""The built-in catalogue of accelerators (S1.4)."""

from dovetail.catalogue.catalogue import AcceleratorEntry, MemoryBasis, load
from dovetail.catalogue.partitions import all_sms, device_ids, geometries, offered

__all__ = ["AcceleratorEntry", "MemoryBasis", "all_sms", "device_ids", "geometries", "load", "offered"]
