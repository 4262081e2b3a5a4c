"""Bounds on whole fleets from an LP over kinds of nodes, each with its certificate."""
