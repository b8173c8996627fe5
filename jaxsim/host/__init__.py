"""Loops on the host: state packed in a few buffers, cached compiled programs, and `Simulation`, which uses both."""
