"""Transmissions, activations, and the forces of actuators: muscles, DC motors, PID plugins, delays."""
