"""Collider of general convex pairs: ellipsoids, cylinders, capsules, boxes and mesh hulls, by GJK and EPA, or by MPR.

The searches have no derivatives. Those of their results, witness points and normal, follow from the equations that the
results solve (`sensitivity`, `portal_jvp`).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import DisableBit, GeomType
from jaxsim.engine.collision.convex.epa import epa
from jaxsim.engine.collision.convex.gjk import SupportPoints, gjk
from jaxsim.engine.collision.convex.hull import FacetTable, HullTable, climb_neighbours, facet_table, hull_table
from jaxsim.engine.collision.convex.manifold import manifold
from jaxsim.engine.collision.convex.mpr import mpr
from jaxsim.engine.collision.convex.sensitivity import WitnessPoints, refined_witness, surface_feature, witness_jvp
from jaxsim.engine.collision.convex.support import (
    FACETED_TYPES,
    POLYHEDRON_TYPES,
    ROUND_TYPES,
    ConvexShape,
    ShapeTypes,
    centre,
    is_type,
    support,
)
from jaxsim.engine.collision.convex.surface_normal import surface_normal
from jaxsim.engine.collision.shapes import Geoms, PairContacts, make_frame, unit
from jaxsim.math.arrays import inner, matvec
from jaxsim.math.rotation import axis_angle_to_quat, cross, quat_to_mat
from jaxsim.math.safe import Array
from jaxsim.xla.batching import batch_max

MULTICCD_ANGLE = 1e-3  # by which geoms are rotated to find more contacts
DISTINCT_TOLERANCE = 1e-3  # contacts closer than this, relative to the smaller bound, count as one
SINGLE_CONTACT_TYPES = (GeomType.SPHERE, GeomType.ELLIPSOID)  # touch at a single point
# axis of the contact frame and angle of each search; the first one is not tilted
MULTICCD_TILTS = ((0, 0.0), (1, -MULTICCD_ANGLE), (1, MULTICCD_ANGLE), (2, -MULTICCD_ANGLE), (2, MULTICCD_ANGLE))
NORMAL_MIN_DISTANCE = 1e-6  # below, the difference of the witness points gives no direction


class ConvexContext(NamedTuple):
    """What convex colliders need of the model: geom types, hulls, facets, bounds, and the settings of the search.

    `type_of_geom` holds the type of every geom. With `multiccd` some pairs may have several contacts; with `use_mpr`
    the search is libccd's, MPR.
    """

    types: ShapeTypes
    hulls: HullTable
    facets: FacetTable | None
    type_of_geom: np.ndarray
    rbound: Array
    tolerance: Array
    iterations: int
    multiccd: bool
    use_mpr: bool = False


class Penetration(NamedTuple):
    """The result of a search: whether the shapes penetrate, distance (infinite beyond the cutoff), witness points (3,).

    `normal` is the unit vector from the first shape to the second; `face` is EPA's nearest face, if EPA ran.
    """

    hit: Array
    dist: Array
    x1: Array
    x2: Array
    normal: Array
    face: SupportPoints


def convex_context(m: Any, g1: np.ndarray, g2: np.ndarray) -> ConvexContext:
    """The context of a group of pairs of geoms g1, g2 (n,)."""
    t1, t2 = m.geom_type[g1], m.geom_type[g2]
    hulls = hull_table(m, np.concatenate([g1, g2]))
    types = ShapeTypes(tuple(np.unique(np.concatenate([t1, t2])).tolist()), climb_neighbours(m, hulls))
    multiccd = not m.opt.disableflags & DisableBit.MULTICCD
    use_mpr = bool(m.opt.disableflags & DisableBit.NATIVECCD)
    faceted = multiccd and not use_mpr and np.any(np.isin(t1, FACETED_TYPES) & np.isin(t2, FACETED_TYPES))
    multiccd = multiccd and bool(np.any(~np.isin(t1, SINGLE_CONTACT_TYPES) & ~np.isin(t2, SINGLE_CONTACT_TYPES)))
    return ConvexContext(
        *(types, hulls, facet_table(m, hulls) if faceted else None, m.geom_type),
        *(m.geom_rbound, m.opt.ccd_tolerance, m.opt.ccd_iterations, multiccd, use_mpr),
    )


def convex_convex(c: ConvexContext, a: Geoms, b: Geoms, margin: Array) -> PairContacts:
    """Contacts of convex geoms: the deepest one and, for shapes with flat parts, up to four more around it."""
    bound = jnp.minimum(c.rbound[a.id], c.rbound[b.id])
    hit, dist, pos, normal = jax.vmap(partial(_contacts_of_pair, c))(
        _shapes(c, a, margin), _shapes(c, b, margin), bound
    )
    finite = jnp.isfinite(dist)
    return PairContacts(margin[:, None] + jnp.where(finite, dist, 0), pos, normal, hit & finite)


def convex_distance(c: ConvexContext, a: Geoms, b: Geoms, distmax: Array) -> tuple[Array, Array]:
    """Signed distances of convex geoms (n,), at most `distmax`, and segments (n, 6) of nearest points, or zeros."""
    zero = jnp.zeros_like(distmax)
    find = jax.vmap(partial(penetration, c.types, c.iterations), in_axes=(0, 0, None, None, 0))
    found = find(_shapes(c, a, zero), _shapes(c, b, zero), c.tolerance, jnp.array(True), distmax)
    finite = jnp.isfinite(found.dist)
    fromto = jnp.concatenate([found.x1, found.x2], axis=1)
    dist = jnp.where(finite & (found.dist < distmax), jnp.where(finite, found.dist, 0), distmax)
    return dist, jnp.where(finite[:, None], fromto, 0)


def _shapes(c: ConvexContext, g: Geoms, margin: Array) -> ConvexShape:
    """Convex shapes of geoms, inflated by half of the margin."""
    geom_type = jnp.asarray(c.type_of_geom)[g.id]
    return ConvexShape(
        geom_type, g.pos, g.mat, g.size, c.hulls.vertices(g.id), c.hulls.row(g.id), jnp.maximum(margin, 0)
    )


def _contacts_of_pair(c: ConvexContext, a: ConvexShape, b: ConvexShape, bound: Array) -> tuple[Array, ...]:
    """Contacts of one pair in k slots: which exist, distances of the inflated shapes, positions, normals.

    With `multiccd`, pairs without a manifold are searched again with the geoms tilted about the tangents of the first
    contact, as mjc_Convex does.
    """
    find = partial(deepest_contact, c, a, b, jnp.zeros_like(bound))
    if not c.multiccd:
        found = find(a, b, jnp.array(True))
        return found.hit[None], found.dist[None], 0.5 * (found.x1 + found.x2)[None], found.normal[None]
    faceted = is_type(a.type, FACETED_TYPES) & is_type(b.type, FACETED_TYPES)
    is_multi = ~is_type(a.type, SINGLE_CONTACT_TYPES) & ~is_type(b.type, SINGLE_CONTACT_TYPES)
    if not c.use_mpr:
        is_multi &= ~faceted | (a.margin > 0)

    def tilted(first: tuple, tilt: tuple) -> tuple:
        hit, pivot, frame = first
        axis, angle, is_first = tilt
        is_needed = is_first | (hit & is_multi)

        def search() -> Penetration:
            rot = quat_to_mat(axis_angle_to_quat(frame[axis], angle))
            rot = jnp.where(is_first, jnp.eye(3, dtype=rot.dtype), rot)
            return find(_rotated(a, rot, pivot), _rotated(b, rot.T, pivot), is_needed)

        found = jax.lax.cond(batch_max(is_needed), search, partial(_no_penetration, c, a))
        midpoint = jnp.where(found.hit, 0.5 * (found.x1 + found.x2), 0)
        frame = jnp.where(is_first, make_frame(found.normal[None], None).reshape(3, 3), frame)
        return (jnp.where(is_first, found.hit, hit), jnp.where(is_first, midpoint, pivot), frame), (found, midpoint)

    start = (jnp.array(False), jnp.zeros_like(a.pos), jnp.eye(3, dtype=a.pos.dtype))
    axes, angles = np.array([t[0] for t in MULTICCD_TILTS]), np.array([t[1] for t in MULTICCD_TILTS], a.pos.dtype)
    _, (found, pos) = jax.lax.scan(tilted, start, (axes, angles, np.arange(len(MULTICCD_TILTS)) == 0))
    hit = found.hit & _distinct(pos, found.hit, DISTINCT_TOLERANCE * bound)
    dist = jnp.broadcast_to(found.dist[0], found.dist.shape)
    normal = found.normal
    if c.facets is not None:
        face = jax.tree.map(lambda x: x[0], found.face)
        by_manifold, points, manifold_normal, real = manifold(c.facets, a, b, face, found.x2[0] - found.x1[0])
        by_manifold &= found.hit[0] & faceted & (a.margin == 0)
        pos, normal = jnp.where(by_manifold, points, pos), jnp.where(by_manifold, manifold_normal, normal)
        hit = jnp.where(by_manifold, real, hit)
    return hit, dist, pos, normal


def deepest_contact(
    c: ConvexContext,
    a: ConvexShape,
    b: ConvexShape,
    cutoff: Array,
    turned_a: ConvexShape,
    turned_b: ConvexShape,
    active: Array,
) -> Penetration:
    """The penetration of one pair, by the search that the model selects.

    `turned_a` and `turned_b` are the shapes rotated a little, which are searched; MPR takes surface normals from a and
    b.
    """
    if not c.use_mpr:
        return penetration(c.types, c.iterations, turned_a, turned_b, c.tolerance, active, cutoff)
    hit, depth, pos, normal = mpr(c.types, c.iterations, turned_a, turned_b, c.tolerance, active)
    normal = jnp.where(hit, surface_normal(c.types, a, b, pos, normal), normal)
    return Penetration(hit, -depth, pos, pos, normal, None)


def _no_penetration(c: ConvexContext, a: ConvexShape) -> Penetration:
    """The result of a search that is not made."""
    zero = jnp.zeros_like(a.pos)
    points = [] if c.use_mpr else [jnp.zeros_like(a.mat), jnp.zeros_like(a.mat), jnp.zeros((3, 2), jnp.int32)]
    face = SupportPoints(*points) if points else None
    return Penetration(jnp.array(False), zero[0], zero, zero, zero, face)


def _rotated(s: ConvexShape, rot: Array, centre: Array) -> ConvexShape:
    """The shape rotated about a point of the world."""
    return s._replace(pos=centre + matvec(rot, s.pos - centre), mat=jnp.sum(rot[:, :, None] * s.mat, axis=1))


def _distinct(pos: Array, hit: Array, tolerance: Array) -> Array:
    """Whether each contact (k,) is farther than the tolerance from all earlier ones that were kept."""
    gap = pos[:, None] - pos
    close = jnp.sqrt(jnp.sum(gap * gap, axis=-1)) <= tolerance
    kept = [hit[0]]
    for i in range(1, len(pos)):
        kept.append(hit[i] & kept[0] & ~jnp.any(close[i, :i] & jnp.stack(kept)))
    return jnp.stack(kept)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def penetration(
    types: ShapeTypes, iterations: int, a: ConvexShape, b: ConvexShape, tolerance: Array, active: Array, cutoff: Array
) -> Penetration:
    """Penetration of two shapes, inflated by half of their margins, for one pair. `types` are those that may occur.

    With a positive `cutoff`, separated shapes are measured up to it. The search has no derivative; that of its result
    follows from the equations that the result solves, see `sensitivity`.
    """
    return penetration_search(types, iterations, a, b, tolerance, active, cutoff)[0]


@penetration.defjvp
def _penetration_jvp(
    types: ShapeTypes, iterations: int, primals: tuple, tangents: tuple
) -> tuple[Penetration, Penetration]:
    a, b, _, active, _ = primals
    found, points, weight = penetration_search(types, iterations, *primals)
    witness = jax.lax.stop_gradient(WitnessPoints(found.x1, found.x2, contact_normal(a, b, found), found.dist))
    known = active & jnp.isfinite(found.dist)
    witness = WitnessPoints(*[jnp.where(known, x, 0) for x in witness])
    feature1 = surface_feature(a, points.a, weight, witness.x1, witness.normal)
    feature2 = surface_feature(b, points.b, weight, witness.x2, -witness.normal)
    z = refined_witness(a, b, feature1, feature2, witness)
    tangent = witness_jvp(a, b, *tangents[:2], z, feature1, feature2)
    tangent = WitnessPoints(*[jnp.where(known, x, 0) for x in tangent])
    face = SupportPoints(*[jnp.zeros_like(x) for x in found.face[:2]], _no_tangent(found.face.index))
    return found, Penetration(_no_tangent(found.hit), tangent.dist, tangent.x1, tangent.x2, tangent.normal, face)


def _no_tangent(x: Array) -> np.ndarray:
    """The tangent of an integer or boolean array."""
    return np.zeros(x.shape, jax.dtypes.float0)


def contact_normal(a: ConvexShape, b: ConvexShape, found: Penetration) -> Array:
    """The contact normal; that of the polytope's face where the witness points are too close to give one."""
    w = found.face.w
    face_normal = unit(cross(w[1] - w[0], w[2] - w[0]))[0]
    face_normal = jnp.where(inner(face_normal, centre(b) - centre(a)) < 0, -face_normal, face_normal)
    return jnp.where(jnp.abs(found.dist) < NORMAL_MIN_DISTANCE, face_normal, found.normal)


def penetration_search(
    types: ShapeTypes, iterations: int, a: ConvexShape, b: ConvexShape, tolerance: Array, active: Array, cutoff: Array
) -> tuple[Penetration, SupportPoints, Array]:
    """The penetration, and the support points (3,) with weights that make up the witness points.

    Spheres and capsules are first searched as points and segments. If these are separated, their nearest points
    determine the result.
    """
    discrete = (a.margin == 0) & (b.margin == 0) & is_type(a.type, POLYHEDRON_TYPES) & is_type(b.type, POLYHEDRON_TYPES)
    radius = [jnp.where(is_type(s.type, ROUND_TYPES), s.size[0] + 0.5 * s.margin, 0) for s in (a, b)]

    def attempt(done: Array, core_only: Array) -> tuple[Array, Any]:
        supports = [support(types, _without_radius(s, core_only)) for s in (a, b)]
        is_needed = active & ~done & (any_round | ~core_only)
        limit = cutoff + jnp.where(core_only, sum(radius), 0)
        result = gjk(*supports, centre(a) - centre(b), tolerance, discrete, iterations, limit > 0, limit, is_needed)
        return done | (is_needed & core_only & (result.dist > tolerance)), result

    no = jnp.array(False)
    any_round = is_type(a.type, ROUND_TYPES) | is_type(b.type, ROUND_TYPES)
    if set(types.present) & set(ROUND_TYPES):
        shallow, results = jax.lax.scan(attempt, no, np.array([True, False]))
        core, simplex = [jax.tree.map(lambda x, i=i: x[i], results) for i in (0, 1)]
    else:
        shallow, core = no, attempt(no, no)[1]
        simplex = core
    direction = unit(core.x2 - core.x1)[0]
    dist = core.dist - sum(radius)
    overlapping = active & ~shallow & (simplex.dist <= tolerance) & (simplex.n > 1)
    deepest = epa(support(types, a), support(types, b), simplex, tolerance, discrete, iterations, overlapping)
    penetrating = overlapping & deepest.valid
    separation = jnp.where(overlapping, 0, simplex.dist)
    dist = jnp.where(
        shallow, jnp.where(dist > cutoff, jnp.inf, dist), jnp.where(penetrating, -deepest.depth, separation)
    )
    x1 = jnp.where(shallow, core.x1 + radius[0] * direction, jnp.where(penetrating, deepest.x1, simplex.x1))
    x2 = jnp.where(shallow, core.x2 - radius[1] * direction, jnp.where(penetrating, deepest.x2, simplex.x2))
    nearest = jax.tree.map(
        lambda x, y: jnp.where(shallow, x, y)[:3], (core.points, core.weight), (simplex.points, simplex.weight)
    )
    points, weight = jax.tree.map(lambda x, y: jnp.where(penetrating, x, y), (deepest.face, deepest.weight), nearest)
    normal = unit(jnp.where(dist < 0, x1 - x2, x2 - x1))[0]
    hit = jnp.where(shallow, dist < 0, penetrating & (deepest.depth > 0))
    return Penetration(hit, dist, x1, x2, normal, deepest.face), points, weight


def _without_radius(s: ConvexShape, core_only: Array) -> ConvexShape:
    """A sphere or capsule without its radius and margin; other shapes unchanged."""
    core_only = core_only & is_type(s.type, ROUND_TYPES)
    size = jnp.where(core_only & (jnp.arange(3) == 0), 0, s.size)
    return s._replace(size=size, margin=jnp.where(core_only, 0, s.margin))
