"""Spec to Model on the host: numpy, float64, no tracing. `compile_spec` is the entry, `compile.PASSES` the plan."""

from jaxsim.compiler.compile import compile_spec

__all__ = ["compile_spec"]
