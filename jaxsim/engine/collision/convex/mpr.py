"""MPR (Minkowski portal refinement): penetration of convex shapes along the ray between their centres; for one pair.

Source: Snethen (2008), XenoCollide: complex collision made simple, Game Programming Gems 7, as in libccd 2.1. MuJoCo
uses it with the flag `nativeccd` off.

The portal is a triangle of support points of the Minkowski difference that the ray passes. It is moved outward until it
is on the boundary. The depth is the distance of the origin from that triangle, and the normal points there. The
position weighs the support points and the centres so that both shapes give the same point. The steps, tests and their
order are libccd's, and so are the conditions under which the search ends.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.gjk import SupportPoints
from jaxsim.engine.collision.convex.portal import CCD_EPS, MprContact, Portal, portal_contact
from jaxsim.engine.collision.convex.portal_jvp import mpr_contact_jvp
from jaxsim.engine.collision.convex.support import (
    ConvexShape,
    Hulls,
    SupportPoint,
    centre,
    farthest_point,
    is_type,
    pair_support,
)
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import component
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.component import Vector, join, split
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

FIND_FIRST, FIND_SECOND, FIND_THIRD, REFINE, EXPAND, DONE = range(6)
MAX_STEPS = 1000  # after which a search that does not converge is stopped


class _MprState(NamedTuple):
    mode: Array
    steps: Array
    k: Array  # steps in the mode EXPAND
    portal: Portal
    direction: Array


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def mpr_contact(types: tuple[int, ...], a: ConvexShape, b: ConvexShape, portal: Portal) -> MprContact:
    """Find a pair's contact, shapes inflated by half of their margins, along the ray between their centres.

    `types` are those that may occur; `a.corner` and `b.corner` (3, 3) are the portal's vertices, where there are any.
    """
    return portal_contact(a, b, portal)


@mpr_contact.defjvp
def _mpr_jvp(types: tuple[int, ...], primals: tuple, tangents: tuple) -> tuple[MprContact, MprContact]:
    a, b, portal = primals
    found = mpr_contact(types, a, b, portal)
    return found, mpr_contact_jvp(types, a, b, tangents[0], tangents[1], portal, found)


def _libccd_farthest(types: tuple[int, ...], hulls: Hulls, s: ConvexShape, direction: Vector) -> tuple[Vector, Array]:
    """The farthest point as libccd gets it: where a direction lies exactly in a face, the middle of that face."""
    z = jnp.array([0, 0, 1], s.size.dtype) * s.size[1]
    reach = jnp.where(s.type == GeomType.BOX, s.size, 0)
    reach = jnp.where(is_type(s.type, (GeomType.CAPSULE, GeomType.CYLINDER)), z, reach)
    point, index = farthest_point(types, hulls, s, direction)
    in_face = matvec_t(s.mat, join(direction)) == 0
    return component.sub(point, split(matvec(s.mat, jnp.where(in_face, reach, 0)))), index


def find_portal(
    types: tuple[int, ...],
    hulls: Hulls,
    iterations: int,
    a: ConvexShape,
    b: ConvexShape,
    tolerance: Array,
    active: Array,
) -> Portal:
    """Find the portal around the ray, refine it until it has passed the origin, and expand it to the boundary.

    `iterations` bounds the steps after penetration is known.
    """
    rounding = 4 * float(jnp.finfo(a.pos.dtype).eps)
    support = pair_support(partial(_libccd_farthest, types, hulls), a, b)
    v0 = centre(a) - centre(b)
    v0 = jnp.where(jnp.all(jnp.abs(v0) < CCD_EPS), v0 + jnp.array([10 * CCD_EPS, 0, 0], v0.dtype), v0)

    def step(s: _MprState) -> _MprState:
        new = support(split(s.direction))
        w, old = join(new.w), s.portal.points
        v = old.w
        height = inner(w, s.direction)
        in_mode = [s.mode == i for i in range(DONE)]
        finding = s.mode < REFINE

        # the first three points: the third replaces one until the ray passes between them
        normal_of_ray = cross(v0, w)
        min_norm2 = jnp.maximum(CCD_EPS, rounding**2 * inner(v0, v0) * inner(w, w))
        is_collinear = in_mode[FIND_FIRST] & (inner(normal_of_ray, normal_of_ray) < min_norm2)
        swap = in_mode[FIND_SECOND] & (inner(cross(v[0] - v0, w - v0), v0) > 0)
        outside1 = in_mode[FIND_THIRD] & (inner(cross(v[0], w), v0) < -CCD_EPS)
        outside2 = in_mode[FIND_THIRD] & ~outside1 & (inner(cross(w, v[1]), v0) < -CCD_EPS)

        # the portal with the new point in place of the one that it makes needless
        across = cross(w, v0)
        is_above = inner(v, across) > 0
        replaced = jnp.where(is_above[0], jnp.where(is_above[1], 0, 2), jnp.where(is_above[2], 1, 0))
        reached = jnp.min(height - inner(v, s.direction)) <= tolerance + rounding * jnp.max(jnp.abs(join(new.a)))
        separated = jnp.where(finding, height < CCD_EPS, in_mode[REFINE] & ((height <= -CCD_EPS) | reached))
        converged = in_mode[EXPAND] & (reached | (s.k > iterations))
        replaced = jnp.where(finding, jnp.where(outside1 | swap, 1, jnp.where(outside2, 0, s.mode)), replaced)
        points = old.put(replaced, new)
        points = jax.tree.map(lambda x, y: jnp.where(swap, x, y), _swapped_points(old, new), points)
        points = jax.tree.map(lambda x, y: jnp.where(converged, x, y), old, points)

        # the next direction: across the ray, across its plane with the first two points, or out of the portal
        v = points.w
        seeks_third = in_mode[FIND_SECOND] | outside1 | outside2
        base = jnp.where(seeks_third, v0, v[0])
        raw_direction = cross(jnp.where(seeks_third, v[0], v[1]) - base, jnp.where(seeks_third, v[1], v[2]) - base)
        raw_direction = jnp.where(in_mode[FIND_FIRST], normal_of_ray, raw_direction)
        square = inner(raw_direction, raw_direction)
        no_direction = ~(square > 0)
        direction = raw_direction * (1 / jnp.sqrt(jnp.where(no_direction, 1, square)))
        encloses_origin = in_mode[EXPAND] | (inner(direction, v[0]) > -CCD_EPS)
        next_mode = jnp.where(encloses_origin, EXPAND, REFINE)
        mode = jnp.where(in_mode[FIND_FIRST], FIND_SECOND, jnp.where(seeks_third, FIND_THIRD, next_mode))
        end = separated | is_collinear | converged | no_direction | (s.steps >= MAX_STEPS)
        touching = jnp.all(jnp.abs(w) < CCD_EPS)
        on_segment = is_collinear & ~separated & ~touching
        return _MprState(
            mode=jnp.where(end, DONE, mode),
            steps=s.steps + 1,
            k=s.k + in_mode[EXPAND],
            portal=Portal(on_segment | converged, on_segment, points),
            direction=direction,
        )

    zero = jnp.zeros((3, 3), v0.dtype)
    start = _MprState(
        *(jnp.where(active, FIND_FIRST, DONE), jnp.int32(0), jnp.int32(0)),
        Portal(jnp.array(False), jnp.array(False), SupportPoints(zero, zero, jnp.zeros((3, 2), jnp.int32))),
        -unit(v0)[0],
    )
    return jax.lax.while_loop(lambda s: s.mode != DONE, step, start).portal


def _swapped_points(old: SupportPoints, new: SupportPoint) -> SupportPoints:
    """The points with the first one moved to the second entry, and the new one put first."""
    return old.put(1, old.at(0)).put(0, new)
