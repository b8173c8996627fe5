"""What stands between a caller and the engine: arguments are checked, and eager calls run compiled programs."""
