"""Hit of one ray in a scene: a loop over bounding-volume trees, which `native` compiles.

The rays of a vector go through a tree together: a node is visited if any of them meets its box.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.core.types import MINVAL, GeomType
from jaxsim.engine.ray.mesh import ray_triangle
from jaxsim.engine.ray.primitive import DISTANCES, NORMALS, ray_points
from jaxsim.math import component as c
from jaxsim.math.arrays import row_at
from jaxsim.math.component import Vector
from jaxsim.math.safe import Array
from jaxsim.native.hints import any_of_vector
from jaxsim.viewer.scene import Scene, Triangles
from jaxsim.viewer.scene_layout import LEAF, PLANE

PRIMITIVES = (GeomType.PLANE, GeomType.SPHERE, GeomType.CAPSULE, GeomType.ELLIPSOID, GeomType.CYLINDER, GeomType.BOX)
TIE = 4  # units in the last place within which two surfaces are at one distance: the later object is seen


class Hit(NamedTuple):
    """First surface on a ray: distance, infinite if there is none, the object, -1 if none, and the triangle."""

    dist: Array
    object: Array
    triangle: Array


to_local, to_global = c.mat_t_vec, c.mat_vec  # of an object with rotation (9,), the components of a vector (3,)


def entries(x: Array) -> tuple[Array, ...]:
    """Unpack the entries of a short array, for arithmetic in components."""
    return tuple(x[i] for i in range(x.shape[0]))


def shape_size(size: Array, kind: int) -> tuple[Array, ...]:
    """Convert an object's size for the formulas of `engine.ray`: radius and half length of capsules and cylinders."""
    is_round = PRIMITIVES[kind] in (GeomType.CAPSULE, GeomType.CYLINDER)
    return (size[0], size[2]) if is_round else (size[0], size[1], size[2])


def distance(kind: int, size: Array, p: Vector, v: Vector, both_sides: bool) -> Array:
    """Compute the distance along a ray to a primitive, hit from the front, or from both sides."""
    shape = shape_size(size, kind)
    if kind == PLANE:  # from behind it is seen too, as transparent
        t = -p[2] / jnp.where(jnp.abs(v[2]) > MINVAL, v[2], 1)
        x, y, _ = ray_points(p, v, t)
        within = [(half <= 0) | (jnp.abs(q) <= half) for half, q in ((size[0], x), (size[1], y))]
        return jnp.where((jnp.abs(v[2]) > MINVAL) & (t >= 0) & within[0] & within[1], t, jnp.inf)
    t = DISTANCES[PRIMITIVES[kind]](shape, p, v)
    if both_sides:
        return t
    n = NORMALS[PRIMITIVES[kind]](shape, ray_points(p, v, jnp.where(jnp.isfinite(t), t, 0)))
    return jnp.where(n[0] * v[0] + n[1] * v[1] + n[2] * v[2] < 0, t, jnp.inf)


def _enters(box: Array, p: Vector, inverse: Vector, near: Array, far: Array) -> Array:
    """Whether a ray meets a box between two distances."""
    enter, leave = near, far
    for i in range(3):
        a, b = (box[i] - p[i]) * inverse[i], (box[3 + i] - p[i]) * inverse[i]
        enter, leave = jnp.maximum(enter, jnp.minimum(a, b)), jnp.minimum(leave, jnp.maximum(a, b))
    return enter <= leave


def _inverse(v: Vector) -> Vector:
    return c.vector(1 / jnp.where(jnp.abs(x) > MINVAL, x, MINVAL) for x in v)


def _tie(dist: Array) -> Array:
    """The distance up to which another surface is at the same one."""
    return dist * (1 + TIE * jnp.finfo(dist.dtype).eps)


def _search_triangles(
    s: Scene, of: Triangles, k: Array, p: Vector, v: Vector, near: Array, far: Array, both_sides: bool
) -> tuple[Array, Array]:
    """Distance to the first triangle of an object, infinite if there is none before `far`, and the triangle."""
    base, leaves, first, count = (row_at(x, k) for x in (s.base, s.leaves, s.triangle, s.count))
    inverse = _inverse(v)

    def visit(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        node, best, found = state
        meets = any_of_vector(_enters(row_at(of.box, base + node), p, inverse, near, best))

        def test(state: tuple[Array, Array]) -> tuple[Array, Array]:
            best, found = state
            for j in range(LEAF):
                i = first + jnp.minimum(LEAF * (node - leaves) + j, count - 1)
                x = row_at(of.corner, i)
                v0, v1, v2 = (c.vector(x[3 * a + b] for b in range(3)) for a in range(3))
                t = ray_triangle(v0, v1, v2, p, v, not both_sides)
                nearer = (t >= near) & (t < best)
                best, found = jnp.where(nearer, t, best), jnp.where(nearer, i, found)
            return best, found

        is_leaf = node >= leaves
        best, found = lax.cond(meets & is_leaf, test, lambda x: x, (best, found))
        return jnp.where(meets & ~is_leaf, 2 * node, row_at(s.next, node)), best, found

    start = (jnp.int32(1), far, jnp.int32(0))
    _, best, found = lax.while_loop(lambda x: x[0] > 0, visit, start)
    return jnp.where(best < far, best, jnp.inf), found


def search(
    s: Scene, box: Array, root: Array | int, p: Vector, v: Vector, near: Array, far: Array, both_sides: bool = False
) -> Hit:
    """Find the first surface on a ray between two distances, among the objects of a tree: `box[root:]`, as `s.box`.

    With `both_sides` surfaces are also hit from behind, and the search ends at any hit. It finds nothing and costs
    nothing if `far` is negative.
    """
    leaves = len(s.box) // 2
    inverse = _inverse(v)
    counts = {name: len(x.corner) > 1 for name, x in (("rigid", s.rigid), ("soft", s.soft))}

    def test(k: Array, hit: Hit) -> Hit:
        kind, mat = row_at(s.kind, k), row_at(s.mat, k)
        offset = c.sub(p, entries(row_at(s.pos, k)))
        far_now = _tie(hit.dist)

        def primitive(kind: int) -> Callable[[], tuple[Array, Array]]:
            def run() -> tuple[Array, Array]:
                size = row_at(s.size, k)
                t = distance(kind, size, to_local(mat, offset), to_local(mat, v), both_sides)
                return t, jnp.int32(0)

            return run

        def rigid() -> tuple[Array, Array]:
            q, w = to_local(mat, offset), to_local(mat, v)
            return _search_triangles(s, s.rigid, k, q, w, near, far_now, both_sides)

        def soft() -> tuple[Array, Array]:
            return _search_triangles(s, s.soft, k, p, v, near, far_now, both_sides)

        nothing = lambda: (jnp.full((), jnp.inf, p[0].dtype), jnp.int32(0))  # noqa: E731
        cases = [*(primitive(i) for i in range(len(PRIMITIVES)))]
        cases += [rigid if counts["rigid"] else nothing, soft if counts["soft"] else nothing]
        t, triangle = lax.switch(kind, cases)
        tied = (t <= far_now) & (hit.dist <= _tie(t))
        nearer = (t >= near) & (t < far) & jnp.where(tied, k > hit.object, t < hit.dist)
        new = Hit(t, k, triangle)
        return jax.tree.map(lambda a, b: jnp.where(nearer, b, a), hit, new)

    def visit(state: tuple[Array, Hit]) -> tuple[Array, Hit]:
        node, hit = state
        enters = _enters(row_at(box, root + node), p, inverse, near, _tie(hit.dist))
        meets = any_of_vector(enters & (hit.object < 0) if both_sides else enters)
        is_leaf = node >= leaves
        k = row_at(s.order, jnp.clip(node - leaves, 0, len(s.kind) - 1))
        hit = lax.cond(meets & is_leaf, lambda h: test(k, h), lambda h: h, hit)
        node = jnp.where(meets & ~is_leaf, 2 * node, row_at(s.next, node))
        if both_sides:
            node = jnp.where(any_of_vector((hit.object < 0) & (far >= 0)), node, 0)
        return node, hit

    start = Hit(far, jnp.int32(-1), jnp.int32(0))
    _, hit = lax.while_loop(lambda x: x[0] > 0, visit, (jnp.int32(1), start))
    return hit
