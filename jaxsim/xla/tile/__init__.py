"""Stages of a step as kernels of a GPU: a world is a tile of threads, and what it hands on stays in their memory."""
