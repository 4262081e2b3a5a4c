"""The exact rows of a Problem, or of any part of it, and the solutions they speak of, without any solver."""
