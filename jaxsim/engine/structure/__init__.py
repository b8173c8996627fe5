"""Data of the stages that follows from structure: index tables, bounds of geoms, histories, refusals, checks."""
