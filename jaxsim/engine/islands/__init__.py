"""Islands of trees that constraints connect, and sleep."""
