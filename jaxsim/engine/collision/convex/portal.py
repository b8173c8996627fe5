"""The portal at which MPR ends, and its contact: depth, position and normal; for one pair.

A portal is a triangle of support points of the Minkowski difference that the ray from the difference of the centres
through the origin passes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.convex.gjk import SupportPoints
from jaxsim.engine.collision.convex.support import ConvexShape, centre
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

CCD_EPS = float(np.finfo(np.float64).eps)  # libccd's tolerance for lengths, squares and volumes, in either precision


class MprContact(NamedTuple):
    """Whether the shapes penetrate, depth, position (3,), and the unit vector from the first to the second (3,)."""

    hit: Array
    depth: Array
    pos: Array
    normal: Array


class Portal(NamedTuple):
    """The end of MPR: whether there is contact, if the origin is on the segment to the first point, points (3,)."""

    hit: Array
    on_segment: Array
    points: SupportPoints


def portal_contact(a: ConvexShape, b: ConvexShape, portal: Portal) -> MprContact:
    """Compute the contact of a portal, differentiable with respect to its points and the shapes' centres."""
    points = portal.points
    v = points.w
    weight = jax.lax.stop_gradient(nearest_weights(v))
    nvertex = jnp.sum(weight != 0)
    first, last = jnp.argmax(weight != 0), 2 - jnp.argmax(weight[::-1] != 0)
    # the point of the triangle nearest to the origin: inside, on a side, or a corner
    outward = unit(cross(v[1] - v[0], v[2] - v[0]))[0]
    height = inner(outward, v[0])
    side = unit(v[last] - v[first])[0]
    on_side = v[first] - side * inner(side, v[first])
    nearest = jnp.where(nvertex == 3, outward * height, jnp.where(nvertex == 2, on_side, v[first]))
    nearest = jnp.where(portal.on_segment, v[0], nearest)
    normal, depth = unit(nearest, CCD_EPS)
    on_face = (nvertex == 3) & ~portal.on_segment
    normal = jnp.where(on_face, outward * jnp.where(height < 0, -1, 1), normal)
    hit = portal.hit & (depth >= CCD_EPS)

    c1, c2 = centre(a), centre(b)
    v0 = c1 - c2
    volume0 = inner(cross(v[0], v[1]), v[2])
    volumes = jnp.stack([inner(cross(v[2], v[1]), v0), inner(cross(v0, v[0]), v[2]), inner(cross(v[1], v[0]), v0)])
    behind = volume0 + jnp.sum(volumes) < CCD_EPS
    areas = jnp.stack([inner(cross(v[i], v[j]), outward) for i, j in ((1, 2), (2, 0), (0, 1))])
    volume0, volumes = jnp.where(behind, 0, volume0), jnp.where(behind, areas, volumes)
    total = volume0 + jnp.sum(volumes)
    mean = volume0 * (c1 + c2) + jnp.sum(volumes[:, None] * (points.a + points.b), axis=0)
    pos = 0.5 * jnp.where(portal.on_segment, points.a[0] + points.b[0], safe.divide(mean, total))
    return MprContact(hit, *[jnp.where(hit, x, 0) for x in (depth, pos, normal)])


def nearest_weights(v: Array) -> Array:
    """Compute weights (3,) of a triangle's (3, 3) point nearest to the origin; of its sides if it is degenerate."""
    edge1, edge2 = v[1] - v[0], v[2] - v[0]
    vv, ww, r = inner(edge1, edge1), inner(edge2, edge2), inner(edge1, edge2)
    p, q = inner(v[0], edge1), inner(v[0], edge2)
    det = vv * ww - r * r
    rounding = 4 * float(jnp.finfo(v.dtype).eps)
    has_area = (det >= CCD_EPS) & (det > rounding * vv * ww)
    s = (q * r - ww * p) / jnp.where(has_area, det, 1)
    t = (-s * r - q) / jnp.where(has_area, ww, 1)
    within = has_area & (s > -CCD_EPS) & (t > -CCD_EPS) & (s + t <= 1 + CCD_EPS)
    first, last = v[np.array([0, 0, 1])], v[np.array([1, 2, 2])]
    gap = last - first
    length = inner(gap, gap)
    fraction = jnp.clip(-inner(first, gap) / jnp.where(length > 0, length, 1), 0, 1)
    near = first + fraction[:, None] * gap
    best = jnp.argmin(inner(near, near))
    x = fraction[best]
    sides = [jnp.stack([1 - x, x, 0 * x]), jnp.stack([1 - x, 0 * x, x]), jnp.stack([0 * x, 1 - x, x])]
    on_side = jnp.stack(sides)[best]
    return jnp.where(within, jnp.stack([1 - s - t, s, t]), on_side)
