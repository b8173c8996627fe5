"""Forces and activation dynamics of muscles (Zajac's curves, in MuJoCo's form)."""

from jaxsim.core.types import MINVAL
from jaxsim.math.safe import Array, xp_of


def _scaled(length: Array, lengthrange: Array, acc0: Array, prm: Array) -> tuple[Array, Array, Array]:
    """Return the peak force, unit length, and length in units of the optimal fibre length."""
    xp = xp_of(length, prm)
    force = xp.where(prm[:, 2] < 0, prm[:, 3] / xp.maximum(acc0, MINVAL), prm[:, 2])
    unit = (lengthrange[:, 1] - lengthrange[:, 0]) / xp.maximum(prm[:, 1] - prm[:, 0], MINVAL)
    return force, unit, prm[:, 0] + (length - lengthrange[:, 0]) / xp.maximum(unit, MINVAL)


def _bell(x: Array, low: Array, high: Array) -> Array:
    """Evaluate the force-length curve: one at 1, zero outside (low, high), of four parabolas."""
    xp = xp_of(x, low)
    a, b = 0.5 * (low + 1), 0.5 * (1 + high)
    rise, to_one = (x - low) / xp.maximum(a - low, MINVAL), (1 - x) / xp.maximum(1 - a, MINVAL)
    from_one, fall = (x - 1) / xp.maximum(b - 1, MINVAL), (high - x) / xp.maximum(high - b, MINVAL)
    left = xp.where(x <= a, 0.5 * rise * rise, 1 - 0.5 * to_one * to_one)
    right = xp.where(x <= b, 1 - 0.5 * from_one * from_one, 0.5 * fall * fall)
    return xp.where((x < low) | (x > high), 0, xp.where(x <= 1, left, right))


def gain(length: Array, velocity: Array, lengthrange: Array, acc0: Array, prm: Array) -> Array:
    """Compute the active force for unit activation, all (k,): negative, since muscles pull."""
    xp = xp_of(length, prm)
    force, unit, x = _scaled(length, lengthrange, acc0, prm)
    v = velocity / xp.maximum(unit * prm[:, 6], MINVAL)
    fvmax = prm[:, 8]
    y = fvmax - 1
    shortening = xp.where(v <= -1, 0, (v + 1) ** 2)
    lengthening = xp.where(v <= y, fvmax - (y - v) ** 2 / xp.maximum(y, MINVAL), fvmax)
    return -force * _bell(x, prm[:, 4], prm[:, 5]) * xp.where(v <= 0, shortening, lengthening)


def bias(length: Array, lengthrange: Array, acc0: Array, prm: Array) -> Array:
    """Compute the passive force (k,)."""
    xp = xp_of(length, prm)
    force, _, x = _scaled(length, lengthrange, acc0, prm)
    b = 0.5 * (1 + prm[:, 5])
    width = xp.maximum(b - 1, MINVAL)
    curve = xp.where(x <= b, 0.5 * ((x - 1) / width) ** 2, 0.5 + (x - b) / width)
    return -force * prm[:, 7] * xp.where(x <= 1, 0, curve)


def activation_rate(ctrl: Array, act: Array, prm: Array) -> Array:
    """Compute the rate of the activation (k,): a filter whose time constant depends on the state."""
    xp = xp_of(act, prm)
    excess = xp.clip(ctrl, 0, 1) - act
    pace = 0.5 + 1.5 * xp.clip(act, 0, 1)
    up, down, width = prm[:, 0] * pace, prm[:, 1] / pace, prm[:, 2]
    sharp = width < MINVAL
    x = xp.clip(excess / xp.where(sharp, 1, width) + 0.5, 0, 1)
    smooth = down + (up - down) * x**3 * (3 * x * (2 * x - 5) + 10)
    tau = xp.where(sharp, xp.where(excess > 0, up, down), smooth)
    return excess / xp.maximum(tau, MINVAL)
