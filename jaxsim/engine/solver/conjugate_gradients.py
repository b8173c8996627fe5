"""Conjugate gradients for the directions of large models, and how exact these directions are."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.layout import Layout
from jaxsim.core.types import ConstraintType
from jaxsim.engine.solver.primal import Tolerances
from jaxsim.math.safe import Array, divide, norm

FORCING = 1e-2  # residual gradient of an inexact direction, relative to the gradient
QUADRATIC = 1e-6  # the same for equalities only, where one direction leads to the minimum
SPARE = 0.3  # least residual gradient of a direction, relative to the tolerance
MAX_ROUNDS = 200  # for one direction

Product = Callable[[Array], Array]


def conjugate_gradients(
    times: Product,
    precondition: Product,
    b: Array,
    tolerance: Array | float,
    idle: Array,
    least_gain: Array | float = 0.0,
    z: Array | None = None,
) -> Array:
    """Solve A x = b to a relative `tolerance` in the norm of the preconditioner; zero for a world that is `idle`.

    Also stops after a round that lowers x' A x / 2 - b' x by no more than `least_gain`. `z` is the preconditioned b, if
    it is known.
    """

    def unfinished(s: tuple) -> Array:
        _, _, _, rho, count, gain = s
        return (rho > enough) & (gain > least_gain) & (count < MAX_ROUNDS) & ~idle

    def go(s: tuple) -> tuple:
        x, r, q, rho, count, _ = s
        aq = times(q)
        alpha = divide(rho, jnp.sum(q * aq))
        x, r = x + alpha * q, r - alpha * aq
        z = precondition(r)
        new = jnp.sum(r * z)
        return x, r, z + divide(new, rho) * q, new, count + 1, 0.5 * alpha * rho

    z = precondition(b) if z is None else z
    rho = jnp.sum(b * z)
    enough = tolerance**2 * rho
    start = (jnp.zeros_like(b), b, z, rho, jnp.zeros((), jnp.int32), jnp.full_like(rho, jnp.inf))
    return jax.lax.while_loop(unfinished, go, start)[0]


def needed_precision(layout: Layout, settings: Tolerances, grad: Array) -> tuple[Array, Array]:
    """Return the relative tolerance of a direction at a gradient, and the least gain of a round."""
    needed = SPARE * divide(settings.tolerance, settings.scale * norm(grad))
    least = QUADRATIC if _only_equalities(layout) else FORCING
    return jnp.clip(needed, least, 0.5), settings.tolerance / settings.scale


def _only_equalities(layout: Layout) -> bool:
    """Return whether all rows are equalities, whose forces have no bounds."""
    equalities = np.all(layout.general.type == ConstraintType.EQUALITY)
    return bool(equalities and not layout.nlimit and not layout.ncontact)
