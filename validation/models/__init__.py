"""Models, as MJCF text, that tests step and that the table of gradients is made of."""
