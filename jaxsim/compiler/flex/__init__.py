"""Flexes: vertices, elements and connectivity, elastic and bending stiffness, and mjModel's flex fields."""
