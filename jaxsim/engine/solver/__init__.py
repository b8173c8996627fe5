"""Constraint solvers: ConstraintProblem to accelerations and constraint forces, with implicit derivatives."""
