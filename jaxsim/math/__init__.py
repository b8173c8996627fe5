"""Formulas without models: quaternions, spatial algebra, tree operators, safe norms, small linear algebra."""
