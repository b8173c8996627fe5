"""Compilation of a Spec to a Model on the host: NumPy, float64, no tracing. `compile.PASSES` lists the passes."""

from jaxsim.compiler.compile import compile_spec

__all__ = ["compile_spec"]
