"""Distances along rays to geoms, meshes and height fields."""
