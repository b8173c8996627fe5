"""Tendons: paths, wrapping around geoms, lengths, Jacobians and velocities."""
