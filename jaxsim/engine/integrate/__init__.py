"""Integrators: Euler, Runge-Kutta, implicit and implicitfast, and the derivatives for them."""
