"""Plans: the value, its canonical text, and what its inputs were (S6)."""
