"""Code specific to XLA's backends: compilation options, fusion barriers, loops, linear algebra."""

from jaxsim.xla.cache import use_compile_cache
from jaxsim.xla.options import compiler_options, jit

__all__ = ["compiler_options", "jit", "use_compile_cache"]
