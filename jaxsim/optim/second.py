"""Products of Hessians and vectors."""

from collections.abc import Callable
from typing import Any

import jax

from jaxsim.math.safe import Array
from jaxsim.native.stage import pushing_forward
from jaxsim.xla.compat import eval_jaxpr


def hvp(f: Callable[..., Array], x: Any, v: Any) -> Any:
    """Multiply the Hessian of `f` at `x` by `v`, both PyTrees: the gradient of a derivative along `v`.

    Reverse mode over forward mode: only this order works with the solver's derivative rules within checkpoints. It
    costs two and a half to three gradients.
    """
    plain = jax.make_jaxpr(f)(x)  # derivatives that `f` computes are operations here

    def value(*leaves: Array) -> Array:
        return eval_jaxpr(plain.jaxpr, plain.consts, *leaves)[0]

    at, along = jax.tree.leaves(x), jax.tree.leaves(v)
    with pushing_forward():
        moved = jax.make_jaxpr(lambda at, along: jax.jvp(value, at, along)[1])(at, along)
    return jax.grad(lambda x: eval_jaxpr(moved.jaxpr, moved.consts, *jax.tree.leaves(x), *along)[0])(x)
