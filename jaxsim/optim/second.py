"""Products of Hessians and vectors."""

from collections.abc import Callable
from typing import Any

import jax

from jaxsim.math.safe import Array


def hvp(f: Callable[..., Array], x: Any, v: Any) -> Any:
    """Product of the Hessian of `f` at `x` and `v`, both PyTrees: the gradient of a derivative along `v`.

    Reverse mode over forward mode: only this order works with the solver's derivative rules within checkpoints. It
    costs about three gradients.
    """
    return jax.grad(lambda x: jax.jvp(f, (x,), (v,))[1])(x)
