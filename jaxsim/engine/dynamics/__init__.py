"""Smooth dynamics: kinematics, centres of mass, the inertia matrix, bias forces, passive and fluid forces, energy."""
