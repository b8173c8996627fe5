"""Deformable objects: vertices, edges and their Jacobians, elastic forces and their derivatives."""
