"""Macros, expanded into plain elements: replicate, attach, composite, flexcomp."""
