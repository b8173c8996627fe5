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
from jaxsim.engine.collision.hull import Facets, Hulls, facets, hulls
from jaxsim.engine.collision.manifold import manifold
from jaxsim.engine.collision.shapes import Geoms, Hits, make_frame, unit
from jaxsim.engine.collision.support import DISCRETE, ROUND, Shape, centre, is_any, support
from jaxsim.errors import UnsupportedError
from jaxsim.math.arrays import matvec, matvec_t
from jaxsim.math.rotation import axis_angle_to_quat, quat_to_mat
from jaxsim.types import DisableBit, GeomType

Array = Any
ANGLE = 1e-3  # geoms are rotated by this to find more contacts
APART = 1e-3  # contacts closer than this, relative to the geoms' bounds, count as one
PRISM = (*DISCRETE, GeomType.HFIELD)  # shapes whose search ends after finitely many steps
SINGLE = (GeomType.SPHERE, GeomType.ELLIPSOID)  # shapes that touch at one point only
TILT = ((0, 0.0), (1, -ANGLE), (1, ANGLE), (2, -ANGLE), (2, ANGLE))  # axis of the contact frame, angle
SIZES = np.tile(np.arange(3, dtype=np.int32), (9, 1))  # which size scales each local coordinate, by kind
SIZES[GeomType.SPHERE], SIZES[GeomType.CYLINDER] = (0, 0, 0), (0, 0, 1)


class Context(NamedTuple):
    """What convex colliders need of the model.

    Which kinds of geom occur, the hulls and facets of meshes and boxes, kinds and bounds of all geoms, and the settings
    of the search; `several` says whether any pair may make more than one contact.
    """

    kinds: tuple[int, ...]
    hulls: Hulls
    facets: Facets | None
    of_geom: np.ndarray
    rbound: Array
    tolerance: Array
    iterations: int
    several: bool


class Found(NamedTuple):
    """One search: whether there is penetration, distance (infinite beyond the cutoff), witness points x1, x2 (3,).

    `face` is the polytope's face if it was deep.
    """

    hit: Array
    dist: Array
    x1: Array
    x2: Array
    face: Points


def convex_context(m: Any, g1: np.ndarray, g2: np.ndarray) -> Context:
    """The context of a group of pairs of geoms g1, g2 (n,)."""
    if m.opt.disableflags & DisableBit.NATIVECCD:
        raise UnsupportedError("convex collisions with the flag nativeccd disabled (libccd)")
    t1, t2 = m.geom_type[g1], m.geom_type[g2]
    kinds = tuple(np.unique(np.concatenate([t1, t2])).tolist())
    table = hulls(m, np.concatenate([g1, g2]))
    several = not m.opt.disableflags & DisableBit.MULTICCD
    faceted = several and np.any(np.isin(t1, DISCRETE) & np.isin(t2, DISCRETE))
    several = several and bool(np.any(~np.isin(t1, SINGLE) & ~np.isin(t2, SINGLE)))
    return Context(
        *(kinds, table, facets(m, table) if faceted else None, m.geom_type),
        *(m.geom_rbound, m.opt.ccd_tolerance, m.opt.ccd_iterations, several),
    )


def convex_convex(c: Context, a: Geoms, b: Geoms, margin: Array) -> Hits:
    """Two convex geoms: the deepest contact and, for shapes with flat parts, up to four more around it."""
    frozen = jax.lax.stop_gradient((a, b, margin, jnp.minimum(c.rbound[a.id], c.rbound[b.id])))
    one, two = _shapes(c, frozen[0], frozen[2]), _shapes(c, frozen[1], frozen[2])
    tolerance = jax.lax.stop_gradient(c.tolerance)
    found = jax.vmap(partial(_search, c, tolerance))(one, two, frozen[3])
    return rebuild(one.kind, two.kind, a, b, frozen[2], *found)


def convex_distance(c: Context, a: Geoms, b: Geoms, distmax: Array) -> tuple[Array, Array]:
    """Signed distance of convex geoms (n,), at most `distmax`, and the segment (n, 6) between them, or zeros."""
    frozen = jax.lax.stop_gradient((a, b, jnp.zeros_like(distmax), distmax))
    one, two = _shapes(c, frozen[0], frozen[2]), _shapes(c, frozen[1], frozen[2])
    find = partial(penetration, c.kinds, tolerance=jax.lax.stop_gradient(c.tolerance), iterations=c.iterations)
    found = jax.vmap(lambda a, b, far: find(a, b, active=jnp.array(True), cutoff=far))(one, two, frozen[3])
    ends = jnp.stack([found.x1, found.x2], axis=1)
    known = jnp.isfinite(found.dist)[:, None]
    x1, x2 = [x[:, None] for x in (found.x1, found.x2)]
    hits = rebuild(one.kind, two.kind, a, b, frozen[2], known, found.dist[:, None], x1, x2, ends)
    near = known[:, 0] & (found.dist < distmax)
    fromto = ends + jnp.stack([_shift(one.kind, a, x1), _shift(two.kind, b, x2)], axis=1)[:, :, 0]
    return jnp.where(near, hits.dist[:, 0], distmax), jnp.where(known, fromto.reshape(-1, 6), 0)


def _shapes(c: Context, g: Geoms, margin: Array) -> Shape:
    vert = jax.lax.stop_gradient(c.hulls.vertices(g.id))
    kind = jnp.asarray(c.of_geom)[g.id]
    return Shape(kind, g.pos, g.mat, g.size, vert, c.hulls.row(g.id), jnp.maximum(margin, 0))


def _search(c: Context, tolerance: Array, a: Shape, b: Shape, bound: Array) -> tuple[Array, ...]:
    """Contacts of one pair in k slots: which are there, distances without margin, points on either shape.

    Last come the witness points (2, 3) that the distance, common to all slots, is measured between.
    """
    find = partial(penetration, c.kinds, tolerance=tolerance, iterations=c.iterations)
    if not c.several:
        found = find(a, b, active=jnp.array(True))
        return found.hit[None], found.dist[None], found.x1[None], found.x2[None], jnp.stack([found.x1, found.x2])
    margin = a.margin
    faceted = is_any(a.kind, DISCRETE) & is_any(b.kind, DISCRETE)
    more = ~is_any(a.kind, SINGLE) & ~is_any(b.kind, SINGLE) & (~faceted | (margin > 0))

    def tilted(first: tuple, tilt: tuple) -> tuple:
        hit, centre, frame = first
        axis, angle, initial = tilt
        rot = quat_to_mat(axis_angle_to_quat(frame[axis], angle))
        rot = jnp.where(initial, jnp.eye(3, dtype=rot.dtype), rot)
        found = find(_turn(a, rot, centre), _turn(b, rot.T, centre), active=initial | (hit & more))
        middle = 0.5 * (found.x1 + found.x2)
        frame = jnp.where(initial, make_frame(unit(found.x1 - found.x2)[0][None], None).reshape(3, 3), frame)
        return (jnp.where(initial, found.hit, hit), jnp.where(initial, middle, centre), frame), found

    start = (jnp.array(False), jnp.zeros_like(a.pos), jnp.eye(3, dtype=a.pos.dtype))
    axes, angles = np.array([t[0] for t in TILT]), np.array([t[1] for t in TILT], a.pos.dtype)
    _, found = jax.lax.scan(tilted, start, (axes, angles, np.arange(len(TILT)) == 0))
    hit = found.hit & _distinct(0.5 * (found.x1 + found.x2), found.hit, APART * bound)
    dist = jnp.broadcast_to(found.dist[0], found.dist.shape)
    x1, x2 = found.x1, found.x2
    first = jnp.stack([x1[0], x2[0]])
    if c.facets is not None:
        face = jax.tree.map(lambda x: x[0], found.face)
        many, p1, p2, real = manifold(jax.lax.stop_gradient(c.facets), a, b, face, x2[0] - x1[0])
        many &= found.hit[0] & faceted & (margin == 0)
        x1, x2 = jnp.where(many, p1, x1), jnp.where(many, p2, x2)
        hit = jnp.where(many, real, hit)
    return hit, dist, x1, x2, first


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


def penetration(
    kinds: tuple[int, ...],
    a: Shape,
    b: Shape,
    *,
    tolerance: Array,
    iterations: int,
    active: Array,
    cutoff: Array | float = 0.0,
) -> Found:
    """How deep two shapes, inflated by their margins, penetrate; for one pair. `kinds` are those that may occur.

    Shapes that are apart by less than a positive `cutoff` are measured too. Spheres and capsules are first tried as
    points and segments: if these are apart, their nearest points tell all.
    """
    discrete = (a.margin == 0) & (b.margin == 0) & is_any(a.kind, PRISM) & is_any(b.kind, PRISM)
    grow = [jnp.where(is_any(s.kind, ROUND), s.size[0] + 0.5 * s.margin, 0) for s in (a, b)]

    def attempt(done: Array, thin: Array) -> tuple[Array, Any]:
        sides = [support(kinds, _shrink(s, thin)) for s in (a, b)]
        wanted = active & ~done & (round_ | ~thin)
        far = cutoff + jnp.where(thin, sum(grow), 0)
        found = gjk(*sides, centre(a) - centre(b), tolerance, discrete, iterations, far > 0, far, wanted)
        return done | (wanted & thin & (found.dist > tolerance)), found

    no = jnp.array(False)
    round_ = is_any(a.kind, ROUND) | is_any(b.kind, ROUND)
    if set(kinds) & set(ROUND):
        shallow, tries = jax.lax.scan(attempt, no, np.array([True, False]))
        core, simplex = [jax.tree.map(lambda x, i=i: x[i], tries) for i in (0, 1)]
    else:
        shallow, core = no, attempt(no, no)[1]
        simplex = core
    way = unit(core.x2 - core.x1)[0]
    dist = core.dist - sum(grow)
    inside = active & ~shallow & (simplex.dist <= tolerance) & (simplex.n > 1)
    deep = epa(support(kinds, a), support(kinds, b), simplex, tolerance, discrete, iterations, inside)
    found = inside & deep.ok
    apart = jnp.where(inside, 0, simplex.dist)
    return Found(
        jnp.where(shallow, dist < 0, found & (deep.depth > 0)),
        jnp.where(shallow, jnp.where(dist > cutoff, jnp.inf, dist), jnp.where(found, -deep.depth, apart)),
        jnp.where(shallow, core.x1 + grow[0] * way, jnp.where(found, deep.x1, simplex.x1)),
        jnp.where(shallow, core.x2 - grow[1] * way, jnp.where(found, deep.x2, simplex.x2)),
        deep.face,
    )


def _shrink(s: Shape, thin: Array) -> Shape:
    """A sphere or a capsule without its radius and margin; other shapes as they are."""
    thin = thin & is_any(s.kind, ROUND)
    size = jnp.where(thin & (jnp.arange(3) == 0), 0, s.size)
    return s._replace(size=size, margin=jnp.where(thin, 0, s.margin))


def rebuild(
    kind1: Array,
    kind2: Array,
    a: Geoms,
    b: Geoms,
    margin: Array,
    hit: Array,
    dist: Array,
    x1: Array,
    x2: Array,
    first: Array,
) -> Hits:
    """Contacts from points (n, k, 3) that are carried along by the geoms' poses and sizes.

    All slots share the distance between the points `first` (n, 2, 3): it changes as these move along the normal, to
    first order whatever the shapes. The normals keep still.
    """
    normal = unit(x1 - x2)[0]
    along = unit(first[:, 0] - first[:, 1])[0]
    push = _shift(kind2, b, first[:, 1:]) - _shift(kind1, a, first[:, :1])
    dist = margin[:, None] + dist + jnp.sum(along[:, None] * push, axis=-1)
    middle = 0.5 * (x1 + x2 + _shift(kind1, a, x1) + _shift(kind2, b, x2))
    finite = jnp.isfinite(dist)
    return Hits(jnp.where(finite, dist, 0), middle, normal, hit & finite)


def _shift(kind: Array, g: Geoms, x: Array) -> Array:
    """Zero, with the derivative of points of the world (n, k, 3) that move with a geom and grow with its size."""
    mat, fixed = g.mat[:, None], jax.lax.stop_gradient(g.size)
    local = jax.lax.stop_gradient(matvec_t(mat, x - g.pos[:, None]))
    growth = 1 + (g.size - fixed) / jnp.where(fixed == 0, 1, fixed)
    scale = jnp.take_along_axis(growth, jnp.asarray(SIZES)[kind], axis=1)
    kind = kind[:, None, None]
    scaled = local * jnp.where(is_any(kind, (GeomType.MESH, GeomType.HFIELD)), 1, scale[:, None])
    half = fixed[:, None, 1:2]
    z = jnp.clip(local[..., 2:], -half, half)
    core = jnp.concatenate([jnp.zeros_like(local[..., :2]), z], axis=-1)
    grown = core * jnp.where(jnp.abs(z) >= half, growth[:, None, 1:2], 1) + (local - core) * growth[:, None, :1]
    moved = g.pos[:, None] + matvec(mat, jnp.where(kind == GeomType.CAPSULE, grown, scaled))
    return moved - jax.lax.stop_gradient(moved)
