"""Formulas only: quaternions, spatial algebra, tree operators, safe norms, small linear algebra."""
