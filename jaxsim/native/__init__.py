"""Stages as one program of a platform: jaxpr to loop program to source, its compilers, and native functions of JAX."""
