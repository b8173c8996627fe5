"""How a contact found by portal refinement moves with its shapes, for one pair.

Between polyhedra the portal's points are vertices: they are carried by their shapes, and the formulas of the answer are
differentiated. Where something round is in the pair, the point where the ray leaves the difference solves ten equations
(see `sensitivity`): it gives the position and the normal of the portal's plane, and with that normal the round parts of
the portal's points turn.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.gjk import Points
from jaxsim.engine.collision.convex.portal import Contact, Portal, answer, weights
from jaxsim.engine.collision.convex.sensitivity import Feature, Touch, derivative, feature, polished, rounding
from jaxsim.engine.collision.convex.support import PRISM, Kinds, Shape, centre, is_any
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

MOVING = ("pos", "mat", "size", "vert", "margin")  # numbers of a shape


def slopes(kinds: Kinds, a: Shape, b: Shape, a_dot: Shape, b_dot: Shape, portal: Portal, found: Contact) -> Contact:
    """Tangents of a contact, given those of the numbers of its shapes."""

    def along(function: Callable) -> Any:
        def of(*numbers: tuple) -> Any:
            sides = [s._replace(**dict(zip(MOVING, x, strict=True))) for s, x in zip((a, b), numbers, strict=True)]
            return function(*sides)

        at, by = [tuple(tuple(getattr(s, n) for n in MOVING) for s in pair) for pair in ((a, b), (a_dot, b_dot))]
        return jax.jvp(of, at, by)[1]

    out = along(partial(_carried, portal, a, b))
    if not set(kinds.of) <= set(PRISM):
        polyhedra = (a.margin == 0) & (b.margin == 0) & is_any(a.kind, PRISM) & is_any(b.kind, PRISM)
        z, one, two = _on_ray(a, b, portal)
        z_dot = derivative(a, b, a_dot, b_dot, z, one, two, ray=True)
        z = Touch(z[:3], z[3:6], z[6:9], z[9])
        centres = along(lambda a, b: (centre(a), centre(b)))
        pos = jax.jvp(_on_both, (z, centre(a), centre(b)), (z_dot, *centres))[1]
        turned = partial(_turned, a, b, (one.cap, two.cap), portal, z.normal)
        shift = jax.jvp(lambda n: turned(n, a, b), (z.normal,), (z_dot.normal,))[1]
        shift += along(lambda a, b: turned(z.normal, a, b))
        depth = inner(found.normal, shift)
        swing = (shift - found.normal * depth) / jnp.where(found.hit, found.depth, 1)
        normal = jnp.where(jnp.all(weights(portal.points.w) != 0), z_dot.normal, swing)
        out = [jnp.where(polyhedra, x, y) for x, y in zip(out, (depth, pos, normal), strict=True)]
    return Contact(np.zeros(found.hit.shape, jax.dtypes.float0), *[jnp.where(found.hit, x, 0) for x in out])


def _carried(portal: Portal, a0: Shape, b0: Shape, a: Shape, b: Shape) -> tuple:
    """The answer with support points that keep their places on the shapes: depth, position, normal."""
    sides = [_carry(s0, s, x) for s0, s, x in ((a0, a, portal.points.a), (b0, b, portal.points.b))]
    return answer(a, b, portal._replace(points=Points(*sides, portal.points.index)))[1:]


def _carry(s0: Shape, s: Shape, points: Array) -> Array:
    """Points (3, 3) of the shape `s0` where they are on the shape `s`: vertices, or shares of its sides."""
    s0 = jax.lax.stop_gradient(s0)
    local = matvec_t(s0.mat, points - s0.pos)
    index = jnp.argmin(jnp.sum((local[:, None] - s0.vert) ** 2, axis=-1), axis=1)
    share = safe.divide(local, _sides_of(s0)) * _sides_of(s)
    place = jnp.where(is_any(s.kind, (GeomType.MESH, GeomType.HFIELD)), s.vert[index], share)
    return s.pos + matvec(s.mat, place)


def _sides_of(s: Shape) -> Array:
    """By which lengths (3,) a shape grows along its axes."""
    size = jnp.where(s.kind == GeomType.CYLINDER, s.size[np.array([0, 0, 1])], s.size)
    return jnp.where(s.kind == GeomType.CAPSULE, s.size[np.array([0, 0, 1])], size)


def _turned(
    a0: Shape, b0: Shape, caps: tuple, portal: Portal, normal0: Array, normal: Array, a: Shape, b: Shape
) -> Array:
    """The portal's point nearest to the origin (3,), carried by its shapes; what is round in them takes the normal."""
    ends = []
    for s0, s, x, cap, sign in ((a0, a, portal.points.a, caps[0], 1), (b0, b, portal.points.b, caps[1], -1)):
        s0 = jax.lax.stop_gradient(s0)
        core = x - matvec(s0.mat, rounding(s0, cap, matvec_t(s0.mat, sign * normal0)))
        ends.append(_carry(s0, s, core) + matvec(s.mat, rounding(s, cap, matvec_t(s.mat, sign * normal))))
    return jnp.sum(weights(portal.points.w)[:, None] * (ends[0] - ends[1]), axis=0)


def _on_ray(a: Shape, b: Shape, portal: Portal) -> tuple[Array, Feature, Feature]:
    """Where the ray leaves the difference, as unknowns (10,) of the equations of `sensitivity`, and the features."""
    a, b = jax.lax.stop_gradient((a, b))
    points, v = portal.points, portal.points.w
    along = unit(centre(b) - centre(a))[0]
    outward = jnp.where(portal.straight, along, unit(cross(v[1] - v[0], v[2] - v[0]))[0])
    depth = safe.divide(inner(outward, v[0]), inner(outward, along))
    area = jnp.stack([inner(cross(v[i], v[j]), along) for i, j in ((1, 2), (2, 0), (0, 1))])
    weight = safe.divide(area, jnp.sum(area))
    weight = jnp.where(portal.straight | (jnp.sum(area) == 0), jnp.array([1, 0, 0], v.dtype), weight)
    x1, x2 = [jnp.sum(weight[:, None] * x, axis=0) for x in points[:2]]
    one, two = feature(a, points.a, weight, x1, outward), feature(b, points.b, weight, x2, -outward)
    start = [jnp.where(portal.hit, x, 0) for x in (x1, x2, outward, -depth)]
    return polished(a, b, one, two, Touch(*start), ray=True), one, two


def _on_both(z: Touch, c1: Array, c2: Array) -> Array:
    """The position, from where the ray leaves the difference of shapes with the centres c1, c2."""
    share = safe.divide(-z.dist, safe.norm(c2 - c1) - z.dist)
    return share * c1 + (1 - share) * z.x1
