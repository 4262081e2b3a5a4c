"""The process in which solvers run, and what is left of a search whose process ended."""
