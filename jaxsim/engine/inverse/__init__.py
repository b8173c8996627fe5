"""Inverse dynamics: the forces that give an acceleration."""
