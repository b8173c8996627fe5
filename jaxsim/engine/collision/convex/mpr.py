"""Penetration of convex shapes along the ray between their centres: portal refinement, for one pair. Callers map.

This is the search of the flag `nativeccd` off. A triangle of support points of the difference of the shapes that the
ray passes, the portal, is moved outward until it lies on the surface. The depth is the distance of the origin from that
triangle, the normal points there, and the position mixes the support points and the centres so that both shapes give
the same point. The steps, tests and their order are those of the reference, and so are the ends of the search.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.gjk import Points, new_point
from jaxsim.engine.collision.convex.portal import ZERO, Contact, Portal, answer
from jaxsim.engine.collision.convex.portal_jvp import slopes
from jaxsim.engine.collision.convex.support import Kinds, Shape, centre, is_any, support
from jaxsim.engine.collision.shapes import unit
from jaxsim.math.arrays import inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.xla.loops import PAIRS, while_each

FIRST, SECOND, THIRD, REFINE, DEEPEN, DONE = range(6)
ROUNDS = 1000  # after which a search without an end of its own is given up


class _State(NamedTuple):
    mode: Array
    rounds: Array
    k: Array
    portal: Portal
    direction: Array


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def contact(kinds: Kinds, iterations: int, a: Shape, b: Shape, tolerance: Array, active: Array) -> Contact:
    """How deep two shapes, inflated by their margins, penetrate along the ray between their centres; for one pair.

    `kinds` are those that may occur, `iterations` bounds the steps after penetration is known. Source: libccd 2.1 as
    MuJoCo uses it.
    """
    return answer(a, b, _search(kinds, iterations, a, b, tolerance, active))


@contact.defjvp
def _contact_jvp(kinds: Kinds, iterations: int, primals: tuple, tangents: tuple) -> tuple[Contact, Contact]:
    a, b, tolerance, active = primals
    portal = jax.lax.stop_gradient(_search(kinds, iterations, a, b, tolerance, active))
    found = answer(a, b, portal)
    return found, slopes(kinds, a, b, *tangents[:2], portal, found)


def _sides(kinds: Kinds, s: Shape) -> Callable[[Array], tuple[Array, Array]]:
    """The support function; where a direction lies exactly in a face, the middle of that face, as libccd is given."""
    farthest = support(kinds, s)
    z = jnp.array([0, 0, 1], s.size.dtype) * s.size[1]
    reach = jnp.where(s.kind == GeomType.BOX, s.size, 0)
    reach = jnp.where(is_any(s.kind, (GeomType.CAPSULE, GeomType.CYLINDER)), z, reach)

    def at(direction: Array) -> tuple[Array, Array]:
        point, index = farthest(direction)
        level = matvec_t(s.mat, direction) == 0
        return point - matvec(s.mat, jnp.where(level, reach, 0)), index

    return at


def _search(kinds: Kinds, iterations: int, a: Shape, b: Shape, tolerance: Array, active: Array) -> Portal:
    """Find a portal, refine it until it has passed the origin, then until it is on the surface."""
    rounding = 4 * float(jnp.finfo(a.pos.dtype).eps)
    sides = _sides(kinds, a), _sides(kinds, b)
    v0 = centre(a) - centre(b)
    v0 = jnp.where(jnp.all(jnp.abs(v0) < ZERO), v0 + jnp.array([10 * ZERO, 0, 0], v0.dtype), v0)

    def step(s: _State) -> _State:
        new = new_point(*sides, s.direction)
        w, old = new.a - new.b, s.portal.points
        v = old.w
        height = inner(w, s.direction)
        is_in = [s.mode == i for i in range(DONE)]
        finding = s.mode < REFINE

        # the first three points: the third replaces one until the ray passes between them
        side = cross(v0, w)
        narrow = jnp.maximum(ZERO, rounding**2 * inner(v0, v0) * inner(w, w))
        near = is_in[FIRST] & (inner(side, side) < narrow)
        swap = is_in[SECOND] & (inner(cross(v[0] - v0, w - v0), v0) > 0)
        left = is_in[THIRD] & (inner(cross(v[0], w), v0) < -ZERO)
        right = is_in[THIRD] & ~left & (inner(cross(w, v[1]), v0) < -ZERO)

        # the portal with the new point in place of the one that it makes needless
        across = cross(w, v0)
        above = inner(v, across) > 0
        place = jnp.where(above[0], jnp.where(above[1], 0, 2), jnp.where(above[2], 1, 0))
        reached = jnp.min(height - inner(v, s.direction)) <= tolerance + rounding * jnp.max(jnp.abs(new.a))
        low = jnp.where(finding, height < ZERO, is_in[REFINE] & ((height <= -ZERO) | reached))
        found = is_in[DEEPEN] & (reached | (s.k > iterations))
        place = jnp.where(finding, jnp.where(left | swap, 1, jnp.where(right, 0, s.mode)), place)
        points = old.put(place, new)
        points = jax.tree.map(lambda x, y: jnp.where(swap, x, y), _swapped(old, new), points)
        points = jax.tree.map(lambda x, y: jnp.where(found, x, y), old, points)

        # the next direction: across the ray, across its plane with the first two points, or out of the portal
        v = points.w
        around = is_in[SECOND] | left | right
        base = jnp.where(around, v0, v[0])
        out = cross(jnp.where(around, v[0], v[1]) - base, jnp.where(around, v[1], v[2]) - base)
        out = jnp.where(is_in[FIRST], side, out)
        square = inner(out, out)
        flat = ~(square > 0)
        direction = out * (1 / jnp.sqrt(jnp.where(flat, 1, square)))
        passed = is_in[DEEPEN] | (inner(direction, v[0]) > -ZERO)
        onward = jnp.where(passed, DEEPEN, REFINE)
        mode = jnp.where(is_in[FIRST], SECOND, jnp.where(around, THIRD, onward))
        end = low | near | found | flat | (s.rounds >= ROUNDS)
        touching = jnp.all(jnp.abs(w) < ZERO)
        straight = near & ~low & ~touching
        return _State(
            mode=jnp.where(end, DONE, mode),
            rounds=s.rounds + 1,
            k=s.k + is_in[DEEPEN],
            portal=Portal(straight | found, straight, points),
            direction=direction,
        )

    zero = jnp.zeros((3, 3), v0.dtype)
    start = _State(
        *(jnp.where(active, FIRST, DONE), jnp.int32(0), jnp.int32(0)),
        Portal(jnp.array(False), jnp.array(False), Points(zero, zero, jnp.zeros((3, 2), jnp.int32))),
        -unit(v0)[0],
    )
    return while_each(lambda s: s.mode != DONE, step, start, group=PAIRS).portal


def _swapped(old: Points, new: Points) -> Points:
    """The first point in the second place, the new one in the first."""
    return Points(*[jnp.stack([y, x[0], x[2]]) for x, y in zip(old, new, strict=True)])
