"""The portal that portal refinement ends at, and what follows from it: depth, position and normal; for one pair.

A portal is a triangle of support points of the difference of two shapes that the ray from the difference of their
centres through the origin passes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.convex.gjk import Points
from jaxsim.engine.collision.convex.support import Shape, centre
from jaxsim.engine.collision.shapes import unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

ZERO = float(np.finfo(np.float64).eps)  # lengths, squares and volumes below this are none, in either precision


class Contact(NamedTuple):
    """Whether the shapes penetrate, how deep, where (3,), and the unit vector from the first to the second (3,)."""

    hit: Array
    depth: Array
    pos: Array
    normal: Array


class Portal(NamedTuple):
    """Where the search ended: whether there is contact, whether the ray meets the first support point, points (3,)."""

    hit: Array
    straight: Array
    points: Points


def answer(a: Shape, b: Shape, portal: Portal) -> Contact:
    """Depth, position and normal by formulas that differentiate for points that move with their shapes."""
    points = portal.points
    v = points.w
    weight = jax.lax.stop_gradient(weights(v))
    count = jnp.sum(weight != 0)
    first, last = jnp.argmax(weight != 0), 2 - jnp.argmax(weight[::-1] != 0)
    # the point of the triangle nearest to the origin: on its plane, on a side, or a corner
    outward = unit(cross(v[1] - v[0], v[2] - v[0]))[0]
    height = inner(outward, v[0])
    along = unit(v[last] - v[first])[0]
    on_side = v[first] - along * inner(along, v[first])
    nearest = jnp.where(count == 3, outward * height, jnp.where(count == 2, on_side, v[first]))
    nearest = jnp.where(portal.straight, v[0], nearest)
    normal, depth = unit(nearest, ZERO)
    plane = (count == 3) & ~portal.straight
    normal = jnp.where(plane, outward * jnp.where(height < 0, -1, 1), normal)
    hit = portal.hit & (depth >= ZERO)

    c1, c2 = centre(a), centre(b)
    v0 = c1 - c2
    zeroth = inner(cross(v[0], v[1]), v[2])
    minor = jnp.stack([inner(cross(v[2], v[1]), v0), inner(cross(v0, v[0]), v[2]), inner(cross(v[1], v[0]), v0)])
    behind = zeroth + jnp.sum(minor) < ZERO
    area = jnp.stack([inner(cross(v[i], v[j]), outward) for i, j in ((1, 2), (2, 0), (0, 1))])
    zeroth, minor = jnp.where(behind, 0, zeroth), jnp.where(behind, area, minor)
    total = zeroth + jnp.sum(minor)
    both = zeroth * (c1 + c2) + jnp.sum(minor[:, None] * (points.a + points.b), axis=0)
    pos = 0.5 * jnp.where(portal.straight, points.a[0] + points.b[0], safe.divide(both, total))
    return Contact(hit, *[jnp.where(hit, x, 0) for x in (depth, pos, normal)])


def weights(v: Array) -> Array:
    """Weights (3,) of the point of a triangle (3, 3) nearest to the origin; one of next to no area is its sides."""
    one, two = v[1] - v[0], v[2] - v[0]
    vv, ww, r = inner(one, one), inner(two, two), inner(one, two)
    p, q = inner(v[0], one), inner(v[0], two)
    square = vv * ww - r * r
    rounding = 4 * float(jnp.finfo(v.dtype).eps)
    solid = (square >= ZERO) & (square > rounding * vv * ww)
    s = (q * r - ww * p) / jnp.where(solid, square, 1)
    t = (-s * r - q) / jnp.where(solid, ww, 1)
    within = solid & (s > -ZERO) & (t > -ZERO) & (s + t <= 1 + ZERO)
    first, last = v[np.array([0, 0, 1])], v[np.array([1, 2, 2])]
    gap = last - first
    length = inner(gap, gap)
    share = jnp.clip(-inner(first, gap) / jnp.where(length > 0, length, 1), 0, 1)
    near = first + share[:, None] * gap
    best = jnp.argmin(inner(near, near))
    x = share[best]
    side = jnp.stack([jnp.stack([1 - x, x, 0 * x]), jnp.stack([1 - x, 0 * x, x]), jnp.stack([0 * x, 1 - x, x])])[best]
    return jnp.where(within, jnp.stack([1 - s - t, s, t]), side)
