"""JVP of contacts found by MPR, for one pair.

Between polyhedra the portal's points are vertices: they move with their shapes, and the formulas of the contact are
differentiated. If a shape is curved, the point where the ray leaves the Minkowski difference solves ten equations (see
`sensitivity`). Their implicit derivative gives the position and the normal of the portal's plane, and the round parts
of the portal's points move with that normal. The portal's points are such of a surface within the search's tolerance,
so second derivatives are right between polyhedra alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.gjk import SupportPoints
from jaxsim.engine.collision.convex.portal import MprContact, Portal, nearest_weights, portal_contact
from jaxsim.engine.collision.convex.sensitivity import (
    SolvedWitness,
    WitnessPoints,
    numbers_of,
    round_part_support,
    solved_witness,
    surface_feature,
    witness,
)
from jaxsim.engine.collision.convex.support import POLYHEDRON_TYPES, ConvexShape, are_polyhedra, centre, is_type
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array


def mpr_contact_jvp(
    types: tuple[int, ...],
    a: ConvexShape,
    b: ConvexShape,
    a_dot: ConvexShape,
    b_dot: ConvexShape,
    portal: Portal,
    found: MprContact,
) -> MprContact:
    """Compute tangents of a contact, given the tangents `a_dot`, `b_dot` of its shapes."""

    shapes, numbers, numbers_dot = numbers_of(a, b, (a_dot, b_dot))

    def jvp_along(function: Callable) -> Any:
        return jax.jvp(lambda x: function(*shapes(x)), (numbers,), (numbers_dot,))[1]

    out = jvp_along(partial(_carried_contact, portal, a, b))
    if not set(types) <= set(POLYHEDRON_TYPES):
        polyhedra = are_polyhedra(a, b)
        solved = _ray_exit(a, b, portal)

        def ray_exit(a: ConvexShape, b: ConvexShape) -> WitnessPoints:
            z = witness(True, a, b, solved)
            return WitnessPoints(z[:3], z[3:6], z[6:9], z[9])

        z, z_dot = ray_exit(a, b), jvp_along(ray_exit)
        centres = jvp_along(lambda a, b: (centre(a), centre(b)))
        pos = jax.jvp(_contact_position, (z, centre(a), centre(b)), (z_dot, *centres))[1]
        point_at_normal = partial(_nearest_point, a, b, (solved.feature1.cap, solved.feature2.cap), portal, z.normal)
        shift = jax.jvp(lambda n: point_at_normal(n, a, b), (z.normal,), (z_dot.normal,))[1]
        shift += jvp_along(lambda a, b: point_at_normal(z.normal, a, b))
        depth = inner(found.normal, shift)
        normal_rate = (shift - found.normal * depth) / jnp.where(found.hit, found.depth, 1)
        normal = jnp.where(jnp.all(nearest_weights(portal.points.w) != 0), z_dot.normal, normal_rate)
        out = [jnp.where(polyhedra, x, y) for x, y in zip(out, (depth, pos, normal), strict=True)]
    return MprContact(np.zeros(found.hit.shape, jax.dtypes.float0), *[jnp.where(found.hit, x, 0) for x in out])


def _carried_contact(portal: Portal, a0: ConvexShape, b0: ConvexShape, a: ConvexShape, b: ConvexShape) -> tuple:
    """Depth, position and normal with support points that are fixed to their shapes, moved from a0, b0 to a, b."""
    on_a, on_b = (_carry(s0, s, x) for s0, s, x in ((a0, a, portal.points.a), (b0, b, portal.points.b)))
    return portal_contact(a, b, portal._replace(points=SupportPoints(on_a, on_b, portal.points.index)))[1:]


def _carry(s0: ConvexShape, s: ConvexShape, points: Array) -> Array:
    """Points (3, 3) of the shape `s0` moved to the shape `s`: its vertices, or fractions of its side lengths."""
    s0 = jax.lax.stop_gradient(s0)
    local = matvec_t(s0.mat, points - s0.pos)
    fraction = safe.divide(local, _side_lengths(s0)) * _side_lengths(s)
    moved = jnp.where(is_type(s.type, (GeomType.MESH, GeomType.HFIELD)), s.corner, fraction)
    return s.pos + matvec(s.mat, moved)


def _side_lengths(s: ConvexShape) -> Array:
    """The lengths (3,) by which a shape scales along its axes."""
    size = jnp.where(s.type == GeomType.CYLINDER, s.size[np.array([0, 0, 1])], s.size)
    return jnp.where(s.type == GeomType.CAPSULE, s.size[np.array([0, 0, 1])], size)


def _nearest_point(
    a0: ConvexShape,
    b0: ConvexShape,
    caps: tuple,
    portal: Portal,
    normal0: Array,
    normal: Array,
    a: ConvexShape,
    b: ConvexShape,
) -> Array:
    """The portal's point nearest to the origin (3,) on the moved shapes, their round parts at the normal `normal`."""
    points = []
    for s0, s, x, cap, sign in ((a0, a, portal.points.a, caps[0], 1), (b0, b, portal.points.b, caps[1], -1)):
        s0, normal0 = jax.lax.stop_gradient((s0, normal0))
        core = x - matvec(s0.mat, round_part_support(s0, cap, matvec_t(s0.mat, sign * normal0)))
        points.append(_carry(s0, s, core) + matvec(s.mat, round_part_support(s, cap, matvec_t(s.mat, sign * normal))))
    return jnp.sum(nearest_weights(portal.points.w)[:, None] * (points[0] - points[1]), axis=0)


def _ray_exit(a: ConvexShape, b: ConvexShape, portal: Portal) -> SolvedWitness:
    """Where the ray leaves the difference, as a solution of the equations in `sensitivity`."""
    a, b = jax.lax.stop_gradient((a, b))
    points, v = portal.points, portal.points.w
    along = unit(centre(b) - centre(a))[0]
    outward = jnp.where(portal.on_segment, along, unit(cross(v[1] - v[0], v[2] - v[0]))[0])
    depth = safe.divide(inner(outward, v[0]), inner(outward, along))
    area = jnp.stack([inner(cross(v[i], v[j]), along) for i, j in ((1, 2), (2, 0), (0, 1))])
    weight = safe.divide(area, jnp.sum(area))
    weight = jnp.where(portal.on_segment | (jnp.sum(area) == 0), jnp.array([1, 0, 0], v.dtype), weight)
    x1, x2 = [jnp.sum(weight[:, None] * x, axis=0) for x in points[:2]]
    feature1 = surface_feature(a, points.a, weight, x1, outward)
    feature2 = surface_feature(b, points.b, weight, x2, -outward)
    start = [jnp.where(portal.hit, x, 0) for x in (x1, x2, outward, -depth)]
    return solved_witness(a, b, feature1, feature2, WitnessPoints(*start), ray=True)


def _contact_position(z: WitnessPoints, c1: Array, c2: Array) -> Array:
    """The contact position, given where the ray leaves the difference of shapes with the centres c1, c2."""
    fraction = safe.divide(-z.dist, safe.norm(c2 - c1) - z.dist)
    return fraction * c1 + (1 - fraction) * z.x1
