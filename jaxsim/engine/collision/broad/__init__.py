"""Candidate pairs of geoms, tests of their bounding volumes, and how many pairs are kept."""
