"""Colliders of spheres with spheres, capsules, cylinders and boxes."""

import jax.numpy as jnp

from jaxsim.core.types import MINVAL
from jaxsim.engine.collision.shapes import Geoms, PairContacts, single_contact, unit
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array


def spheres(
    pos1: Array, radius1: Array, pos2: Array, radius2: Array, margin: Array, z1: Array, z2: Array
) -> tuple[Array, Array, Array, Array]:
    """Compute the distance, position, normal, and mask within the margin, of spheres; arrays may have any leading axes.

    Where the centres coincide, the normal is the cross product of the geoms' z axes, or the x axis.
    """
    gap = pos2 - pos1
    length = safe.norm(gap)
    has_direction = length >= MINVAL
    normal = jnp.where(
        has_direction[..., None], gap / jnp.where(has_direction, length, 1)[..., None], unit(cross(z1, z2))[0]
    )
    dist = length - radius1 - radius2
    pos = pos1 + normal * (radius1 + 0.5 * dist)[..., None]
    return dist, pos, normal, dist <= margin


def sphere_sphere(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contact of two spheres."""
    return single_contact(*spheres(a.pos, a.size[:, 0], b.pos, b.size[:, 0], margin, a.axis, b.axis))


def sphere_capsule(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contact of a sphere and the nearest sphere inside a capsule."""
    axis, half = b.axis, b.size[:, 1]
    x = jnp.clip(inner(axis, a.pos - b.pos), -half, half)
    nearest = b.pos + axis * x[:, None]
    return single_contact(*spheres(a.pos, a.size[:, 0], nearest, b.size[:, 0], margin, a.axis, axis))


def sphere_cylinder(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contact of a sphere and the side, a cap or the rim of a cylinder."""
    axis, radius, half = b.axis, b.size[:, 0], b.size[:, 1]
    offset = a.pos - b.pos
    axial = inner(axis, offset)
    radial = offset - axis * axial[:, None]
    radial2 = inner(radial, radial)
    radius_of_centre = safe.sqrt(radial2)
    within_side, within_cap = jnp.abs(axial) < half, radial2 < radius * radius
    inside = within_side & within_cap
    cap_is_nearer = half - jnp.abs(axial) < radius - radius_of_centre
    side, cap = within_side & ~(inside & cap_is_nearer), within_cap & ~(inside & ~cap_is_nearer)

    # side: a sphere on the axis; rim: a point; both are sphere against sphere
    up = jnp.where(axial > 0, 1.0, -1.0).astype(axial.dtype)
    rim = axis * (up * half)[:, None] + radial * safe.divide(radius, radius_of_centre)[:, None]
    centre = b.pos + jnp.where(side[:, None], axis * axial[:, None], rim)
    dist, pos, normal, _ = spheres(a.pos, a.size[:, 0], centre, jnp.where(side, radius, 0), margin, a.axis, axis)
    # cap: a plane against a sphere, its normal reversed
    cap &= ~side
    outward = axis * up[:, None]
    cap_dist = inner(offset, outward) - half - a.size[:, 0]
    cap_pos = a.pos - outward * (0.5 * cap_dist + a.size[:, 0])[:, None]
    dist = jnp.where(cap, cap_dist, dist)
    pos = jnp.where(cap[:, None], cap_pos, pos)
    normal = jnp.where(cap[:, None], -outward, normal)
    return single_contact(dist, pos, normal, dist <= margin)


def sphere_in_box(pos1: Array, radius: Array, b: Geoms, margin: Array) -> tuple[Array, Array, Array, Array]:
    """Compute the distance, position, normal, and mask within the margin, of spheres with centres (n, 3) and boxes.

    A sphere whose centre is inside the box is pushed out through the nearest face.
    """
    centre = matvec_t(b.mat, pos1 - b.pos)
    clamped = jnp.clip(centre, -b.size, b.size)
    inward, gap = unit(clamped - centre)
    inside = gap <= MINVAL

    # signed: a centre on a face may be rounded to outside, where its depth still grows inwards
    face_depths = jnp.stack([b.size + centre, b.size - centre], axis=-1).reshape(*gap.shape, 6)
    face = jnp.argmin(face_depths, axis=-1)
    depth = safe.least(face_depths)
    sign = jnp.where(face % 2, -1.0, 1.0).astype(depth.dtype)
    nearest = jnp.where(jnp.arange(3) == (face // 2)[..., None], sign[..., None], 0)

    normal = jnp.where(inside[..., None], nearest, inward)
    surface = jnp.where(
        inside[..., None],
        centre + 0.5 * nearest * (radius - depth)[..., None],
        0.5 * (clamped + centre + inward * radius[..., None]),
    )
    dist = jnp.where(inside, -depth, gap) - radius
    near = jnp.where(inside, 0, gap) - radius <= margin
    return dist, b.pos + matvec(b.mat, surface), matvec(b.mat, normal), near


def sphere_box(a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contact of a sphere and a box."""
    return single_contact(*sphere_in_box(a.pos, a.size[:, 0], b, margin))
