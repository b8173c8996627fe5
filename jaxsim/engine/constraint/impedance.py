"""Impedance and reference of constraint rows (MuJoCo's manual, "Modeling", solver parameters), for all rows at once."""

from jaxsim.core.model import Model
from jaxsim.core.types import MAXIMP, MINIMP, MINVAL, DisableBit
from jaxsim.math.safe import Array, components, xp_of

DEFAULT_SOLREF = (0.02, 1.0)


def is_safe(m: Model) -> bool:
    """Return whether time constants are limited to at least two steps."""
    return not m.opt.disableflags & DisableBit.REFSAFE


def row_numbers(
    timestep: Array, safe: bool, solref: Array, solimp: Array, depth: Array, diag: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Compute stiffness, damping, impedance, its derivative and R of rows (n,), from solref (n, 2) and solimp (n, 5).

    `depth` (n,) is position less margin, `diag` (n,) the diagonal before regularisation.
    """
    imped, derivative, dmax = components(xp_of(depth, diag).stack(impedance(solimp, depth)), 0)
    stiffness, damping = stiffness_damping(safe_reference(timestep, safe, solref, DEFAULT_SOLREF), dmax)
    return stiffness, damping, imped, derivative, regularizer(imped, diag)


def safe_reference(timestep: Array, safe: bool, solref: Array, default: tuple[float, float]) -> Array:
    """Replace solref (n, 2) of mixed signs by `default`; limit a `safe` time constant to at least two steps."""
    xp = xp_of(solref)
    first, second = components(solref, 1)
    mixed = (first > 0) != (second > 0)
    first, second = (xp.where(mixed, x.dtype.type(d), x) for x, d in zip((first, second), default, strict=True))
    if safe:
        first = xp.where(first > 0, xp.maximum(first, 2 * timestep), first)
    return xp.stack([first, second], axis=1)


def impedance(solimp: Array, depth: Array) -> tuple[Array, Array, Array]:
    """Compute the impedance d(r), its derivative and d_width, from solimp (n, 5) and depth (n,).

    `depth` is position less margin.
    """
    xp = xp_of(solimp, depth)
    dmin, dmax, width, mid, power = components(solimp, 1)
    dmin, dmax, mid = (xp.clip(x, MINIMP, MAXIMP) for x in (dmin, dmax, mid))
    width, power = xp.maximum(width, 0), xp.maximum(power, 1)

    flat = (dmin == dmax) | (width <= MINVAL)
    x = depth / xp.where(flat, 1, width)
    sign = xp.where(x < 0, -1, 1)
    x = xp.abs(x)
    inside = (x > 0) & (x < 1)
    below = x <= mid
    base = xp.where(inside, xp.where(below, x, 1 - x), 0.5)  # distance to the nearer end
    end = xp.where(below, mid, 1 - mid)
    ratio = (base / end) ** (power - 1)
    linear = power == 1
    y = xp.where(below, base * ratio, 1 - base * ratio)
    y = xp.where(linear, x, y)
    derivative = xp.where(linear, 1, power * ratio)

    y = xp.where(inside, y, xp.where(x >= 1, 1, 0))
    imp = xp.where(flat, 0.5 * (dmin + dmax), dmin + y * (dmax - dmin))
    derivative = xp.where(inside & ~flat, derivative * sign * (dmax - dmin) / xp.where(flat, 1, width), 0)
    return imp, derivative, dmax


def stiffness_damping(ref: Array, dmax: Array) -> tuple[Array, Array]:
    """Compute K and B of the reference acceleration from solref (n, 2), in standard (positive) or direct format."""
    xp = xp_of(ref, dmax)
    time, ratio = components(ref, 1)
    square = dmax * dmax
    standard_k = 1 / xp.maximum(MINVAL, square * time * time * ratio * ratio)
    stiffness = xp.where(time > 0, standard_k, -time / xp.maximum(MINVAL, square))
    damping = xp.where(ratio > 0, 2 / xp.maximum(MINVAL, dmax * time), -ratio / xp.maximum(MINVAL, dmax))
    return stiffness, damping


def regularizer(imp: Array, diag: Array) -> Array:
    """Compute R = (1 - d) / d * diagApprox, at least MINVAL."""
    xp = xp_of(imp, diag)
    return xp.maximum(MINVAL, (1 - imp) * diag / imp)


def reference(kbip: Array, vel: Array, pos: Array, margin: Array) -> Array:
    """Compute aref = -B vel - K I (pos - margin)."""
    stiffness, damping, imp, _ = components(kbip, 1)
    return -damping * vel - stiffness * imp * (pos - margin)
