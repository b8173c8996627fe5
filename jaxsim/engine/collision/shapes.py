"""The interface of colliders, and shared vector helpers.

A collider is a function `(a: Geoms, b: Geoms, margin) -> PairContacts` of n pairs at once. A collider that needs more
of the model than poses and sizes takes a context as its first argument, which its `setup(m, g1, g2)` makes for all
pairs of a group. Geom types ascend within a pair, and normals point from the first geom to the second. A collider fills
k slots for every pair; a slot that is not valid may hold any finite numbers. Valid slots are in MuJoCo's order of the
contacts of a pair.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MINVAL
from jaxsim.math import safe
from jaxsim.math.arrays import inner
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array

BOX_SIGNS = np.where((np.arange(8)[:, None] >> np.arange(3)) & 1, 1.0, -1.0)  # of a box's corners, x changes fastest


class Geoms(NamedTuple):
    """One geom of each of n pairs: position (n, 3), rotation (n, 3, 3), size (n, 3), geom id (n,), z axis (n, 3).

    Positions and axes are in the world frame. The z axes are the third columns of the rotations, gathered separately,
    since planes and capsules need no others.
    """

    pos: Array
    mat: Array
    size: Array
    id: Array = None
    axis: Array = None


def posed_geoms(fetch: Callable[[Array, Array], Array], pos: Array, mat: Array, size: Array, geom: Array) -> Geoms:
    """Return the geoms with these ids.

    `fetch(x, geom)` gathers rows of all geoms' poses; `size` (n, 3) holds these geoms' sizes.
    """
    mat = mat.reshape(-1, 3, 3)
    return Geoms(fetch(pos, geom), fetch(mat, geom), size, geom, fetch(mat[:, :, 2], geom))


class PairContacts(NamedTuple):
    """Contacts of n pairs in k slots: dist (n, k), pos and normal (n, k, 3), valid (n, k), tangent (n, k, 3) or None.

    The tangent is the preferred direction of the contact frame's second axis; with None, `make_frame` chooses one.
    `dropped` counts entries beyond the capacity of a search inside the collider.
    """

    dist: Array
    pos: Array
    normal: Array
    valid: Array
    tangent: Array | None = None
    dropped: Array | int = 0


def min_length(dtype: Any) -> float:
    """Return the length below which a vector has no direction: MuJoCo's mjMINVAL in float64, rounding in float32."""
    return MINVAL if dtype == jnp.float64 else 4 * float(jnp.finfo(dtype).eps)


def unit(v: Array, eps: float = MINVAL) -> tuple[Array, Array]:
    """Return the unit vectors and lengths; the x axis where the length is below `eps`."""
    return safe.normalize(v, default=jnp.array([1.0, 0, 0], v.dtype), eps=eps)


def single_contact(dist: Array, pos: Array, normal: Array, valid: Array) -> PairContacts:
    """Return the contacts of n pairs with one slot each."""
    return PairContacts(dist[:, None], pos[:, None], normal[:, None], valid[:, None])


def make_frame(normal: Array, tangent: Array | None) -> Array:
    """Compute contact frames (n, 9), rows normal, second and third axis, from unit normals (n, 3).

    Source: mju_makeFrame.

    A tangent shorter than a half is replaced by the y axis, or by z where the normal is close to y. A tangent parallel
    to the normal, as of an upright capsule on a plane, gives the x axis, as in MuJoCo.
    """
    y = jnp.array([0.0, 1, 0], normal.dtype)
    z = jnp.array([0.0, 0, 1], normal.dtype)
    second = jnp.where(jnp.abs(normal[:, 1:2]) < 0.5, y, z)
    if tangent is not None:
        second = jnp.where(inner(tangent, tangent)[:, None] < 0.25, second, tangent)
    second = unit(second - normal * inner(normal, second)[:, None], min_length(normal.dtype))[0]
    return jnp.concatenate([normal, second, cross(normal, second)], axis=1)
