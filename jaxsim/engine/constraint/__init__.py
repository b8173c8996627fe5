"""Constraint rows of equalities, dry friction, limits and contacts, and the problem for the solver."""
