"""General convex pairs: ellipsoids, cylinders, capsules, boxes and hulls of meshes, by GJK and EPA.

The searches see no gradients. What they find, the points on either surface and the direction between them, is then
rebuilt from the poses by formulas that can be differentiated.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.engine.collision.epa import epa
from jaxsim.engine.collision.gjk import Points, gjk
from jaxsim.engine.collision.hull import Facets, Hulls, box_facets, hulls, mesh_facets
from jaxsim.engine.collision.manifold import manifold
from jaxsim.engine.collision.shapes import Geoms, Hits, make_frame, unit
from jaxsim.engine.collision.support import DISCRETE, Shape, support
from jaxsim.errors import UnsupportedError
from jaxsim.math.arrays import matvec, matvec_t
from jaxsim.math.rotation import axis_angle_to_quat, quat_to_mat
from jaxsim.types import DisableBit, GeomType

Array = Any
ANGLE = 1e-3  # geoms are rotated by this to find more contacts
APART = 1e-3  # contacts closer than this, relative to the geoms' bounds, count as one
ROUND = (GeomType.SPHERE, GeomType.CAPSULE)
SINGLE = (GeomType.SPHERE, GeomType.ELLIPSOID)  # shapes that touch at one point only
TILT = ((0, 0.0), (1, -ANGLE), (1, ANGLE), (2, -ANGLE), (2, ANGLE))  # axis of the contact frame, angle


class Context(NamedTuple):
    """What convex colliders need of the model: geom types, hulls of meshes, bounds, settings of the search."""

    kinds: tuple[int, int]
    hulls: tuple[Hulls, Hulls]
    facets: tuple[Facets, Facets] | None
    rbound: Array
    tolerance: Array
    iterations: int
    several: bool


class Found(NamedTuple):
    """One penetration: whether any, distance, witness points x1, x2 (3,), the polytope's face if it was deep."""

    hit: Array
    dist: Array
    x1: Array
    x2: Array
    face: Points


def setup(m: Any, g1: np.ndarray, g2: np.ndarray) -> Context:
    """The context of a group of pairs of geoms g1, g2 (n,), all of the same two types."""
    if m.opt.disableflags & DisableBit.NATIVECCD:
        raise UnsupportedError("convex collisions with the flag nativeccd disabled (libccd)")
    kinds = (int(m.geom_type[g1[0]]), int(m.geom_type[g2[0]]))
    several = not m.opt.disableflags & DisableBit.MULTICCD and not set(kinds) & set(SINGLE)
    both = (hulls(m, g1), hulls(m, g2))
    facets = None
    if several and set(kinds) <= set(DISCRETE):
        facets = tuple(
            mesh_facets(m, h) if k == GeomType.MESH else box_facets(h.vert.dtype)
            for k, h in zip(kinds, both, strict=True)
        )
    return Context(kinds, both, facets, m.geom_rbound, m.opt.ccd_tolerance, m.opt.ccd_iterations, several)


def convex_convex(c: Context, a: Geoms, b: Geoms, margin: Array) -> Hits:
    """Two convex geoms: the deepest contact and, for shapes with flat parts, up to four more around it."""
    sides = [
        Shape(g.pos, g.mat, g.size, h.vertices(g.id), jnp.maximum(margin, 0))
        for g, h in zip((a, b), c.hulls, strict=True)
    ]
    rows = [h.row(g.id) for g, h in zip((a, b), c.hulls, strict=True)]
    bound = jnp.minimum(c.rbound[a.id], c.rbound[b.id])
    frozen = jax.lax.stop_gradient((*sides, *rows, bound))
    tolerance = jax.lax.stop_gradient(c.tolerance)
    hit, dist, x1, x2 = jax.vmap(partial(_search, c, tolerance))(*frozen)
    return _rebuild(c.kinds, a, b, margin, hit, dist, x1, x2)


def _search(c: Context, tolerance: Array, a: Shape, b: Shape, row1: Array, row2: Array, bound: Array):
    """Contacts of one pair in k slots: which are there, distances without margin, witness points on either shape."""
    margin = a.margin
    if not c.several:
        found = penetration(c.kinds, a, b, tolerance, c.iterations, jnp.array(True))
        return found.hit[None], found.dist[None], found.x1[None], found.x2[None]
    facets = jax.lax.stop_gradient(c.facets)
    faceted = facets is not None

    def tilted(first: tuple, tilt: tuple) -> tuple:
        hit, centre, frame = first
        axis, angle, initial = tilt
        rot = quat_to_mat(axis_angle_to_quat(frame[axis], angle))
        rot = jnp.where(initial, jnp.eye(3, dtype=rot.dtype), rot)
        active = initial | (hit & (margin > 0 if faceted else True))
        found = penetration(c.kinds, _turn(a, rot, centre), _turn(b, rot.T, centre), tolerance, c.iterations, active)
        middle = 0.5 * (found.x1 + found.x2)
        frame = jnp.where(initial, make_frame(unit(found.x1 - found.x2)[0][None], None).reshape(3, 3), frame)
        return (jnp.where(initial, found.hit, hit), jnp.where(initial, middle, centre), frame), found

    start = (jnp.array(False), jnp.zeros_like(a.pos), jnp.eye(3, dtype=a.pos.dtype))
    axes, angles = np.array([t[0] for t in TILT]), np.array([t[1] for t in TILT], a.pos.dtype)
    _, found = jax.lax.scan(tilted, start, (axes, angles, np.arange(len(TILT)) == 0))
    hit = found.hit & _distinct(0.5 * (found.x1 + found.x2), found.hit, APART * bound)
    dist = jnp.broadcast_to(found.dist[0], found.dist.shape)
    x1, x2 = found.x1, found.x2
    if faceted:
        face = jax.tree.map(lambda x: x[0], found.face)
        many, p1, p2, real = manifold(c.kinds, facets, (row1, row2), a, b, face, x2[0] - x1[0])
        many &= found.hit[0] & (margin == 0)
        x1, x2 = jnp.where(many, p1, x1), jnp.where(many, p2, x2)
        hit = jnp.where(many, real, hit)
    return hit, dist, x1, x2


def _turn(s: Shape, rot: Array, centre: Array) -> Shape:
    """The shape rotated about a point of the world."""
    return s._replace(pos=centre + matvec(rot, s.pos - centre), mat=jnp.sum(rot[:, :, None] * s.mat, axis=1))


def _distinct(pos: Array, hit: Array, tolerance: Array) -> Array:
    """Whether each contact (k,) is farther than the tolerance from all before it that were kept."""
    gap = pos[:, None] - pos
    near = jnp.sqrt(jnp.sum(gap * gap, axis=-1)) <= tolerance
    kept = [hit[0]]
    for i in range(1, len(pos)):
        kept.append(hit[i] & kept[0] & ~jnp.any(near[i, :i] & jnp.stack(kept)))
    return jnp.stack(kept)


def penetration(kinds: tuple[int, int], a: Shape, b: Shape, tolerance: Array, iterations: int, active: Array) -> Found:
    """How deep two shapes of the given geom types, inflated by their margins, penetrate; for one pair.

    Spheres and capsules are first tried as points and segments: if these are apart, their nearest points tell all.
    """
    discrete = (a.margin == 0) & (b.margin == 0) & (kinds[0] in DISCRETE and kinds[1] in DISCRETE)
    grow = [_radius(kind, s) for kind, s in zip(kinds, (a, b), strict=True)]

    def attempt(done: Array, thin: Array) -> tuple[Array, Any]:
        shapes = [_shrink(kind, s, thin) for kind, s in zip(kinds, (a, b), strict=True)]
        sides = [support(kind, s) for kind, s in zip(kinds, shapes, strict=True)]
        found = gjk(*sides, a.pos - b.pos, tolerance, discrete, iterations, thin, sum(grow), active & ~done)
        return done | (thin & (found.dist > tolerance)), found

    no = jnp.array(False)
    shallow = no
    if set(kinds) & set(ROUND):
        shallow, tries = jax.lax.scan(attempt, no, np.array([True, False]))
        core, simplex = [jax.tree.map(lambda x, i=i: x[i], tries) for i in (0, 1)]
    else:
        core = simplex = attempt(no, no)[1]
    way = unit(core.x2 - core.x1)[0]
    dist = core.dist - sum(grow)
    inside = active & ~shallow & (simplex.dist <= tolerance) & (simplex.n > 1)
    full = [support(kind, s) for kind, s in zip(kinds, (a, b), strict=True)]
    deep = epa(*full, simplex, tolerance, discrete, iterations, inside)
    found = inside & deep.ok & (deep.depth > 0)
    return Found(
        jnp.where(shallow, dist < 0, found),
        jnp.where(shallow & jnp.isfinite(dist), dist, -deep.depth),
        jnp.where(shallow, core.x1 + grow[0] * way, deep.x1),
        jnp.where(shallow, core.x2 - grow[1] * way, deep.x2),
        deep.face,
    )


def _radius(kind: int, s: Shape) -> Array:
    """What a sphere or a capsule loses when it is taken as a point or a segment."""
    return s.size[0] + 0.5 * s.margin if kind in ROUND else jnp.zeros_like(s.margin)


def _shrink(kind: int, s: Shape, thin: Array) -> Shape:
    if kind not in ROUND:
        return s
    size = jnp.where(thin & (jnp.arange(3) == 0), 0, s.size)
    return s._replace(size=size, margin=jnp.where(thin, 0, s.margin))


def _rebuild(
    kinds: tuple[int, int], a: Geoms, b: Geoms, margin: Array, hit: Array, dist: Array, x1: Array, x2: Array
) -> Hits:
    """Contacts from witness points (n, k, 3) that are carried along by the geoms' poses and sizes."""
    hit, dist, x1, x2 = jax.lax.stop_gradient((hit, dist, x1, x2))
    normal = unit(x1 - x2)[0]
    y1, y2 = _carried(kinds[0], a, x1), _carried(kinds[1], b, x2)
    still = jax.lax.stop_gradient((y1, y2))
    moved = jnp.sum(normal * ((y2 - still[1]) - (y1 - still[0])), axis=-1)
    middle = 0.5 * (x1 + x2 + (y1 - still[0]) + (y2 - still[1]))
    dist = jax.lax.stop_gradient(margin)[:, None] + dist + moved
    finite = jnp.isfinite(dist)
    return Hits(jnp.where(finite, dist, 0), middle, normal, hit & finite)


def _carried(kind: int, g: Geoms, x: Array) -> Array:
    """Points of the world (n, k, 3) that move with a geom and grow with its size."""
    mat, size = g.mat[:, None], g.size[:, None]
    local = jax.lax.stop_gradient(matvec_t(mat, x - g.pos[:, None]))
    if kind != GeomType.MESH:
        fixed = jax.lax.stop_gradient(size)
        if kind == GeomType.CAPSULE:
            end = jnp.sign(local[..., 2]) * jnp.maximum(jnp.abs(local[..., 2]) - fixed[..., 1], 0)
            core = local - jnp.stack([local[..., 0], local[..., 1], end], axis=-1)
            at_end = (jnp.abs(local[..., 2]) >= fixed[..., 1])[..., None]
            core = core * jnp.where(at_end, size[..., 1:2] / fixed[..., 1:2], 1)
            local = core + (local - jax.lax.stop_gradient(core)) * size[..., :1] / fixed[..., :1]
        else:
            index = {GeomType.SPHERE: [0, 0, 0], GeomType.CYLINDER: [0, 0, 1]}.get(kind, [0, 1, 2])
            local = local * size[..., np.array(index)] / fixed[..., np.array(index)]
    return g.pos[:, None] + matvec(mat, local)
