"""The command line, benchmarks, model summaries and host-side rollouts."""
