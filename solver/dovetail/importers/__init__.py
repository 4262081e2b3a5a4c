"""Importers: other formats in, documents out.  `dovetail.importers.table` lists them."""
