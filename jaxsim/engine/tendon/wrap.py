"""Wrapping of tendons around spheres and cylinders: tangent points and the length of the arc between them.

All functions act on (k, ...) wraps at once, for NumPy and JAX. Without a wrap the first result is False and the others
are finite.
"""

import numpy as np
from jax import lax

from jaxsim.core.types import MINVAL
from jaxsim.math.arrays import inner, is_numpy, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array, arctan2, divide, norm, normalize, sqrt, xp_of

FIRST = 1e-7  # initial 1 - z of the search for the inner tangent
TOLERANCE = 1e-6  # rad
ROUNDINGS = 32  # the least tolerance, in units of rounding: sums of angles up to pi
SMALLEST_ANGLE = (2 * MINVAL) ** 0.5  # the cosine differs from 1 by MINVAL
ITERATIONS = 20
CROSSING = -10000.0  # score of a solution whose two straight parts cross


def wrap(
    x0: Array, x1: Array, pos: Array, mat: Array, radius: Array, sphere: np.ndarray, side: Array, has_side: Array
) -> tuple[Array, Array, Array, Array]:
    """Compute the shortest path from x0 to x1 around a sphere or an infinite cylinder.

    Args:
        x0, x1: (k, 3) ends, global.
        pos, mat, radius: frame (k, 3), (k, 3, 3) and radius (k,) of the geoms.
        sphere: (k,) static: sphere or cylinder.
        side, has_side: (k, 3) global site on whose side the path runs (inside the geom, if the site is inside).

    Returns:
        Whether it wraps (k,), the two tangent points, (k, 3) each, and the length between them (k,).
    """
    xp = xp_of(x0, pos)
    p0, p1 = matvec_t(mat, x0 - pos), matvec_t(mat, x1 - pos)
    valid = (norm(p0) >= MINVAL) & (norm(p1) >= MINVAL)
    axis0, axis1 = _plane(p0, p1, sphere)
    a, b = _flat(p0, axis0, axis1), _flat(p1, axis0, axis1)
    s = matvec_t(mat, side - pos)
    to_side = normalize(_flat(s, axis0, axis1), default=np.array([1.0, 0]), eps=MINVAL)[0] * radius[:, None]
    within = has_side & (norm(s) < radius)
    outer = _outside(a, b, to_side, has_side, radius)
    if is_numpy(a, within) and not within.any():  # on the host, skip unused results
        wraps, w0, w1, length = outer
    else:
        inner_ = _inside(a, b, radius, within)
        wraps, w0, w1, length = (
            xp.where(within if y.ndim == 1 else within[:, None], x, y) for x, y in zip(inner_, outer, strict=True)
        )
    q0, q1 = (axis0 * w[:, :1] + axis1 * w[:, 1:] for w in (w0, w1))
    # on a cylinder the height changes in proportion to the length
    l0, l1 = norm(p0[:, :2] - q0[:, :2]), norm(p1[:, :2] - q1[:, :2])
    rise = divide(p1[:, 2] - p0[:, 2], l0 + length + l1)
    z0, z1 = p0[:, 2] + rise * l0, p0[:, 2] + rise * (l0 + length)
    up = np.array([0, 0, 1.0], p0.dtype)
    tube = ~sphere[:, None]
    q0, q1 = (xp.where(tube, q * (1 - up) + z[:, None] * up, q) for q, z in ((q0, z0), (q1, z1)))
    length = xp.where(sphere, length, sqrt(length**2 + (z1 - z0) ** 2))
    return valid & wraps, matvec(mat, q0) + pos, matvec(mat, q1) + pos, length


def _plane(p0: Array, p1: Array, sphere: np.ndarray) -> tuple[Array, Array]:
    """Return two axes of the plane of the path, in the geom's frame."""
    xp = xp_of(p0)
    axis0 = normalize(p0, default=np.array([1.0, 0, 0]))[0]
    # parallel ends leave the plane open: it contains an axis other than that of the largest component
    largest = xp.argmax(abs(axis0), axis=1)[:, None] == np.arange(3)
    other = normalize(cross(axis0, xp.where(largest, 0, np.ones((), p0.dtype))))[0]
    normal, length = normalize(cross(p0, p1))
    normal = xp.where((length < MINVAL)[:, None], other, normal)
    axis1 = normalize(cross(normal, axis0), default=np.array([0, 1.0, 0]))[0]
    pick = sphere[:, None]
    x, y = np.array([1.0, 0, 0], p0.dtype), np.array([0, 1.0, 0], p0.dtype)
    return xp.where(pick, axis0, x), xp.where(pick, axis1, y)


def _flat(p: Array, axis0: Array, axis1: Array) -> Array:
    return xp_of(p).stack([inner(p, axis0), inner(p, axis1)], axis=1)


def _wedge(a: Array, b: Array) -> Array:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _outside(a: Array, b: Array, side: Array, has_side: Array, radius: Array) -> tuple[Array, Array, Array, Array]:
    """Wrap around a circle, from a to b (k, 2); `side` (k, 2) lies on the circle."""
    xp = xp_of(a, radius)
    square, far0, far1 = radius * radius, inner(a, a), inner(b, b)
    apart = b - a
    gap = inner(apart, apart)
    ok = (far0 >= square) & (far1 >= square) & (radius >= MINVAL) & (gap >= MINVAL)
    nearest = a + xp.clip(-divide(inner(apart, a), gap), 0, 1)[:, None] * apart
    ok = ok & ~((inner(nearest, nearest) > square) & (~has_side | (inner(side, nearest) >= 0)))
    reach0, reach1 = sqrt(far0 - square), sqrt(far1 - square)

    def touch(p: Array, far: Array, reach: Array, sign: float) -> Array:
        turned = xp.stack([p[:, 1], -p[:, 0]], axis=1)
        return divide(p * square[:, None] + sign * (radius * reach)[:, None] * turned, far[:, None])

    # if both points are equal up to rounding, the sign of the rotation has no meaning, and the arc is short
    rounding = ROUNDINGS * float(np.finfo(a.dtype).eps) * square
    found = []
    for sign in (1.0, -1.0):
        w0, w1 = touch(a, far0, reach0, sign), touch(b, far1, reach1, -sign)
        middle = normalize(w0 + w1, default=np.array([1.0, 0]), eps=MINVAL)[0]
        good = xp.where(has_side, inner(middle, side), -inner(w0 - w1, w0 - w1))
        turn, along = _wedge(w0, w1), inner(w0, w1)
        angle = arctan2(abs(turn), along)
        back = sign * turn > rounding
        # tangents of one circle meet at this distance from both points: radius tan(angle / 2)
        crossing = back & (radius * abs(turn) <= xp.minimum(reach0, reach1) * (square + along))
        found.append((xp.where(crossing, CROSSING, good), w0, w1, xp.where(back, 2 * np.pi - angle, angle), ~crossing))
    first = found[0][0] > found[1][0]
    w0, w1, angle, apart = (
        xp.where(first if x.ndim == 1 else first[:, None], x, y) for x, y in zip(*(f[1:] for f in found), strict=True)
    )
    return ok & apart, w0, w1, radius * angle


def _inside(a: Array, b: Array, radius: Array, wanted: Array) -> tuple[Array, Array, Array, Array]:
    """Touch a circle from inside, at one point: a and b are outside, and the segment between them misses the circle.

    Results are valid only where `wanted` (k,).
    """
    xp = xp_of(a, radius)
    far0, far1 = norm(a), norm(b)
    apart = b - a
    gap = inner(apart, apart)
    ok = (far0 > radius) & (far1 > radius) & (radius >= MINVAL) & (far0 >= MINVAL) & (far1 >= MINVAL)
    t = -divide(inner(apart, a), gap)
    through = (gap > MINVAL) & (t > 0) & (t < 1) & (norm(a + t[:, None] * apart) <= radius)
    cosine = divide(far0**2 + far1**2 - gap, 2 * far0 * far1)
    ok = ok & ~through & (cosine >= -1 + MINVAL)
    ratios = xp.stack([divide(radius, far0), divide(radius, far1)], axis=1)
    between = arctan2(abs(_wedge(a, b)), inner(a, b))
    u, found = _inner_tangent(xp.clip(ratios, 0, 1), between, ok & wanted)
    found = found & (between >= SMALLEST_ANGLE)
    forward = _wedge(a, b) > 0
    base = normalize(xp.where(forward[:, None], a, b), default=np.array([1.0, 0]), eps=MINVAL)[0]
    ratio = xp.where(forward, ratios[:, 0], ratios[:, 1])
    angle = _arcsin(1 - u, u) - _arcsin(ratio * (1 - u), (1 - ratio) + ratio * u)
    c, s = xp.cos(angle)[:, None], xp.sin(angle)[:, None]
    turned = c * base + s * xp.stack([-base[:, 1], base[:, 0]], axis=1)
    middle = normalize(0.5 * (a + b), default=np.array([1.0, 0]), eps=MINVAL)[0]
    point = radius[:, None] * xp.where(found[:, None], turned, middle)
    return ok, point, point, xp.zeros_like(radius)


def _arcsin(x: Array, rest: Array) -> Array:
    """Compute the arc sine of `x`, given `rest` = 1 - x, which rounding loses for x close to 1."""
    return arctan2(x, sqrt(rest * (1 + x)))


def _inner_tangent(ratios: Array, angle: Array, wanted: Array) -> tuple[Array, Array]:
    """Solve asin(A z) + asin(B z) - 2 asin(z) + angle = 0 by Newton's method; return 1 - z, and whether it converged.

    It stops as early as in MuJoCo; derivatives are those of the solution. The variable is u = 1 - z: for z close to 1,
    neighbouring floats of 32 bits are 1e-4 rad apart.
    """
    xp = xp_of(ratios, angle)
    tolerance = max(TOLERANCE, ROUNDINGS * float(np.finfo(angle.dtype).eps))

    def f(u: Array, ratios: Array, angle: Array) -> Array:
        def term(r: Array) -> Array:
            return _arcsin(r * (1 - u), (1 - r) + r * u)

        return term(ratios[:, 0]) + term(ratios[:, 1]) - 2 * _arcsin(1 - u, u) + angle

    def derivative(u: Array, ratios: Array) -> Array:
        """Compute the derivative by z."""

        def term(r: Array) -> Array:
            return r / xp.maximum(sqrt(((1 - r) + r * u) * (1 + r * (1 - u))), MINVAL)

        return term(ratios[:, 0]) + term(ratios[:, 1]) - 2 / xp.maximum(sqrt(u * (2 - u)), MINVAL)

    fixed = (ratios, angle) if is_numpy(ratios, angle) else lax.stop_gradient((ratios, angle))
    u = xp.full(angle.shape, FIRST, angle.dtype)
    value = f(u, *fixed)
    start = (u, value, wanted & (value <= 0), np.int32(0))

    def unfinished(carry: tuple[Array, Array, Array, Array]) -> Array:
        _, value, good, count = carry
        return (good & (abs(value) > tolerance)).any() & (count < ITERATIONS)

    def iterate(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        u, value, good, count = carry
        active = good & (abs(value) > tolerance)
        descent = derivative(u, fixed[0])
        moved = u + value / xp.where(descent < -MINVAL, descent, -1)
        there = f(moved, *fixed)
        well = (descent <= -MINVAL) & (moved >= u) & (there <= tolerance)
        move = active & well
        return xp.where(move, moved, u), xp.where(move, there, value), good & (well | ~active), count + np.int32(1)

    if is_numpy(ratios, angle):
        while unfinished(start):
            start = iterate(start)
        u, value, good, _ = start
        return u, good & (abs(value) <= tolerance)
    u, value, good, _ = lax.stop_gradient(lax.while_loop(unfinished, iterate, start))
    good = good & (abs(value) <= tolerance)
    descent = derivative(u, fixed[0])
    change = f(u, ratios, angle) - f(u, *fixed)
    return u + change / xp.where(descent < -MINVAL, descent, -1), good
