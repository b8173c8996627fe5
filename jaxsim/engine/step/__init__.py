"""The whole step and its relatives: forward and inverse dynamics, rollouts, transition matrices, initial states."""
