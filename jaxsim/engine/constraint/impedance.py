"""Impedance and reference of constraint rows (MuJoCo's manual, "Modeling", solver parameters), for all rows at once."""

import jax.numpy as jnp

from jaxsim.math.safe import Array, divide
from jaxsim.model import Model
from jaxsim.types import MAXIMP, MINIMP, MINVAL, DisableBit


def safe_reference(m: Model, solref: Array, default: tuple[float, float]) -> Array:
    """solref (n, 2) as it is used: mixed signs become `default`; a standard time constant is at least two steps."""
    mixed = (solref[:, 0] > 0) != (solref[:, 1] > 0)
    solref = jnp.where(mixed[:, None], jnp.asarray(default, solref.dtype), solref)
    if m.opt.disableflags & DisableBit.REFSAFE:
        return solref
    time = jnp.where(solref[:, 0] > 0, jnp.maximum(solref[:, 0], 2 * m.opt.timestep), solref[:, 0])
    return jnp.stack([time, solref[:, 1]], axis=1)


def impedance(solimp: Array, depth: Array) -> tuple[Array, Array, Array]:
    """d(r) of rows and its derivative, and the width d_width: solimp (n, 5), depth (n,) is
    position less margin."""
    dmin, dmax = (jnp.clip(solimp[:, i], MINIMP, MAXIMP) for i in (0, 1))
    width = jnp.maximum(solimp[:, 2], 0)
    mid = jnp.clip(solimp[:, 3], MINIMP, MAXIMP)
    power = jnp.maximum(solimp[:, 4], 1)

    flat = (dmin == dmax) | (width <= MINVAL)
    x = depth / jnp.where(flat, 1, width)
    sign = jnp.where(x < 0, -1, 1)
    x = jnp.abs(x)
    inside = (x > 0) & (x < 1)
    below = x <= mid
    base = jnp.where(inside, jnp.where(below, x, 1 - x), 0.5)  # distance to the nearer end
    end = jnp.where(below, mid, 1 - mid)
    ratio = (base / end) ** (power - 1)
    linear = power == 1
    y = jnp.where(below, base * ratio, 1 - base * ratio)
    y = jnp.where(linear, x, y)
    slope = jnp.where(linear, 1, power * ratio)

    y = jnp.where(inside, y, jnp.where(x >= 1, 1, 0))
    imp = jnp.where(flat, 0.5 * (dmin + dmax), dmin + y * (dmax - dmin))
    slope = jnp.where(inside & ~flat, slope * sign * (dmax - dmin) / jnp.where(flat, 1, width), 0)
    return imp, slope, dmax


def stiffness_damping(ref: Array, dmax: Array) -> tuple[Array, Array]:
    """K and B of the reference acceleration from solref (n, 2), standard (positive) or direct (not positive) format."""
    time, ratio = ref[:, 0], ref[:, 1]
    square = dmax * dmax
    standard_k = 1 / jnp.maximum(MINVAL, square * time * time * ratio * ratio)
    stiffness = jnp.where(time > 0, standard_k, -time / jnp.maximum(MINVAL, square))
    damping = jnp.where(ratio > 0, 2 / jnp.maximum(MINVAL, dmax * time), -ratio / jnp.maximum(MINVAL, dmax))
    return stiffness, damping


def regularizer(imp: Array, diag: Array) -> Array:
    """R = (1 - d) / d * diagApprox, at least MINVAL."""
    return jnp.maximum(MINVAL, (1 - imp) * diag / imp)


def reference(kbip: Array, vel: Array, pos: Array, margin: Array) -> Array:
    """aref = -B vel - K I (pos - margin)."""
    return -kbip[:, 1] * vel - kbip[:, 0] * kbip[:, 2] * (pos - margin)


def inverse_or_zero(x: Array, active: Array) -> Array:
    """1 / x in active slots, zero in the others."""
    return jnp.where(active, divide(jnp.ones_like(x), x), 0)
