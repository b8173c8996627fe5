"""Collision detection: candidate pairs, one module a family of geom pairs, contacts in fixed-size buffers."""
