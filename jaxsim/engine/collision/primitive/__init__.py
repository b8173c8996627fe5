"""Analytic colliders of planes, spheres, capsules and boxes."""
