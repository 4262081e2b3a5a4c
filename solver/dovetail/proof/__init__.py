"""Certificates: why no plan can be better, in integers that anybody can add up again without a solver (S5.2)."""
