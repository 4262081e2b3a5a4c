"""Proofs that need no solver to check: cuts and trees of branches with integer multipliers."""
