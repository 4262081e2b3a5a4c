"""Gangs over classes of alike domains: all of them placed by one small model, then settled node by node."""
