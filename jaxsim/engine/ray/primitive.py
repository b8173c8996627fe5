"""Rays against primitive shapes, in the frames of the shapes: distances along the rays and normals of the surfaces.

Points and vectors are tuples of components (see `math.component`). A ray hits a surface at `p + t v`, t >= 0; `t` is
infinite without a hit. Rays that start inside a shape hit it from inside, except planes, which have one side.
"""

import numpy as np

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.math.component import Vector
from jaxsim.math.safe import Array, sqrt, xp_of

Size = tuple[Array, ...]  # up to three entries, as the type needs


def _dot(a: tuple, b: tuple) -> Array:
    """Return the inner product of vectors given by components."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def ray_points(p: Vector, v: Vector, t: Array) -> Vector:
    """Return the points p + t v of rays."""
    return tuple(x + t * y for x, y in zip(p, v, strict=True))


def _roots(p: tuple, v: tuple, radius2: Array) -> tuple[Array, Array]:
    """Return the solutions t of |p + t v|^2 = `radius2`, the smaller first; infinite where there are none."""
    xp = xp_of(*p, *v, radius2)
    a = _dot(v, v)
    scale = xp.where(a >= MINVAL, a, 1)
    t_nearest = -_dot(p, v) / scale
    nearest = ray_points(p, v, t_nearest)
    excess = radius2 - _dot(nearest, nearest)
    ok = (a >= MINVAL) & (excess >= 0)
    half = sqrt(xp.where(ok, excess, 0) / scale)
    return xp.where(ok, t_nearest - half, np.inf), xp.where(ok, t_nearest + half, np.inf)


def _if_ahead(ok: Array, t: Array) -> Array:
    """Return `t` where `ok` and not negative, else infinity."""
    return xp_of(ok, t).where(ok & (t >= 0), t, np.inf)


def _nearer_root(roots: tuple[Array, Array]) -> Array:
    """Return the smaller root that is not negative, else infinity."""
    near, far = roots
    xp = xp_of(near, far)
    return xp.where(near >= 0, near, xp.where(far >= 0, far, np.inf))


def points_or_origins(p: Vector, v: Vector, t: Array) -> Vector:
    """Return the points at `t`, or the origins of the rays where `t` is infinite."""
    xp = xp_of(t)
    return ray_points(p, v, xp.where(xp.isfinite(t), t, 0))


def _plane(size: Size, p: Vector, v: Vector) -> Array:
    xp = xp_of(*p, *v)
    approaches = v[2] <= -MINVAL
    t = -p[2] / xp.where(approaches, v[2], -1)
    x, y, _ = ray_points(p, v, t)
    within = [(half <= 0) | (abs(q) <= half) for half, q in zip(size, (x, y), strict=False)]
    return _if_ahead(approaches & within[0] & within[1], t)


def _sphere(size: Size, p: Vector, v: Vector) -> Array:
    return _nearer_root(_roots(p, v, size[0] ** 2))


def _ellipsoid(size: Size, p: Vector, v: Vector) -> Array:
    xp = xp_of(*size)
    size = tuple(xp.where(s > 0, s, 1) for s in size)
    p, v = (tuple(x / s for x, s in zip(a, size, strict=True)) for a in (p, v))
    return _nearer_root(_roots(p, v, 1.0))


def _cylinder_side(size: Size, p: Vector, v: Vector) -> Array:
    """Return the distances to the curved side of a cylinder."""
    t = _nearer_root(_roots(p[:2], v[:2], size[0] ** 2))
    return _if_ahead(abs(points_or_origins(p, v, t)[2]) <= size[1], t)


def _capsule(size: Size, p: Vector, v: Vector) -> Array:
    xp = xp_of(*p, *v)
    end = np.reshape([1.0, -1.0], (2, *[1] * np.ndim(v[2])))  # both ends and both roots at once
    centred = (p[0], p[1], p[2] - end * size[1])
    t = xp.stack(_roots(centred, v, size[0] ** 2))
    caps = _if_ahead(end * points_or_origins(centred, v, t)[2] >= 0, t)
    return xp.minimum(_cylinder_side(size, p, v), xp.min(caps, axis=(0, 1)))


def _cylinder(size: Size, p: Vector, v: Vector) -> Array:
    xp = xp_of(*p, *v)
    best = _cylinder_side(size, p, v)
    slanted = abs(v[2]) > MINVAL
    divisor = xp.where(slanted, v[2], 1)
    for end in (1, -1):
        t = (end * size[1] - p[2]) / divisor
        x, y, _ = ray_points(p, v, t)
        best = xp.minimum(best, _if_ahead(slanted & (x * x + y * y <= size[0] ** 2), t))
    return best


def _box(size: Size, p: Vector, v: Vector) -> Array:
    xp = xp_of(*p, *v)
    shape = np.broadcast_shapes(*(np.shape(x) for x in (*size, *p, *v)))
    half, x, u = (xp.stack([xp.broadcast_to(y, shape) for y in a]) for a in (size, p, v))  # all faces at once
    crosses = abs(u) > MINVAL
    divisor = xp.where(crosses, u, 1)
    a, b = (-half - x) / divisor, (half - x) / divisor
    outside = ~crosses & (abs(x) > half)
    enter = xp.max(xp.where(crosses, xp.minimum(a, b), xp.where(outside, np.inf, -np.inf)), axis=0)
    leave = xp.min(xp.where(crosses, xp.maximum(a, b), np.inf), axis=0)
    return _if_ahead(enter <= leave, xp.where(enter >= 0, enter, leave))


DISTANCES = {
    GeomType.PLANE: _plane,
    GeomType.SPHERE: _sphere,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
    GeomType.BOX: _box,
}


def _plane_normal(size: Size, q: Vector) -> Vector:
    zero = q[2] * 0
    return zero, zero, zero + 1


def _sphere_normal(size: Size, q: Vector) -> Vector:
    return q


def _capsule_normal(size: Size, q: Vector) -> Vector:
    return q[0], q[1], q[2] - xp_of(*q).clip(q[2], -size[1], size[1])


def _ellipsoid_normal(size: Size, q: Vector) -> Vector:
    xp = xp_of(*size)
    return tuple(x / xp.where(s > 0, s * s, 1) for x, s in zip(q, size, strict=True))


def _cylinder_normal(size: Size, q: Vector) -> Vector:
    xp = xp_of(*q)
    radius = sqrt(q[0] ** 2 + q[1] ** 2)
    on_cap = abs(abs(q[2]) - size[1]) < abs(radius - size[0])
    return xp.where(on_cap, 0, q[0]), xp.where(on_cap, 0, q[1]), xp.where(on_cap, xp.sign(q[2]), 0)


def _box_normal(size: Size, q: Vector) -> Vector:
    xp = xp_of(*q)
    gap = [abs(abs(x) - s) for x, s in zip(q, size, strict=True)]
    least = xp.minimum(xp.minimum(gap[0], gap[1]), gap[2])
    faces = [gap[0] == least]
    faces += [~faces[0] & (gap[1] == least)]
    faces += [~faces[0] & ~faces[1]]
    return tuple(xp.where(on_face, xp.where(x >= 0, 1.0, -1.0), 0.0) for on_face, x in zip(faces, q, strict=True))


# outward normals, of any length, at points of the surfaces
NORMALS = {
    GeomType.PLANE: _plane_normal,
    GeomType.SPHERE: _sphere_normal,
    GeomType.CAPSULE: _capsule_normal,
    GeomType.ELLIPSOID: _ellipsoid_normal,
    GeomType.CYLINDER: _cylinder_normal,
    GeomType.BOX: _box_normal,
}
