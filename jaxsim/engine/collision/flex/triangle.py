"""Colliders of triangles with a radius: with spheres, boxes and capsules. Source: engine_collision_primitive.c.

A triangle is three vertices (n, 3, 3). Normals point to the triangle. As in MuJoCo, the normal flips when the centre of
a sphere crosses the plane of a triangle.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.flex.rounding import along, cross, direction, dot, turned, turned_back
from jaxsim.engine.collision.shapes import BOX_SIGNS, Geoms, PairContacts
from jaxsim.math import safe
from jaxsim.math.safe import Array

EDGES = np.array([[0, 1], [1, 2], [2, 0]], np.int32)  # of a triangle
END = MINVAL  # of a capsule's segment, in parts of its length


def _on_segment(p: Array, u: Array, v: Array, one: Array) -> tuple[Array, Array]:
    """Return the point of a segment (u, v) nearest to p, all (..., 2), and its distance (...,)."""
    uv, up = v - u, p - u
    a = dot(uv, up, one) / jnp.maximum(dot(uv, uv, one), MINVAL)
    inside = along(u, uv, jnp.clip(a, 0, 1), one)
    nearest = jnp.where((a <= 0)[..., None], u, jnp.where((a >= 1)[..., None], v, inside))
    return nearest, safe.sqrt(dot(nearest - p, nearest - p, one))


def _area_sign(p: Array, u: Array, v: Array, one: Array) -> Array:
    """Return the sign of the area of a flat triangle with corners (..., 2)."""
    a, b = p - v, u - v
    return jnp.sign(a[..., 0] * b[..., 1] * one - b[..., 0] * a[..., 1] * one)


def sphere_triangle(
    pos: Array, radius: Array, triangle: Array, thickness: Array, margin: Array, one: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the distance, position, normal, and mask within the margin, of spheres and triangles; any leading axes.

    `one` is that of `rounding`.
    """
    bound = margin + radius + thickness
    origin = triangle[..., 0, :]
    s, a, b = pos - origin, triangle[..., 1, :] - origin, triangle[..., 2, :] - origin
    plane = direction(cross(a, b, one), one)[0]
    height = dot(plane, s, one)
    foot = along(s, plane, -height, one)
    first, length = direction(a, one)
    second = direction(cross(plane, a, one), one)[0]
    zero = jnp.zeros_like(length)
    p = jnp.stack([dot(first, foot, one), dot(second, foot, one)], axis=-1)
    corners = (
        jnp.zeros_like(p),
        jnp.stack([length, zero], axis=-1),
        jnp.stack([dot(first, b, one), dot(second, b, one)], axis=-1),
    )
    signs = [_area_sign(p, corners[i], corners[j], one) for i, j in EDGES]
    inside = (signs[0] == signs[1]) & (signs[1] == signs[2])
    (x0, d0), (x1, d1), (x2, d2) = (_on_segment(p, corners[i], corners[j], one) for i, j in EDGES)
    is_first, is_second = (d0 < d1) & (d0 < d2), d1 < d2
    edge = jnp.where(is_first[..., None], x0, jnp.where(is_second[..., None], x1, x2))
    on_edge = along(first * edge[..., :1] * one, second, edge[..., 1], one)
    nearest = jnp.where(inside[..., None], foot, on_edge)
    normal, gap = direction(nearest - s, one)
    dist = gap - radius - thickness
    near = (jnp.abs(height) <= bound) & (gap <= bound)
    return dist, along(pos, normal, radius + dist / 2, one), normal, near


def sphere_triangles(a: Geoms, triangle: Array, thickness: Array, margin: Array, one: Array) -> PairContacts:
    """Compute the contact of a sphere and a triangle."""
    found = sphere_triangle(a.pos, a.size[:, 0], triangle, thickness, margin, one)
    return PairContacts(*(x[:, None] for x in found))


def box_triangles(a: Geoms, triangle: Array, thickness: Array, margin: Array, one: Array) -> PairContacts:
    """Compute the contacts of a box and a triangle.

    Tests three vertices against the box and eight corners against the triangle.
    """
    local = turned_back(a.mat[:, None], triangle - a.pos[:, None], one)
    size, radius, reach = a.size[:, None], thickness[:, None], margin[:, None]
    beyond = jnp.abs(local) - size
    axis = jnp.argmax(beyond, axis=-1)
    depth = safe.greatest(beyond)
    dist = depth - radius
    near = (dist <= reach) & jnp.all(jnp.abs(local) <= size + (reach + radius)[..., None], axis=-1)
    outward = jnp.where(np.arange(3) == axis[..., None], jnp.where(local > 0, 1.0, -1.0).astype(local.dtype), 0)
    normal = turned(a.mat[:, None], outward, one)
    pos = along(triangle, normal, -(radius + dist * 0.5), one)

    corner = a.pos[:, None] + turned(a.mat[:, None], size * BOX_SIGNS.astype(local.dtype), one)
    found = sphere_triangle(corner, jnp.zeros_like(corner[..., 0]), triangle[:, None], radius, reach, one)
    both = zip((dist, pos, normal, near), found, strict=True)
    return PairContacts(*(jnp.concatenate(x, axis=1) for x in both))


def capsule_triangles(a: Geoms, triangle: Array, thickness: Array, margin: Array, one: Array) -> PairContacts:
    """Compute the contacts of a capsule and a triangle.

    Tests both ends against the triangle and three vertices against the segment.
    """
    half, radius = a.size[:, 1], a.size[:, 0]
    ends = jnp.stack([along(a.pos, a.axis, sign * half, one) for sign in (-1, 1)], axis=1)
    found = sphere_triangle(ends, radius[:, None], triangle[:, None], thickness[:, None], margin[:, None], one)

    segment = (ends[:, 1] - ends[:, 0])[:, None]
    t = safe.divide(dot(triangle - ends[:, :1], segment, one), (4 * half * half)[:, None])
    nearest = along(ends[:, :1], segment, t, one)
    normal, gap = direction(triangle - nearest, one)
    sum_radius = (radius + thickness)[:, None]
    near = (t > END) & (t < 1 - END) & (gap <= sum_radius + margin[:, None])
    pos = 0.5 * along(nearest + triangle, normal, jnp.broadcast_to((radius - thickness)[:, None], gap.shape), one)
    both = zip(found, (gap - sum_radius, pos, normal, near), strict=True)
    return PairContacts(*(jnp.concatenate(x, axis=1) for x in both))


def face_vertex(triangle: Array, vertex: Array, thickness: Array, one: Array) -> PairContacts:
    """Compute the contact of each face (n, 3, 3) of a tetrahedron with the opposite vertex (n, 3).

    Source: planeVertex.
    """
    a, b = triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0]
    plane = direction(cross(a, b, one), one)[0]
    height = dot(vertex - triangle[:, 0], plane, one)
    dist = -height - 2 * thickness
    pos = along(vertex, plane, -0.5 * height, one)
    return PairContacts(dist[:, None], pos[:, None], -plane[:, None], (height > -2 * thickness)[:, None])
