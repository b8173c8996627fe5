"""Signed distance fields against primitives and each other: descents from fixed points of the region both may fill.

A search is cut off after a number of steps that the model sets, so its answer solves no equation: derivatives are those
of the steps made, with the step lengths held fixed.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MAXVAL, MINVAL
from jaxsim.engine.collision.sdf.field import Field, fields_of
from jaxsim.engine.collision.shapes import Geoms, Hits, unit
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner, matvec, matvec_t
from jaxsim.math.safe import Array

DECREASE = 0.1  # of what the slope promises, to be had from a step
STEPS = 0.5 ** np.arange(15)  # lengths of a step that are tried, relative to the slope


class SdfContext(NamedTuple):
    """The fields of the first and second geoms, the geoms' boxes, fractions of the region to start at, and steps."""

    first: tuple[np.ndarray, dict[int, Field]]
    second: tuple[np.ndarray, dict[int, Field]]
    aabb: Array
    start: np.ndarray
    iterations: int


def setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> SdfContext:
    """The context of pairs of geoms g1 and geoms of signed distance g2 (n,)."""
    start = np.stack([halton(int(m.opt.sdf_initpoints), base) for base in (2, 3, 5)], axis=-1)
    return SdfContext(fields_of(m, g1), fields_of(m, g2), m.geom_aabb, start, int(m.opt.sdf_iterations))


def halton(count: int, base: int) -> np.ndarray:
    """The first numbers of Halton's sequence, from zero."""
    rest, weight, out = np.arange(count), 1 / base, np.zeros(count)
    while rest.any():
        out += weight * (rest % base)
        rest, weight = rest // base, weight / base
    return out


def sdf_any(c: SdfContext, a: Geoms, b: Geoms, margin: Array) -> Hits:
    """A geom and one of signed distance: a contact for each start whose search ends where both are negative.

    `margin` plays no part, as in the reference.
    """
    rel, offset = jnp.sum(a.mat[:, :, :, None] * b.mat[:, :, None, :], axis=1), matvec_t(a.mat, b.pos - a.pos)
    low, high = _region(gather(c.aabb, a.id), gather(c.aabb, b.id), rel, offset)
    start = low + (high - low) * jnp.asarray(c.start, low.dtype)[:, None]  # (starts, n, 3), in the frame of a
    x, dist = _search(c, a, b, rel, offset, matvec_t(rel, start - offset))
    valid = (dist <= 0) & jnp.all(low <= high, axis=-1)
    valid &= ~known(jax.lax.stop_gradient(x), valid)

    normal1 = matvec_t(rel, gradient_of(c.first, a, matvec(rel, x) + offset))
    normal2 = gradient_of(c.second, b, x)
    local = unit(unit(normal1)[0] - unit(normal2)[0])[0]
    normal = matvec(b.mat, local)
    pos = b.pos + matvec(b.mat, x) - 0.5 * dist[..., None] * normal
    return Hits(*(jnp.swapaxes(part, 0, 1) for part in (dist, pos, normal, valid)))


def _region(box1: Array, box2: Array, rel: Array, offset: Array) -> tuple[Array, Array]:
    """Where the boxes of both geoms overlap, in the frame of the first: lower and upper corners (n, 3)."""
    centre, half = matvec(rel, box2[:, :3]) + offset, matvec(jnp.abs(rel), box2[:, 3:])
    low = jnp.maximum(box1[:, :3] - box1[:, 3:], centre - half)
    return low, jnp.minimum(box1[:, :3] + box1[:, 3:], centre + half)


def _search(c: SdfContext, a: Geoms, b: Geoms, rel: Array, offset: Array, x: Array) -> tuple[Array, Array]:
    """Where the descents from x (starts, n, 3), in the frame of b, end, and how deep in both geoms that is.

    All steps but the last go down the sum of the distances and the larger one's magnitude, the last one down the larger
    distance.
    """

    def distances(x: Array) -> tuple[Array, Array]:
        return distance_of(c.second, b, x), distance_of(c.first, a, matvec(rel, x) + offset)

    def objective(x: Array, last: Array) -> Array:
        d2, d1 = distances(x)
        larger = jnp.maximum(d2, d1)
        return jnp.where(last, larger, d2 + d1 + jnp.abs(larger))

    def step(state: tuple[Array, Array], last: Array) -> tuple[tuple[Array, Array], Array]:
        x, done = state
        d2, d1 = jax.lax.stop_gradient(distances(x))
        g2, g1 = gradient_of(c.second, b, x), matvec_t(rel, gradient_of(c.first, a, matvec(rel, x) + offset))
        of_larger = jnp.where((d2 > d1)[..., None], g2, g1)
        sign = jnp.where(jnp.maximum(d2, d1) > 0, 1, -1)[..., None]
        slope = jnp.where(last, of_larger, g2 + g1 + sign * of_larger)
        sane = jnp.all(jnp.abs(slope) <= MAXVAL, axis=-1)
        length, worse = _line_search(lambda x: objective(x, last), *jax.lax.stop_gradient((x, slope)))
        moves = sane & (last | ~done)
        x = jnp.where(moves[..., None], x - length[..., None] * slope, x)
        return (x, done | ~sane | worse), sane

    phase = jnp.arange(c.iterations + 1) == c.iterations
    (x, _), sane = jax.lax.scan(step, (x, jnp.zeros(x.shape[:-1], bool)), phase)
    return x, jnp.where(sane[-1], jnp.maximum(*distances(x)), MAXVAL)


def _line_search(objective: Any, x: Array, slope: Array) -> tuple[Array, Array]:
    """The first step length that brings the decrease asked for, else the last one; and whether the objective grows."""
    lengths = jnp.asarray(STEPS, x.dtype).reshape(-1, *[1] * (x.ndim - 1))
    change = objective(x - lengths[..., None] * slope) - objective(x)
    enough = change <= -DECREASE * lengths * inner(slope, slope)
    chosen = jnp.where(jnp.any(enough, axis=0), jnp.argmax(enough, axis=0), len(STEPS) - 1)
    return jnp.asarray(STEPS, x.dtype)[chosen], jnp.take_along_axis(change, chosen[None], axis=0)[0] > 0


def distance_of(side: tuple[np.ndarray, dict[int, Field]], geoms: Geoms, x: Array) -> Array:
    """Distances (..., n) of points (..., n, 3), each by its geom's kind of field."""
    kind, (out, *others) = _kinds(side, geoms), [field.distance(geoms, x) for field in side[1].values()]
    for this, value in zip(list(side[1])[1:], others, strict=True):
        out = jnp.where(kind == this, value, out)
    return out


def gradient_of(side: tuple[np.ndarray, dict[int, Field]], geoms: Geoms, x: Array) -> Array:
    """Their gradients (..., n, 3)."""
    kind, (out, *others) = _kinds(side, geoms), [field.gradient(geoms, x) for field in side[1].values()]
    for this, value in zip(list(side[1])[1:], others, strict=True):
        out = jnp.where((kind == this)[:, None], value, out)
    return out


def _kinds(side: tuple[np.ndarray, dict[int, Field]], geoms: Geoms) -> Array:
    return gather(jnp.asarray(side[0]), jnp.asarray(geoms.id))


def known(x: Array, valid: Array) -> Array:
    """Whether an earlier valid point (starts, n, 3) is the same."""
    same = safe.norm(x[:, None] - x[None]) < MINVAL
    earlier = np.tril(np.ones(2 * (len(x),), bool), -1)[..., None]
    return jnp.any(same & earlier & valid[None], axis=1)
