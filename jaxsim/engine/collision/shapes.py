"""What a collider takes and gives, and the small vector algebra that colliders share.

A collider is a function `(a: Geoms, b: Geoms, margin) -> Hits` over n pairs at once. Geom types ascend within a pair;
normals point from the first geom to the second. A collider gives k slots for every pair; a slot that is not valid may
hold any finite numbers. Slots stand in the order in which the reference reports the contacts of a pair.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.math import safe
from jaxsim.types import MINVAL

Array = Any


class Geoms(NamedTuple):
    """One side of n pairs: world positions (n, 3), rotations (n, 3, 3), sizes (n, 3)."""

    pos: Array
    mat: Array
    size: Array


class Hits(NamedTuple):
    """Contacts of n pairs in k slots: dist (n, k), pos and normal (n, k, 3), valid (n, k), tangent (n, k, 3) or None.

    The tangent asks for a direction of the contact frame's second axis; None leaves it to the rule of the frame.
    """

    dist: Array
    pos: Array
    normal: Array
    valid: Array
    tangent: Array | None = None


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
