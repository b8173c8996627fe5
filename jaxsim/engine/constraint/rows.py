"""Constraint rows in their slots: values of a field per slot, Jacobian rows included."""
