"""Planes against spheres, capsules, cylinders and boxes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.convex.hull import Rim
from jaxsim.engine.collision.shapes import Geoms, Hits, single, small, unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

FAR = 0.3  # further vertices of a mesh are this far from the first, relative to its bound
CORNERS = np.array([c[::-1] for c in itertools.product([-1.0, 1.0], repeat=3)])  # x changes fastest


def plane_sphere(a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A plane and a sphere: one contact."""
    normal, radius = a.axis, b.size[:, 0]
    height = inner(b.pos - a.pos, normal)
    dist = height - radius
    return single(dist, b.pos - normal * (0.5 * dist + radius)[:, None], normal, height <= margin + radius)


def plane_capsule(a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A plane and a capsule: one contact for each end, the frame's second axis along the capsule."""
    normal, axis = a.axis[:, None], b.axis
    radius = b.size[:, :1]
    segment = axis * b.size[:, 1:2]
    ends = jnp.stack([b.pos + segment, b.pos - segment], axis=1)
    height = inner(ends - a.pos[:, None], normal)
    dist = height - radius
    pos = ends - normal * (0.5 * dist + radius)[..., None]
    shape = pos.shape
    return Hits(
        dist,
        pos,
        jnp.broadcast_to(normal, shape),
        height <= margin[:, None] + radius,
        jnp.broadcast_to(axis[:, None], shape),
    )


def plane_cylinder(a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A plane and a cylinder: the lowest point of each cap and two more that make a triangle on the lower one."""
    normal, axis = a.axis, b.axis
    along = inner(normal, axis)
    flip = jnp.where(along > 0, -1.0, 1.0).astype(along.dtype)
    axis, along = axis * flip[:, None], along * flip
    height = inner(b.pos - a.pos, normal)
    radius, half = b.size[:, :1], b.size[:, 1]
    down = axis * along[:, None] - normal
    square = inner(down, down)[:, None]
    tilted = square >= small(square.dtype) ** 2
    rim = radius * jnp.where(tilted, down / jnp.sqrt(jnp.where(tilted, square, 1)), b.mat[:, :, 0])
    drop = inner(rim, normal)
    axis, along = axis * half[:, None], along * half
    side = unit(cross(rim, axis))[0] * radius * np.sqrt(0.75)

    dist = jnp.stack([height + along + drop, height - along + drop] + 2 * [height + along - 0.5 * drop], axis=1)
    points = jnp.stack([rim + axis, rim - axis, side + axis - 0.5 * rim, axis - side - 0.5 * rim], axis=1)
    pos = b.pos[:, None] + points - 0.5 * dist[..., None] * normal[:, None]
    near = dist <= margin[:, None]
    return Hits(dist, pos, jnp.broadcast_to(normal[:, None], pos.shape), near & near[:, :1])


def plane_box(a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A plane and a box: the first four of the lower corners that are near."""
    normal = a.axis[:, None]
    corner = matvec(b.mat[:, None], CORNERS.astype(b.size.dtype) * b.size[:, None])
    height = inner(corner, normal)
    dist = inner(b.pos - a.pos, normal[:, 0])[:, None] + height
    near = (dist <= margin[:, None]) & (height <= 0)
    pos = corner + b.pos[:, None] - 0.5 * dist[..., None] * normal
    return Hits(dist, pos, jnp.broadcast_to(normal, pos.shape), near & (jnp.cumsum(near, axis=1) <= 4))


def plane_ellipsoid(a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A plane and an ellipsoid: one contact at the lowest point."""
    normal = a.axis
    local = matvec_t(b.mat, normal) * b.size
    length = safe.norm(local)
    lowest = b.pos - matvec(b.mat, b.size * safe.divide(local, length[:, None]))
    dist = inner(lowest - a.pos, normal)
    return single(dist, lowest - 0.5 * dist[:, None] * normal, normal, dist <= margin)


def plane_mesh(rim: Rim, a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A plane and the hull of a mesh: the lowest vertex and up to two of its neighbours."""
    normal = a.axis
    row, vert = rim.hulls.row(b.id), rim.hulls.vertices(b.id)
    down = matvec_t(b.mat, -normal)
    best = jnp.argmax(inner(vert, down[:, None]), axis=1)
    beside = jnp.asarray(rim.beside)[row, best]
    place = jnp.concatenate([best[:, None], jnp.maximum(beside, 0)], axis=1)
    point = b.pos[:, None] + matvec(b.mat[:, None], jnp.take_along_axis(vert, place[..., None], axis=1))
    dist = inner(point - a.pos[:, None], normal[:, None])
    pos = point - 0.5 * dist[..., None] * normal[:, None]
    gap = jax.lax.stop_gradient(point - pos[:, :1])
    apart = jnp.sqrt(inner(gap, gap)) >= FAR * rim.rbound[b.id][:, None]
    near = jnp.concatenate([dist[:, :1] <= margin[:, None], (dist[:, 1:] < margin[:, None]) & apart[:, 1:]], axis=1)
    near &= near[:, :1] & (jnp.concatenate([best[:, None], beside], axis=1) >= 0)
    near &= jnp.cumsum(near, axis=1) <= 3
    return Hits(dist, pos, jnp.broadcast_to(normal[:, None], pos.shape), near)
