"""Column generation over node patterns: all interchangeable nodes of a fleet planned at once."""
