"""Rays against primitive shapes, in the frames of the shapes."""

import numpy as np

from jaxsim.math.safe import Array, xp_of
from jaxsim.types import GeomType


def ray_hits(kind: np.ndarray, size: Array, origin: Array, direction: Array) -> Array:
    """Whether rays meet the surfaces of shapes, or start within them: (k, n).

    Args:
        kind: (k,) static GeomType: sphere, capsule, ellipsoid, cylinder or box.
        size: (k, 3).
        origin, direction: (k, n, 3), in the frame of the shape.
    """
    xp = xp_of(size, origin)
    hit = xp.zeros(origin.shape[:2], bool)
    for shape, test in TESTS.items():
        which = (kind == shape)[:, None]
        if which.any():
            hit = hit | (which & test(size[:, None], origin, direction))
    return hit


def _quadric(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """Whether a t^2 + 2 b t + c has real roots, and the two roots (the smaller first)."""
    xp = xp_of(a, b, c)
    square = b * b - a * c
    ok = (square >= 0) & (a > 0)
    root = xp.sqrt(xp.where(ok, square, 0))
    a = xp.where(a > 0, a, 1)
    return ok, (-b - root) / a, (-b + root) / a


def _ellipsoid(size: Array, p: Array, v: Array) -> Array:
    xp = xp_of(size)
    p, v = p / xp.where(size > 0, size, 1), v / xp.where(size > 0, size, 1)
    ok, _, far = _quadric((v * v).sum(-1), (v * p).sum(-1), (p * p).sum(-1) - 1)
    return ok & (far >= 0)


def _sphere(size: Array, p: Array, v: Array) -> Array:
    return _ellipsoid(size[..., :1], p, v)


def _tube(size: Array, p: Array, v: Array) -> Array:
    """The side of a cylinder."""
    ok, *roots = _quadric(
        (v[..., :2] ** 2).sum(-1),
        (v[..., :2] * p[..., :2]).sum(-1),
        (p[..., :2] ** 2).sum(-1) - size[..., 0] ** 2,
    )
    hits = [(t >= 0) & (abs(p[..., 2] + t * v[..., 2]) <= size[..., 1]) for t in roots]
    return ok & (hits[0] | hits[1])


def _capsule(size: Array, p: Array, v: Array) -> Array:
    up = np.array([0.0, 0, 1], p.dtype)
    ends = [_sphere(size[..., :1], p - sign * size[..., 1:2] * up, v) for sign in (1, -1)]
    return _tube(size, p, v) | ends[0] | ends[1]


def _cylinder(size: Array, p: Array, v: Array) -> Array:
    xp = xp_of(size, p)
    hit = _tube(size, p, v)
    slope = xp.where(v[..., 2] == 0, 1, v[..., 2])
    for sign in (1, -1):
        t = (sign * size[..., 1] - p[..., 2]) / slope
        at = p[..., :2] + t[..., None] * v[..., :2]
        hit = hit | ((v[..., 2] != 0) & (t >= 0) & ((at**2).sum(-1) <= size[..., 0] ** 2))
    return hit


def _box(size: Array, p: Array, v: Array) -> Array:
    xp = xp_of(size, p)
    parallel = v == 0
    slope = xp.where(parallel, 1, v)
    a, b = (-size - p) / slope, (size - p) / slope
    inside = abs(p) <= size
    low = xp.where(parallel, xp.where(inside, -np.inf, np.inf), xp.minimum(a, b)).max(-1)
    high = xp.where(parallel, xp.where(inside, np.inf, -np.inf), xp.maximum(a, b)).min(-1)
    return (low <= high) & (high >= 0)


TESTS = {
    GeomType.SPHERE: _sphere,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
    GeomType.BOX: _box,
}
