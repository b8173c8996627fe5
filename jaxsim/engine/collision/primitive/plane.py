"""Colliders of planes with spheres, capsules, cylinders, boxes, ellipsoids and mesh hulls."""

import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.convex.hull import PlaneMeshContext, touching_vertices
from jaxsim.engine.collision.shapes import BOX_SIGNS, Geoms, PairContacts, min_length, single_contact, unit
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

MESH_MIN_SPREAD = 0.3  # of further vertices of a mesh from the first, relative to its bound


def plane_sphere(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contact of a plane and a sphere."""
    normal, radius = a.axis, b.size[:, 0]
    height = inner(b.pos - a.pos, normal)
    dist = height - radius
    return single_contact(dist, b.pos - normal * (0.5 * dist + radius)[:, None], normal, height <= margin + radius)


def plane_capsule(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contacts of a plane and the ends of a capsule; the frame's second axis is along the capsule."""
    normal, axis = a.axis[:, None], b.axis
    radius = b.size[:, :1]
    segment = axis * b.size[:, 1:2]
    ends = jnp.stack([b.pos + segment, b.pos - segment], axis=1)
    height = inner(ends - a.pos[:, None], normal)
    dist = height - radius
    pos = ends - normal * (0.5 * dist + radius)[..., None]
    shape = pos.shape
    return PairContacts(
        dist,
        pos,
        jnp.broadcast_to(normal, shape),
        height <= margin[:, None] + radius,
        jnp.broadcast_to(axis[:, None], shape),
    )


def plane_cylinder(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contacts of a plane with a cylinder: the lowest point of each cap, and two more on the lower cap."""
    normal, axis = a.axis, b.axis
    cosine = inner(normal, axis)
    sign = jnp.where(cosine > 0, -1.0, 1.0).astype(cosine.dtype)
    axis, cosine = axis * sign[:, None], cosine * sign
    height = inner(b.pos - a.pos, normal)
    radius, half = b.size[:, :1], b.size[:, 1]
    down = axis * cosine[:, None] - normal
    down2 = inner(down, down)[:, None]
    tilted = down2 >= min_length(down2.dtype) ** 2
    rim = radius * jnp.where(tilted, down / jnp.sqrt(jnp.where(tilted, down2, 1)), b.mat[:, :, 0])
    drop = inner(rim, normal)
    axis, cosine = axis * half[:, None], cosine * half
    side = unit(cross(rim, axis))[0] * radius * np.sqrt(0.75)

    dist = jnp.stack([height + cosine + drop, height - cosine + drop] + 2 * [height + cosine - 0.5 * drop], axis=1)
    points = jnp.stack([rim + axis, rim - axis, side + axis - 0.5 * rim, axis - side - 0.5 * rim], axis=1)
    pos = b.pos[:, None] + points - 0.5 * dist[..., None] * normal[:, None]
    near = dist <= margin[:, None]
    return PairContacts(dist, pos, jnp.broadcast_to(normal[:, None], pos.shape), near & near[:, :1])


def plane_box(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contacts of a plane with a box: the first four of its lower corners within the margin."""
    normal = a.axis[:, None]
    corner = matvec(b.mat[:, None], BOX_SIGNS.astype(b.size.dtype) * b.size[:, None])
    height = inner(corner, normal)
    dist = inner(b.pos - a.pos, normal[:, 0])[:, None] + height
    near = (dist <= margin[:, None]) & (height <= 0)
    pos = corner + b.pos[:, None] - 0.5 * dist[..., None] * normal
    return PairContacts(dist, pos, jnp.broadcast_to(normal, pos.shape), near & (jnp.cumsum(near, axis=1) <= 4))


def plane_ellipsoid(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contact of a plane with the lowest point of an ellipsoid."""
    normal = a.axis
    local = matvec_t(b.mat, normal) * b.size
    length = safe.norm(local)
    lowest = b.pos - matvec(b.mat, b.size * safe.divide(local, length[:, None]))
    dist = inner(lowest - a.pos, normal)
    return single_contact(dist, lowest - 0.5 * dist[:, None] * normal, normal, dist <= margin)


def plane_mesh(context: PlaneMeshContext, a: Geoms, b: Geoms, margin: Array, count: Array) -> PairContacts:
    """Compute the contacts of a plane with the lowest vertex of a mesh hull and up to two of its neighbours."""
    normal = a.axis
    down, height = matvec_t(b.mat, -normal), inner(b.pos - a.pos, normal)
    apart = MESH_MIN_SPREAD * context.rbound[b.id]
    vertex, number = touching_vertices(context, b, down, height, margin, apart, count)
    local = jnp.stack([gather(x, vertex) for x in context.hulls.hulls.vert], axis=-1)
    point = b.pos[:, None] + matvec(b.mat[:, None], local)
    dist = inner(point - a.pos[:, None], normal[:, None])
    pos = point - 0.5 * dist[..., None] * normal[:, None]
    return PairContacts(dist, pos, jnp.broadcast_to(normal[:, None], pos.shape), np.arange(3) < number[:, None])
