"""Solvers behind one interface: CP-SAT, HiGHS for LPs, and HiGHS through Pyomo as a second engine."""
