"""Candidate pairs of geoms, bounding-volume tests, and the capacity for contacts."""
