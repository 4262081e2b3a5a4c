"""A plan in the formats of other programs; one module per format, listed in `table.py`."""
