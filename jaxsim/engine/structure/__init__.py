"""What stages know before they run: tables of the structure, bounds of geoms, histories, refusals, checks of input."""
