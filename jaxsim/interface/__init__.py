"""Layer between callers and the engine: checks arguments, and runs eager calls as compiled programs."""
