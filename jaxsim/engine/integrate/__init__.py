"""Integrators: Euler, Runge-Kutta, implicit and implicitfast, and the derivatives that they need."""
