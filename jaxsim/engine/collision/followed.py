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

from jaxsim.engine.collision.shapes import Geoms, Hits, posed
from jaxsim.math.arrays import gather, take
from jaxsim.math.jvp import jvp_at, sum_of_tangents
from jaxsim.math.safe import Array
from jaxsim.xla.fusion import fusion_barrier


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
def follow(parts: Parts, rows: Array, others: Array, place: Place, poses: Poses) -> Array:
    """`rows` (n, k) of contacts, with the derivatives of `others` and, by the poses, of the colliders of `parts`.

    `parts` are these colliders and the function that makes rows of hits. `rows` are to be constants; `others` have the
    same rows where they come from other colliders, and zero elsewhere, or are one zero if there are none.
    """
    return rows


def _follow_jvp(parts: Parts, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    rows, _, place, poses = primals
    again = jvp_at(partial(_again, parts, place), poses)
    return follow(parts, *primals), sum_of_tangents(rows, (lambda t: t, tangents[1]), (again, tangents[3]))


follow.defjvp(_follow_jvp, symbolic_zeros=True)


def _again(parts: Parts, place: Place, poses: Poses) -> Array:
    followed, rows_of = parts
    sides = [_at(gather, poses, geom) for geom in place.geom.T]
    return sum(_rows(f, rows_of, place, sides, jax.lax.stop_gradient(poses)) for f in followed)


def _at(fetch: Callable[[Array, Array], Array], poses: Poses, geom: Array) -> Geoms:
    return posed(fetch, poses.pos, poses.mat, fetch(poses.size, geom), geom)


def _rows(f: Followed, rows_of: Callable[[Hits], Array], place: Place, sides: list[Geoms], still: Poses) -> Array:
    """The rows of contacts that come from one collider, zero for others, in whose place it sees a pair of its own."""
    mine = (place.slot >= f.first) & (place.slot < f.first + f.count)
    own = [_at(take, still, np.array([geom])) for geom in f.pair]
    a, b = (jax.tree.map(partial(_select, mine), *pair) for pair in zip(sides, own, strict=True))
    hits = fusion_barrier(f.function(a, b, place.margin))
    rows = rows_of(hits).reshape(len(mine), f.each, -1)
    chosen = mine[:, None] & ((place.slot - f.first) % f.each == np.arange(f.each)[:, None]).T
    return jnp.sum(jnp.where(chosen[..., None], rows, 0), axis=1)


def _select(which: Array, x: Array, y: Array) -> Array:
    return jnp.where(which.reshape(-1, *[1] * (x.ndim - 1)), x, y)


def worthwhile(collider: Any, capacity: int, room: int) -> bool:
    """Whether a collider that sees `capacity` pairs is better evaluated again, for `room` contacts."""
    return collider.setup is None and capacity > room
