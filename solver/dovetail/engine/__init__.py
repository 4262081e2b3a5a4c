"""The engine: from problem to proved plan; the only place that imports a solver."""
