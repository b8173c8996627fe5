"""Loops on the host: state in few buffers, compiled programs that are kept, and `Simulation` on top of both."""
