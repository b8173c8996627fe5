"""Constraint rows of equalities, dry friction, limits and contacts, and the problem that the solver is given."""
