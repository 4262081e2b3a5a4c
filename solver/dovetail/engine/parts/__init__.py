"""Parts of the cluster planned anew: which, as what jobs, and what becomes of their answers."""
