"""Rays against signed distance fields: steps along the ray, each as long as the distance to the surface.

The search goes without derivatives. The distance is then corrected by one step of Newton's method along the ray, whose
derivatives are those of the ray's first point on the surface. Source: mj_raySdf.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import GeomType
from jaxsim.engine.ray.primitive import DISTANCES
from jaxsim.engine.structure.distance_field import FieldGeoms, Fields, distance_fields, distance_of, gradient_of
from jaxsim.math import component as c
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner, take
from jaxsim.math.component import Vector
from jaxsim.math.safe import Array

STEPS = 40
REACHED = 1e-7  # distance to the surface at which a search ends, in double precision
FAR = 1e6  # a larger distance ends a search without a hit


def search(m: Any, geoms: np.ndarray, p: Vector, v: Vector, front_only: bool) -> Array:
    """Return distances (n, k) along rays to fields, infinite without a hit, as MuJoCo does in units of length.

    `geoms` (k,) are static ids of geoms; p, v are components (n, k) of the rays in their frames. With `front_only` rays
    do not hit surfaces from within.
    """
    fields, own = distance_fields(m, geoms), FieldGeoms(take(m.geom_size, geoms), geoms)
    start, direction = c.join(p), safe.normalize(c.join(v))[0]
    total = _walk(fields, own, start, direction, jnp.isfinite(DISTANCES[GeomType.BOX](c.split(own.size), p, v)))
    met = jnp.isfinite(total)
    if front_only:
        outward = gradient_of(fields, own, start + jnp.where(met, total, 0)[..., None] * direction)
        met &= inner(outward, direction) < 0
    return jnp.where(met, total, jnp.inf)


def _walk(fields: Fields, geoms: FieldGeoms, start: Array, direction: Array, near: Array) -> Array:
    """Return distances (n, k) at which rays `near` a field reach its surface, infinite without a hit."""
    reached = _reached(start)

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        total, going = state
        gap = jnp.abs(distance_of(fields, geoms, start + total[..., None] * direction))
        total = jnp.where(going, total + gap, total)
        lost = going & (gap > FAR)
        return (jnp.where(lost, jnp.inf, total), going & (gap >= reached) & ~lost), None

    (total, going), _ = jax.lax.scan(step, (jnp.zeros_like(start[..., 0]), near), length=STEPS)
    return jnp.where(near & ~going, total, jnp.inf)


def _reached(x: Array) -> float:
    return max(REACHED, 8 * float(jnp.finfo(x.dtype).eps))


def measure(m: Any, geoms: np.ndarray, geom: Array, p: Vector, v: Vector) -> tuple[Array, Array]:
    """Return the distances of rays (n,) from the fields that they meet, and normals (n, 3) there, in their frames.

    `geom` (n,) are ids among the static ids `geoms`.
    """
    fields, own = distance_fields(m, geoms), FieldGeoms(gather(m.geom_size, geom), geom)
    start, direction = c.join(p)[None], safe.normalize(c.join(v))[0][None]
    found = jax.lax.stop_gradient(_walk(fields, own, start, direction, jnp.ones((1, len(geom)), bool)))
    # just before the surface, on which the gradients of some fields are not defined
    total = jnp.where(jnp.isfinite(found), found - _reached(start), 0)

    def along(t: Array) -> Array:
        return distance_of(fields, own, start + t[..., None] * direction)

    gap, slope = jax.jvp(along, (total,), (jnp.ones_like(total),))
    return (total - safe.divide(gap, slope))[0], gradient_of(fields, own, start + total[..., None] * direction)[0]
