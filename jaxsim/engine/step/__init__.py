"""The step and related functions: forward and inverse dynamics, rollouts, transition matrices, initial states."""
