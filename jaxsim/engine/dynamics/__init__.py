"""Smooth dynamics: the inertia matrix, bias forces, passive and fluid forces, energy."""
