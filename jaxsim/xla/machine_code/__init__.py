"""C source of programs for a CPU, and the libraries that the C compiler makes of it."""
