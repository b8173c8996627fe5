"""Collider of signed distance fields with primitives and each other, by gradient descents from fixed starting points.

The starts are points of a Halton sequence in the region where both geoms may be. A descent is stopped after a number of
steps that the model sets, so its result solves no equation: derivatives are those of the executed steps, with the step
lengths held fixed. Source: mjc_SDF.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MAXVAL, MINVAL
from jaxsim.engine.collision.shapes import Geoms, PairContacts, unit
from jaxsim.engine.structure.distance_field import Fields, distance_fields, distance_of, gradient_of
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner, matmul_t, matvec, matvec_t
from jaxsim.math.safe import Array

ARMIJO_FRACTION = 0.1  # required fraction of the decrease predicted by the gradient (Armijo's condition)
STEP_LENGTHS = 0.5 ** np.arange(15)  # tried in order, relative to the gradient


class SdfContext(NamedTuple):
    """Fields of the first and second geoms, boxes of the geoms, starts as fractions of the region, number of steps."""

    first: Fields
    second: Fields
    aabb: Array
    start: np.ndarray
    iterations: int


def sdf_setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> SdfContext:
    """Return the context of pairs of geoms g1 and SDF geoms g2 (n,)."""
    start = np.stack([halton(int(m.opt.sdf_initpoints), base) for base in (2, 3, 5)], axis=-1)
    return SdfContext(distance_fields(m, g1), distance_fields(m, g2), m.geom_aabb, start, int(m.opt.sdf_iterations))


def halton(count: int, base: int) -> np.ndarray:
    """Return the first `count` numbers of Halton's sequence, from zero."""
    rest, weight, out = np.arange(count), 1 / base, np.zeros(count)
    while rest.any():
        out += weight * (rest % base)
        rest, weight = rest // base, weight / base
    return out


def sdf_any(c: SdfContext, a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Compute the contacts of a geom and an SDF geom: one for each descent that ends where both distances are negative.

    `margin` is not used, as in MuJoCo.
    """
    rel, offset = matmul_t(a.mat, b.mat), matvec_t(a.mat, b.pos - a.pos)
    low, high = _region(gather(c.aabb, a.id), gather(c.aabb, b.id), rel, offset)
    start = low + (high - low) * jnp.asarray(c.start, low.dtype)[:, None]  # (starts, n, 3), in the frame of a
    x, dist = _descend(c, a, b, rel, offset, matvec_t(rel, start - offset))
    valid = (dist <= 0) & jnp.all(low <= high, axis=-1)
    valid &= ~is_repeated(jax.lax.stop_gradient(x), valid)

    normal1 = matvec_t(rel, gradient_of(c.first, a, matvec(rel, x) + offset))
    normal2 = gradient_of(c.second, b, x)
    local = unit(unit(normal1)[0] - unit(normal2)[0])[0]
    normal = matvec(b.mat, local)
    pos = b.pos + matvec(b.mat, x) - 0.5 * dist[..., None] * normal
    return PairContacts(*(jnp.swapaxes(part, 0, 1) for part in (dist, pos, normal, valid)))


def _region(box1: Array, box2: Array, rel: Array, offset: Array) -> tuple[Array, Array]:
    """Return the region where both geoms' boxes overlap, in the frame of the first: lower and upper corners (n, 3)."""
    centre, half = matvec(rel, box2[:, :3]) + offset, matvec(jnp.abs(rel), box2[:, 3:])
    low = jnp.maximum(box1[:, :3] - box1[:, 3:], centre - half)
    return low, jnp.minimum(box1[:, :3] + box1[:, 3:], centre + half)


def _descend(c: SdfContext, a: Geoms, b: Geoms, rel: Array, offset: Array, x: Array) -> tuple[Array, Array]:
    """Descend from x (starts, n, 3), in the frame of b; return the end points and the larger of both distances there.

    All steps but the last minimise the sum of the distances and the magnitude of the larger one; the last step
    minimises the larger distance.
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
        gradient_of_larger = jnp.where((d2 > d1)[..., None], g2, g1)
        sign = jnp.where(jnp.maximum(d2, d1) > 0, 1, -1)[..., None]
        gradient = jnp.where(last, gradient_of_larger, g2 + g1 + sign * gradient_of_larger)
        is_finite = jnp.all(jnp.abs(gradient) <= MAXVAL, axis=-1)
        length, worse = _line_search(lambda x: objective(x, last), *jax.lax.stop_gradient((x, gradient)))
        moves = is_finite & (last | ~done)
        x = jnp.where(moves[..., None], x - length[..., None] * gradient, x)
        return (x, done | ~is_finite | worse), is_finite

    phase = jnp.arange(c.iterations + 1) == c.iterations
    (x, _), is_finite = jax.lax.scan(step, (x, jnp.zeros(x.shape[:-1], bool)), phase)
    return x, jnp.where(is_finite[-1], jnp.maximum(*distances(x)), MAXVAL)


def _line_search(objective: Any, x: Array, gradient: Array) -> tuple[Array, Array]:
    """Return the first step length with sufficient decrease, or the last one; and whether the objective increases."""
    lengths = jnp.asarray(STEP_LENGTHS, x.dtype).reshape(-1, *[1] * (x.ndim - 1))
    change = objective(x - lengths[..., None] * gradient) - objective(x)
    sufficient = change <= -ARMIJO_FRACTION * lengths * inner(gradient, gradient)
    chosen = jnp.where(jnp.any(sufficient, axis=0), jnp.argmax(sufficient, axis=0), len(STEP_LENGTHS) - 1)
    return jnp.asarray(STEP_LENGTHS, x.dtype)[chosen], jnp.take_along_axis(change, chosen[None], axis=0)[0] > 0


def is_repeated(x: Array, valid: Array) -> Array:
    """Return whether an earlier valid point (starts, n, 3) is equal."""
    equal = safe.norm(x[:, None] - x[None]) < MINVAL
    earlier = np.tril(np.ones(2 * (len(x),), bool), -1)[..., None]
    return jnp.any(equal & earlier & valid[None], axis=1)
