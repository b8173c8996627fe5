"""Code generation: from jaxpr to loop program to C or CUDA source, the compilers, and native functions in JAX."""
