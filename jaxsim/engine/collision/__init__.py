"""Collision detection: candidate pairs, one module for each family of geom pairs, contacts in fixed-size buffers."""
