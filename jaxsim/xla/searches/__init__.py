"""Searches that end at different times, over a pool of all that need them."""
