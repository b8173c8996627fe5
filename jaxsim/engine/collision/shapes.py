"""What a collider takes and gives, and the small vector algebra that colliders share.

A collider is a function `(a: Geoms, b: Geoms, margin) -> Hits` over n pairs at once; those that need more of the model
than poses and sizes take, first, what their `setup(m, g1, g2)` made of it for all geoms of the group. Geom types
ascend within a pair; normals point from the first geom to the second. A collider gives k slots for every pair; a slot
that is not valid may hold any finite numbers. Slots stand in the order in which the reference reports the contacts of
a pair.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.core.types import MINVAL
from jaxsim.math import safe
from jaxsim.math.arrays import inner
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array


class Geoms(NamedTuple):
    """One side of n pairs: world positions (n, 3), rotations (n, 3, 3), sizes (n, 3), geom ids (n,), z axes (n, 3).

    The axes are the third columns of the rotations, fetched by themselves: planes and capsules need no more.
    """

    pos: Array
    mat: Array
    size: Array
    id: Array = None
    axis: Array = None


def posed(fetch: Callable[[Array, Array], Array], pos: Array, mat: Array, size: Array, geom: Array) -> Geoms:
    """Geoms of these ids; `fetch(x, geom)` takes rows of all geoms' poses, `size` is that of these already."""
    mat = mat.reshape(-1, 3, 3)
    return Geoms(fetch(pos, geom), fetch(mat, geom), size, geom, fetch(mat[:, :, 2], geom))


class Hits(NamedTuple):
    """Contacts of n pairs in k slots: dist (n, k), pos and normal (n, k, 3), valid (n, k), tangent (n, k, 3) or None.

    The tangent asks for a direction of the contact frame's second axis; None leaves it to the rule of the frame. `lost`
    counts parts of pairs that found no room in a search of fixed size.
    """

    dist: Array
    pos: Array
    normal: Array
    valid: Array
    tangent: Array | None = None
    lost: Array | int = 0


def small(dtype: Any) -> float:
    """The length below which a direction means nothing: the reference's in double precision, rounding in single."""
    return MINVAL if dtype == jnp.float64 else 4 * float(jnp.finfo(dtype).eps)


def unit(v: Array, eps: float = MINVAL) -> tuple[Array, Array]:
    """Unit vectors and lengths; the x axis where the length is below `eps`."""
    return safe.normalize(v, default=jnp.array([1.0, 0, 0], v.dtype), eps=eps)


def single(dist: Array, pos: Array, normal: Array, valid: Array) -> Hits:
    """Hits with one slot a pair."""
    return Hits(dist[:, None], pos[:, None], normal[:, None], valid[:, None])


def stack(*hits: Hits) -> Hits:
    """Hits of the same pairs, their slots one after another."""
    parts = [jnp.concatenate(part, axis=1) for part in zip(*[h[:4] for h in hits], strict=True)]
    tangent = None if hits[0].tangent is None else jnp.concatenate([h.tangent for h in hits], axis=1)
    return Hits(*parts, tangent)


def make_frame(normal: Array, tangent: Array | None) -> Array:
    """Contact frames (n, 9), rows normal, second and third axis, from unit normals (n, 3): mju_makeFrame.

    A tangent shorter than a half is replaced by the y axis, or by z where the normal is close to y. One along the
    normal, of an upright capsule, gives x: that is the reference's rule too.
    """
    y = jnp.array([0.0, 1, 0], normal.dtype)
    z = jnp.array([0.0, 0, 1], normal.dtype)
    second = jnp.where(jnp.abs(normal[:, 1:2]) < 0.5, y, z)
    if tangent is not None:
        second = jnp.where(inner(tangent, tangent)[:, None] < 0.25, second, tangent)
    second = unit(second - normal * inner(normal, second)[:, None], small(normal.dtype))[0]
    return jnp.concatenate([normal, second, cross(normal, second)], axis=1)
