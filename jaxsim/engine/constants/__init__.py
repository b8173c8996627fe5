"""Constants of a model that follow from its other numbers at qpos0, recomputed under jit."""
