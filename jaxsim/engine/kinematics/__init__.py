"""Positions and their derivatives: frames of bodies, centres of mass, Jacobians of points and of contacts, wrenches."""
