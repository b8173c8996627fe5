"""Derivatives of contacts by the poses of their own two geoms.

A narrow phase looks at every candidate, few of which are contacts. Where the candidates of a collider outnumber the
places in the contact buffer, its contacts are differentiated as what the collider makes of their geoms alone, evaluated
again for as many pairs as the buffer holds; what the narrow phase found keeps its value and is not differentiated.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.shapes import Array, Hits, posed
from jaxsim.math.arrays import gather
from jaxsim.math.tangent import product_slope


class Followed(NamedTuple):
    """A collider without setup, whose hits fill `count` slots from `first` on, `each` for a pair; one of its pairs."""

    function: Callable[..., Hits]
    first: int
    count: int
    each: int
    pair: tuple[int, int]


class Place(NamedTuple):
    """Of each contact the slot that it comes from, its geoms (n, 2) and its margin."""

    slot: Array
    geom: Array
    margin: Array


class Poses(NamedTuple):
    """What contacts are functions of: positions, flat rotations and sizes of all geoms."""

    pos: Array
    mat: Array
    size: Array


Parts = tuple[tuple[Followed, ...], Callable[[Hits], Array]]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def follow(parts: Parts, rows: Array, place: Place, poses: Poses) -> Array:
    """`rows` (n, k) of contacts, with derivatives of those from the colliders of `parts` by the poses as well.

    `parts` are these colliders and the function that makes rows of hits; their own rows must be constants.
    """
    return rows


def _follow_jvp(parts: Parts, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    rows, place, poses = primals

    def moved(t: Poses) -> Array:
        return jax.jvp(partial(_again, parts, place), (poses,), (t,))[1]

    return follow(parts, *primals), product_slope(rows, (lambda t: t, tangents[0]), (moved, tangents[2]))


follow.defjvp(_follow_jvp, symbolic_zeros=True)


def _again(parts: Parts, place: Place, poses: Poses) -> Array:
    followed, rows_of = parts
    return sum(_rows(f, rows_of, place, poses) for f in followed)


def _rows(f: Followed, rows_of: Callable[[Hits], Array], place: Place, poses: Poses) -> Array:
    """The rows of contacts that come from one collider, zero for others, in whose place it sees a pair of its own."""
    mine = (place.slot >= f.first) & (place.slot < f.first + f.count)
    sides = jnp.where(mine[:, None], place.geom, np.array(f.pair, np.int32)).T
    a, b = (posed(gather, poses.pos, poses.mat, gather(poses.size, g), g) for g in sides)
    rows = rows_of(f.function(a, b, place.margin)).reshape(len(mine), f.each, -1)
    chosen = mine[:, None] & ((place.slot - f.first) % f.each == np.arange(f.each)[:, None]).T
    return jnp.sum(jnp.where(chosen[..., None], rows, 0), axis=1)


def worthwhile(collider: Any, capacity: int, room: int) -> bool:
    """Whether a collider that sees `capacity` pairs is better evaluated again, for `room` contacts."""
    return collider.setup is None and capacity > room
