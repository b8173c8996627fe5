"""Sensors, grouped by the stage after which they can be evaluated: position, velocity, acceleration."""
