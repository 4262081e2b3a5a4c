"""The verifier: Spec and plan in, every check recomputed, no solver."""
