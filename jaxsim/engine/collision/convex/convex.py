"""General convex pairs: ellipsoids, cylinders, capsules, boxes and hulls of meshes, by GJK and EPA or along a ray.

The searches see no gradients. Those of what they find, the points on either surface and the direction between them,
follow from the equations that the answer solves (`sensitivity`).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import DisableBit, GeomType
from jaxsim.engine.collision.convex.epa import epa
from jaxsim.engine.collision.convex.gjk import Points, gjk
from jaxsim.engine.collision.convex.hull import Facets, Hulls, edges, facets, hulls
from jaxsim.engine.collision.convex.manifold import manifold
from jaxsim.engine.collision.convex.mpr import contact
from jaxsim.engine.collision.convex.sensitivity import Touch, derivative, feature, polished
from jaxsim.engine.collision.convex.support import DISCRETE, PRISM, ROUND, Kinds, Shape, centre, is_any, support
from jaxsim.engine.collision.convex.surface_normal import surface_normal
from jaxsim.engine.collision.shapes import Geoms, Hits, make_frame, unit
from jaxsim.math.arrays import inner, matvec
from jaxsim.math.rotation import axis_angle_to_quat, cross, quat_to_mat
from jaxsim.math.safe import Array
from jaxsim.xla.batching import batch_max

ANGLE = 1e-3  # geoms are rotated by this to find more contacts
APART = 1e-3  # contacts closer than this, relative to the geoms' bounds, count as one
SINGLE = (GeomType.SPHERE, GeomType.ELLIPSOID)  # shapes that touch at one point only
TILT = ((0, 0.0), (1, -ANGLE), (1, ANGLE), (2, -ANGLE), (2, ANGLE))  # axis of the contact frame, angle
CLOSE = 1e-6  # distance below which the points' difference gives no direction


class Context(NamedTuple):
    """What convex colliders need of the model.

    Which kinds of geom occur, the hulls and facets of meshes and boxes, kinds and bounds of all geoms, and the settings
    of the search; `several` says whether any pair may make more than one contact, `portal` that the search is libccd's.
    """

    kinds: Kinds
    hulls: Hulls
    facets: Facets | None
    of_geom: np.ndarray
    rbound: Array
    tolerance: Array
    iterations: int
    several: bool
    portal: bool = False


class Found(NamedTuple):
    """One search: whether there is penetration, distance (infinite beyond the cutoff), witness points x1, x2 (3,).

    `normal` is the unit vector from the first shape to the second; `face` the polytope's face if the search was deep.
    """

    hit: Array
    dist: Array
    x1: Array
    x2: Array
    normal: Array
    face: Points


def convex_context(m: Any, g1: np.ndarray, g2: np.ndarray) -> Context:
    """The context of a group of pairs of geoms g1, g2 (n,)."""
    t1, t2 = m.geom_type[g1], m.geom_type[g2]
    table = hulls(m, np.concatenate([g1, g2]))
    kinds = Kinds(tuple(np.unique(np.concatenate([t1, t2])).tolist()), edges(m, table))
    several = not m.opt.disableflags & DisableBit.MULTICCD
    portal = bool(m.opt.disableflags & DisableBit.NATIVECCD)
    faceted = several and not portal and np.any(np.isin(t1, DISCRETE) & np.isin(t2, DISCRETE))
    several = several and bool(np.any(~np.isin(t1, SINGLE) & ~np.isin(t2, SINGLE)))
    return Context(
        *(kinds, table, facets(m, table) if faceted else None, m.geom_type),
        *(m.geom_rbound, m.opt.ccd_tolerance, m.opt.ccd_iterations, several, portal),
    )


def convex_convex(c: Context, a: Geoms, b: Geoms, margin: Array) -> Hits:
    """Two convex geoms: the deepest contact and, for shapes with flat parts, up to four more around it."""
    bound = jnp.minimum(c.rbound[a.id], c.rbound[b.id])
    hit, dist, pos, normal = jax.vmap(partial(_search, c))(_shapes(c, a, margin), _shapes(c, b, margin), bound)
    finite = jnp.isfinite(dist)
    return Hits(margin[:, None] + jnp.where(finite, dist, 0), pos, normal, hit & finite)


def convex_distance(c: Context, a: Geoms, b: Geoms, distmax: Array) -> tuple[Array, Array]:
    """Signed distance of convex geoms (n,), at most `distmax`, and the segment (n, 6) between them, or zeros."""
    zero = jnp.zeros_like(distmax)
    find = jax.vmap(partial(penetration, c.kinds, c.iterations), in_axes=(0, 0, None, None, 0))
    found = find(_shapes(c, a, zero), _shapes(c, b, zero), c.tolerance, jnp.array(True), distmax)
    known = jnp.isfinite(found.dist)
    fromto = jnp.concatenate([found.x1, found.x2], axis=1)
    dist = jnp.where(known & (found.dist < distmax), jnp.where(known, found.dist, 0), distmax)
    return dist, jnp.where(known[:, None], fromto, 0)


def _shapes(c: Context, g: Geoms, margin: Array) -> Shape:
    kind = jnp.asarray(c.of_geom)[g.id]
    return Shape(kind, g.pos, g.mat, g.size, c.hulls.vertices(g.id), c.hulls.row(g.id), jnp.maximum(margin, 0))


def _search(c: Context, a: Shape, b: Shape, bound: Array) -> tuple[Array, ...]:
    """Contacts of one pair in k slots: which are there, distances of the inflated shapes, positions, normals."""
    find = partial(deepest, c, a, b, jnp.zeros_like(bound))
    if not c.several:
        found = find(a, b, jnp.array(True))
        return found.hit[None], found.dist[None], 0.5 * (found.x1 + found.x2)[None], found.normal[None]
    faceted = is_any(a.kind, DISCRETE) & is_any(b.kind, DISCRETE)
    more = ~is_any(a.kind, SINGLE) & ~is_any(b.kind, SINGLE)
    if not c.portal:
        more &= ~faceted | (a.margin > 0)

    def tilted(first: tuple, tilt: tuple) -> tuple:
        hit, centre, frame = first
        axis, angle, initial = tilt
        wanted = initial | (hit & more)

        def look() -> Found:
            rot = quat_to_mat(axis_angle_to_quat(frame[axis], angle))
            rot = jnp.where(initial, jnp.eye(3, dtype=rot.dtype), rot)
            return find(_turn(a, rot, centre), _turn(b, rot.T, centre), wanted)

        found = jax.lax.cond(batch_max(wanted), look, partial(_nothing, c, a))
        middle = jnp.where(found.hit, 0.5 * (found.x1 + found.x2), 0)
        frame = jnp.where(initial, make_frame(found.normal[None], None).reshape(3, 3), frame)
        return (jnp.where(initial, found.hit, hit), jnp.where(initial, middle, centre), frame), (found, middle)

    start = (jnp.array(False), jnp.zeros_like(a.pos), jnp.eye(3, dtype=a.pos.dtype))
    axes, angles = np.array([t[0] for t in TILT]), np.array([t[1] for t in TILT], a.pos.dtype)
    _, (found, pos) = jax.lax.scan(tilted, start, (axes, angles, np.arange(len(TILT)) == 0))
    hit = found.hit & _distinct(pos, found.hit, APART * bound)
    dist = jnp.broadcast_to(found.dist[0], found.dist.shape)
    normal = found.normal
    if c.facets is not None:
        face = jax.tree.map(lambda x: x[0], found.face)
        many, points, way, real = manifold(c.facets, a, b, face, found.x2[0] - found.x1[0])
        many &= found.hit[0] & faceted & (a.margin == 0)
        pos, normal = jnp.where(many, points, pos), jnp.where(many, way, normal)
        hit = jnp.where(many, real, hit)
    return hit, dist, pos, normal


def deepest(c: Context, a: Shape, b: Shape, cutoff: Array, turned_a: Shape, turned_b: Shape, active: Array) -> Found:
    """How deep two shapes, both turned a little, penetrate, by the search that the model asks for; for one pair."""
    if not c.portal:
        return penetration(c.kinds, c.iterations, turned_a, turned_b, c.tolerance, active, cutoff)
    hit, depth, pos, normal = contact(c.kinds, c.iterations, turned_a, turned_b, c.tolerance, active)
    normal = jnp.where(hit, surface_normal(c.kinds, a, b, pos, normal), normal)
    return Found(hit, -depth, pos, pos, normal, None)


def _nothing(c: Context, a: Shape) -> Found:
    """What a search finds that nobody wants."""
    zero = jnp.zeros_like(a.pos)
    face = None if c.portal else Points(jnp.zeros_like(a.mat), jnp.zeros_like(a.mat), jnp.zeros((3, 2), jnp.int32))
    return Found(jnp.array(False), zero[0], zero, zero, zero, face)


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


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def penetration(
    kinds: Kinds, iterations: int, a: Shape, b: Shape, tolerance: Array, active: Array, cutoff: Array
) -> Found:
    """How deep two shapes, inflated by their margins, penetrate; for one pair. `kinds` are those that may occur.

    Shapes that are apart by less than a positive `cutoff` are measured too. The search has no derivative; that of its
    answer follows from the equations that the answer solves, see `sensitivity`.
    """
    return penetration_search(kinds, iterations, a, b, tolerance, active, cutoff)[0]


@penetration.defjvp
def _penetration_jvp(kinds: Kinds, iterations: int, primals: tuple, tangents: tuple) -> tuple[Found, Found]:
    a, b, _, active, _ = primals
    found, points, weight = penetration_search(kinds, iterations, *primals)
    touch = jax.lax.stop_gradient(Touch(found.x1, found.x2, contact_normal(a, b, found), found.dist))
    known = active & jnp.isfinite(found.dist)
    touch = Touch(*[jnp.where(known, x, 0) for x in touch])
    one = feature(a, points.a, weight, touch.x1, touch.normal)
    two = feature(b, points.b, weight, touch.x2, -touch.normal)
    z = polished(a, b, one, two, touch)
    moved = derivative(a, b, *tangents[:2], z, one, two)
    moved = Touch(*[jnp.where(known, x, 0) for x in moved])
    face = Points(*[jnp.zeros_like(x) for x in found.face[:2]], _no_tangent(found.face.index))
    return found, Found(_no_tangent(found.hit), moved.dist, moved.x1, moved.x2, moved.normal, face)


def _no_tangent(x: Array) -> np.ndarray:
    return np.zeros(x.shape, jax.dtypes.float0)


def contact_normal(a: Shape, b: Shape, found: Found) -> Array:
    """The normal, taken from the polytope's face where the points are too close to tell."""
    w = found.face.w
    flat = unit(cross(w[1] - w[0], w[2] - w[0]))[0]
    flat = jnp.where(inner(flat, centre(b) - centre(a)) < 0, -flat, flat)
    return jnp.where(jnp.abs(found.dist) < CLOSE, flat, found.normal)


def penetration_search(
    kinds: Kinds, iterations: int, a: Shape, b: Shape, tolerance: Array, active: Array, cutoff: Array
) -> tuple[Found, Points, Array]:
    """The search, and the support points (3,) with their weights that its witness points mix.

    Spheres and capsules are first tried as points and segments: if these are apart, their nearest points tell all.
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
    if set(kinds.of) & set(ROUND):
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
    dist = jnp.where(shallow, jnp.where(dist > cutoff, jnp.inf, dist), jnp.where(found, -deep.depth, apart))
    x1 = jnp.where(shallow, core.x1 + grow[0] * way, jnp.where(found, deep.x1, simplex.x1))
    x2 = jnp.where(shallow, core.x2 - grow[1] * way, jnp.where(found, deep.x2, simplex.x2))
    ends = jax.tree.map(
        lambda x, y: jnp.where(shallow, x, y)[:3], (core.points, core.weight), (simplex.points, simplex.weight)
    )
    points, weight = jax.tree.map(lambda x, y: jnp.where(found, x, y), (deep.face, deep.weight), ends)
    normal = unit(jnp.where(dist < 0, x1 - x2, x2 - x1))[0]
    hit = jnp.where(shallow, dist < 0, found & (deep.depth > 0))
    return Found(hit, dist, x1, x2, normal, deep.face), points, weight


def _shrink(s: Shape, thin: Array) -> Shape:
    """A sphere or a capsule without its radius and margin; other shapes as they are."""
    thin = thin & is_any(s.kind, ROUND)
    size = jnp.where(thin & (jnp.arange(3) == 0), 0, s.size)
    return s._replace(size=size, margin=jnp.where(thin, 0, s.margin))
