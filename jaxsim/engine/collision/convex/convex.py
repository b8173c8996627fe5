"""Collider of general convex pairs: ellipsoids, cylinders, capsules, boxes and mesh hulls, by GJK and EPA, or by MPR.

The searches have no derivatives. Each leaves a record of where it ended: witness points and the vertices that span
them. Derivatives follow from the equations that the results solve (`sensitivity`, `portal_jvp`), at these records.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.core.types import DisableBit, GeomType
from jaxsim.engine.collision.convex.epa import EpaResult, epa
from jaxsim.engine.collision.convex.gjk import SupportPoints, gjk, weighted
from jaxsim.engine.collision.convex.hull import FacetTable, HullTable, facet_table, hull_table
from jaxsim.engine.collision.convex.manifold import Manifold, ManifoldRecord, manifold, manifold_again
from jaxsim.engine.collision.convex.mpr import find_portal, mpr_contact
from jaxsim.engine.collision.convex.sensitivity import (
    SolvedWitness,
    WitnessPoints,
    solved_witness,
    surface_feature,
    witness,
)
from jaxsim.engine.collision.convex.support import (
    FACETED_TYPES,
    POLYHEDRON_TYPES,
    ROUND_TYPES,
    ConvexShape,
    Hulls,
    are_polyhedra,
    centre,
    farthest_point,
    is_type,
    pair_support,
    touched,
)
from jaxsim.engine.collision.convex.surface_normal import surface_normal
from jaxsim.engine.collision.shapes import Geoms, PairContacts, make_frame, unit
from jaxsim.math.arrays import gather, inner, matvec, row_at
from jaxsim.math.component import Vector, split
from jaxsim.math.jvp import with_derivatives_of
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.native.pool import for_each
from jaxsim.native.rows import over_rows, real_rows
from jaxsim.xla.loops import computed_anyway, repeat, traced_once, when

MULTICCD_ANGLE = 1e-3  # by which geoms are rotated to find more contacts
DISTINCT_TOLERANCE = 1e-3  # contacts closer than this, relative to the smaller bound, count as one
SINGLE_CONTACT_TYPES = (GeomType.SPHERE, GeomType.ELLIPSOID)  # touch at a single point
# axis of the contact frame and angle of each search; the first one is not tilted
MULTICCD_TILTS = ((0, 0.0), (1, -MULTICCD_ANGLE), (1, MULTICCD_ANGLE), (2, -MULTICCD_ANGLE), (2, MULTICCD_ANGLE))
NORMAL_MIN_DISTANCE = 1e-6  # below, the difference of the witness points gives no direction


class SearchSettings(NamedTuple):
    """The static part of a search: geom types that may occur, its bound of iterations, and what it looks for.

    With `multiccd` some pairs may have several contacts, with `faceted` some by the faces that touch; with `use_mpr`
    the search is libccd's, MPR. With `surface` normals are those of curved surfaces, where a pair has one. Faces have
    `max_corners` at most.
    """

    types: tuple[int, ...]
    iterations: int
    multiccd: bool
    faceted: bool
    use_mpr: bool
    surface: bool
    max_corners: int


class SearchTables(NamedTuple):
    """Data shared by all pairs: hulls, their facets if some pair needs them, and the tolerance of the search."""

    hulls: Hulls
    facets: FacetTable | None
    tolerance: Array


class ConvexContext(NamedTuple):
    """Context of convex colliders: `type_of_geom` is the type of every geom, `rbound` its bound."""

    settings: SearchSettings
    tables: SearchTables
    hulls: HullTable
    type_of_geom: np.ndarray
    rbound: Array


class Witness(NamedTuple):
    """Where GJK and EPA ended, for one pair.

    Whether the shapes penetrate; distance, infinite beyond the cutoff; witness points x1, x2 (3,), the support points
    (3,) and weights (3,) that make them up; the unit normal (3,) from the first shape to the second. `solved` is there
    for derivatives alone.
    """

    hit: Array
    dist: Array
    x1: Array
    x2: Array
    normal: Array
    points: SupportPoints
    weight: Array
    solved: SolvedWitness | None = None


CORNER_CLASSES = (0, 16, 150)  # capacities of programs for corners of a face; few hulls need the last
CONVEX_TYPES = tuple(int(t) for t in GeomType if GeomType.HFIELD < t <= GeomType.MESH)


class DeepestPoint(NamedTuple):
    """The deepest or nearest point of one pair: whether it penetrates, distance, witness points, normal (3,)."""

    hit: Array
    dist: Array
    x1: Array
    x2: Array
    normal: Array


class Contacts(NamedTuple):
    """Contacts of one pair in k slots: which exist, distances of the inflated shapes, positions, normals."""

    hit: Array
    dist: Array
    pos: Array
    normal: Array


def convex_context(m: Any, g1: np.ndarray, g2: np.ndarray) -> ConvexContext:
    """Build the context of a group of pairs of geoms g1, g2 (n,)."""
    t1, t2 = m.geom_type[g1], m.geom_type[g2]
    hulls = hull_table(m, np.concatenate([g1, g2]))
    multiccd = not m.opt.disableflags & DisableBit.MULTICCD
    use_mpr = bool(m.opt.disableflags & DisableBit.NATIVECCD)
    faceted = multiccd and not use_mpr and bool(np.any(np.isin(t1, FACETED_TYPES) & np.isin(t2, FACETED_TYPES)))
    multiccd = multiccd and bool(np.any(~np.isin(t1, SINGLE_CONTACT_TYPES) & ~np.isin(t2, SINGLE_CONTACT_TYPES)))
    types = tuple(np.unique(np.concatenate([t1, t2])).tolist())
    facets, max_corners = facet_table(m, hulls) if faceted else (None, 0)
    return ConvexContext(
        SearchSettings(types, m.opt.ccd_iterations, multiccd, faceted, use_mpr, use_mpr, max_corners),
        SearchTables(hulls.hulls, facets, m.opt.ccd_tolerance),
        *(hulls._replace(vertex_id=[]), m.geom_type, m.geom_rbound),
    )


def for_all_types(c: ConvexContext) -> ConvexContext:
    """Give the context settings that serve all convex types and other hulls, so that models share a program."""
    corners = next((n for n in CORNER_CLASSES if c.settings.max_corners <= n), c.settings.max_corners)
    settings = c.settings._replace(types=CONVEX_TYPES, max_corners=corners)
    return c._replace(settings=settings)


def convex_convex(c: ConvexContext, a: Geoms, b: Geoms, margin: Array, count: Array) -> PairContacts:
    """Find contacts of convex geoms: the deepest and, for shapes with flat parts, up to four more around it."""
    bound = jnp.minimum(gather(c.rbound, a.id), gather(c.rbound, b.id))
    shapes = shapes_of(c, a, margin), shapes_of(c, b, margin)
    hit, dist, pos, normal = _contacts(c.settings, c.tables, *shapes, bound, count)
    finite = jnp.isfinite(dist)
    return PairContacts(margin[:, None] + jnp.where(finite, dist, 0), pos, normal, hit & finite)


def convex_pairs(
    settings: SearchSettings, tables: SearchTables, a: ConvexShape, b: ConvexShape, margin: Array, count: Array
) -> PairContacts:
    """Find the deepest contact of each of the first `count` of n pairs of shapes, inflated by half of `margin`."""
    hit, dist, pos, normal = _contacts(settings, tables, a, b, jnp.zeros_like(margin), count)
    finite = jnp.isfinite(dist)
    return PairContacts(margin[:, None] + jnp.where(finite, dist, 0), pos, normal, hit & finite)


def shapes_touch(
    settings: SearchSettings, tables: SearchTables, a: ConvexShape, b: ConvexShape, active: Array
) -> Array:
    """Return whether two shapes touch, by GJK; neither may be a sphere or a capsule."""
    support = pair_support(partial(farthest_point, settings.types, tables.hulls), a, b)
    start = split(centre(a) - centre(b))
    none = jnp.zeros_like(a.margin)
    found = gjk(support, start, tables.tolerance, jnp.array(False), settings.iterations, none, active)
    return found.dist <= tables.tolerance


def convex_distance(c: ConvexContext, a: Geoms, b: Geoms, distmax: Array) -> tuple[Array, Array]:
    """Compute signed distances of convex geoms (n,), at most `distmax`, and segments (n, 6) of nearest points or 0."""
    zero = jnp.zeros_like(distmax)
    found = _distance(c.settings, c.tables, shapes_of(c, a, zero), shapes_of(c, b, zero), distmax)
    finite = jnp.isfinite(found.dist)
    fromto = jnp.concatenate([found.x1, found.x2], axis=1)
    dist = jnp.where(finite & (found.dist < distmax), jnp.where(finite, found.dist, 0), distmax)
    return dist, jnp.where(finite[:, None], fromto, 0)


def shapes_of(c: ConvexContext, g: Geoms, margin: Array) -> ConvexShape:
    """Make the convex shapes of geoms, inflated by half of the margin."""
    tables = [jnp.asarray(x) for x in (c.type_of_geom, c.hulls.of_geom, c.hulls.first_vertex, c.hulls.scan)]
    geom_type, row = gather(tables[0], g.id), gather(tables[1], g.id)
    return ConvexShape(
        *(geom_type, g.pos, g.mat, g.size, jnp.maximum(margin, 0)),
        *(row, gather(tables[2], row), gather(tables[3], row)),
    )


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _contacts(
    settings: SearchSettings, tables: SearchTables, a: ConvexShape, b: ConvexShape, bound: Array, count: Array
) -> Contacts:
    """Contacts of the first `count` of n pairs."""

    def of_pair(tables: SearchTables, pair: tuple[ConvexShape, ConvexShape, Array], active: Array) -> Contacts:
        return contacts_of_pair(settings, tables, *pair, *_searches(settings, tables, active))[0]

    return for_each(of_pair, tables, (a, b, bound), count)


@_contacts.defjvp
def _contacts_jvp(settings: SearchSettings, primals: tuple, tangents: tuple) -> tuple[Contacts, Contacts]:
    tables, a, b, bound, count = primals

    def of_pair(
        tables: SearchTables, pair: tuple[ConvexShape, ConvexShape, Array], active: Array
    ) -> tuple[Contacts, Any]:
        find, touch = _searches(settings, tables, active)

        def find_and_solve(i: Array, a: ConvexShape, b: ConvexShape, needed: Array) -> Any:
            return solved(settings, tables, a, b, find(i, a, b, needed))

        return contacts_of_pair(settings, tables, *pair, find_and_solve, touch)

    found, records = for_each(of_pair, tables, (a, b, bound), count)

    def of_record(tables: SearchTables, pair: tuple[ConvexShape, ConvexShape, Array], records: Any) -> Contacts:
        def find(i: Array, *_: Any) -> Any:
            return jax.tree.map(lambda x: gather(x, i), records[0])

        def touch(a: ConvexShape, b: ConvexShape, _: Any, gap: Vector) -> tuple[Manifold, ManifoldRecord]:
            assert tables.facets is not None
            return manifold_again(tables.facets, tables.hulls, a, b, records[1], gap), records[1]

        return contacts_of_pair(settings, tables, *pair, find, touch, computed_anyway, _first_then_others)[0]

    def of_rows(tables: SearchTables, rows: Any) -> tuple[Contacts, tuple]:
        return jax.vmap(partial(of_record, tables))(*rows), ()

    def differentiable(tables: SearchTables, a: ConvexShape, b: ConvexShape, bound: Array) -> Contacts:
        return over_rows(of_rows, real_rows(count, len(bound)), tables, ((a, b, bound), records))[0]

    again, tangent = jax.jvp(differentiable, (tables, *_once(settings, (a, b)), bound), tangents[:4])
    return with_derivatives_of(again, found), tangent


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _once(settings: SearchSettings, shapes: tuple[ConvexShape, ConvexShape]) -> tuple[ConvexShape, ConvexShape]:
    """The shapes, with a warning where a derivative of a contact by MPR of curved shapes is differentiated again."""
    return shapes


@_once.defjvp
def _once_jvp(settings: SearchSettings, primals: tuple, tangents: tuple) -> tuple:
    if settings.use_mpr and not set(settings.types) <= set(POLYHEDRON_TYPES):
        text = "second derivatives of contacts of curved shapes by MPR are not right: use the flag nativeccd"
        warnings.warn(text, stacklevel=2)
    return _once(settings, *primals), tangents[0]


def _searches(settings: SearchSettings, tables: SearchTables, active: Array) -> tuple[Callable, Callable]:
    """`find` and `touch` of `contacts_of_pair`."""

    def find(_: Any, a: ConvexShape, b: ConvexShape, needed: Array) -> Any:
        return search(settings, tables, a, b, needed & active)

    def touch(a: ConvexShape, b: ConvexShape, face: Array, gap: Vector) -> tuple[Manifold, ManifoldRecord]:
        assert tables.facets is not None  # a manifold is only looked for between faceted shapes
        return manifold(tables.facets, tables.hulls, a, b, face, gap, settings.max_corners)

    return find, touch


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _distance(
    settings: SearchSettings, tables: SearchTables, a: ConvexShape, b: ConvexShape, distmax: Array
) -> DeepestPoint:
    """The nearest points of n pairs that are not farther apart than `distmax` (n,)."""
    return DeepestPoint(*_for_each_distance(partial(witness_search, settings), tables, a, b, distmax)[:5])


@_distance.defjvp
def _distance_jvp(settings: SearchSettings, primals: tuple, tangents: tuple) -> tuple[DeepestPoint, DeepestPoint]:
    def search(tables: SearchTables, a: ConvexShape, b: ConvexShape, active: Array, cutoff: Array) -> Witness:
        return solved(settings, tables, a, b, witness_search(settings, tables, a, b, active, cutoff))

    records = _for_each_distance(search, *primals)

    def differentiable(tables: SearchTables, a: ConvexShape, b: ConvexShape) -> DeepestPoint:
        return jax.vmap(partial(deepest_point, settings, tables))(records, a, b, a, b)

    return jax.jvp(differentiable, primals[:3], tangents[:3])


def _for_each_distance(
    search: Callable[..., Witness], tables: SearchTables, a: ConvexShape, b: ConvexShape, distmax: Array
) -> Witness:
    def of_pair(tables: SearchTables, pair: tuple, active: Array) -> Witness:
        a, b, cutoff = pair
        return search(tables, a, b, active, cutoff)

    return for_each(of_pair, tables, (a, b, distmax), jnp.int32(len(distmax)))


def contacts_of_pair(
    settings: SearchSettings,
    tables: SearchTables,
    a: ConvexShape,
    b: ConvexShape,
    bound: Array,
    find: Callable,
    touch: Callable,
    when: Callable = when,
    visit: Callable = lambda body, start, xs: lax.scan(body, start, xs)[1],
) -> tuple[Contacts, Any]:
    """Find contacts of one pair in k slots, and the records of the k searches and of the manifold.

    `find(i, turned_a, turned_b, needed)` is the record of search i; `touch(a, b, face, gap)` is `manifold`; `when`
    omits what is not needed; `visit` makes the searches. With `multiccd`, pairs without a manifold are searched again
    with the geoms tilted about the tangents of the first contact, as mjc_Convex does.
    """
    faceted = is_type(a.type, FACETED_TYPES) & is_type(b.type, FACETED_TYPES)
    is_multi = ~is_type(a.type, SINGLE_CONTACT_TYPES) & ~is_type(b.type, SINGLE_CONTACT_TYPES)
    if not settings.use_mpr:
        is_multi &= ~faceted | (a.margin > 0)
    tilts = MULTICCD_TILTS if settings.multiccd else MULTICCD_TILTS[:1]
    axis_of = jnp.asarray([t[0] for t in tilts], jnp.int32)
    cos_sin_of = jnp.asarray([(np.cos(t[1]), np.sin(t[1])) for t in tilts], a.pos.dtype)

    def tilted(first: tuple, i: Array) -> tuple[tuple, tuple]:
        hit, pivot, frame = first
        is_first = i == 0
        needed = is_first | (hit & is_multi)

        def attempt() -> tuple[DeepestPoint, Any]:
            rot = _rotation(row_at(frame, row_at(axis_of, i)), *split(row_at(cos_sin_of, i)))
            turned = _rotated(a, rot, pivot), _rotated(b, rot.T, pivot)
            record = find(i, *turned, needed)
            return deepest_point(settings, tables, record, *turned, a, b), record

        found, record = when(needed, attempt)
        pos = jnp.where(found.hit, 0.5 * (found.x1 + found.x2), 0)
        frame = jnp.where(is_first, make_frame(found.normal[None], None).reshape(3, 3), frame)
        first = jnp.where(is_first, found.hit, hit), jnp.where(is_first, pos, pivot), frame
        return first, (found, pos, record)

    start = jnp.array(False), jnp.zeros_like(a.pos), jnp.eye(3, dtype=a.pos.dtype)
    found, pos, records = visit(tilted, start, jnp.arange(len(tilts), dtype=jnp.int32))
    hit = found.hit
    if settings.multiccd:
        hit &= _distinct(pos, hit, DISTINCT_TOLERANCE * bound)
    contacts = Contacts(hit, jnp.broadcast_to(found.dist[0], hit.shape), pos, found.normal)
    if not settings.faceted:
        return contacts, (records, None)
    first, record = (jax.tree.map(lambda x: x[0], x) for x in (found, records))

    def of_faces() -> tuple[Manifold, ManifoldRecord]:
        return touch(a, b, record.points.index, split(first.x2 - first.x1))

    by_faces = first.hit & faceted & (a.margin == 0)
    touching, manifold_record = when(by_faces, of_faces)
    ok = touching.ok
    contacts = Contacts(
        jnp.where(ok, touching.real, contacts.hit),
        contacts.dist,
        jnp.where(ok, touching.pos, contacts.pos),
        jnp.where(ok, touching.normal, contacts.normal),
    )
    return contacts, (records, manifold_record)


def _first_then_others(body: Callable, start: Any, index: Array) -> Any:
    """Results of `body`, as `lax.scan` stacks them, where only the first changes the carry: the others are a batch.

    Derivatives of derivatives need it: of a loop in reverse mode JAX drops rules of `custom_jvp` (jax 0.10.2).
    """
    first, result = body(start, index[0])
    one = jax.tree.map(lambda x: x[None], result)
    if len(index) == 1:
        return one
    others = jax.vmap(lambda i: body(first, i)[1])(index[1:])
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y]), one, others)


def search(settings: SearchSettings, tables: SearchTables, a: ConvexShape, b: ConvexShape, active: Array) -> Any:
    """Search for penetration and return the record: `Witness`, or `Portal` of MPR."""
    if settings.use_mpr:
        return find_portal(settings.types, tables.hulls, settings.iterations, a, b, tables.tolerance, active)
    return witness_search(settings, tables, a, b, active, jnp.zeros_like(a.margin))


def deepest_point(
    settings: SearchSettings,
    tables: SearchTables,
    record: Any,
    turned_a: ConvexShape,
    turned_b: ConvexShape,
    a: ConvexShape,
    b: ConvexShape,
) -> DeepestPoint:
    """Return what a record says of one pair, with its derivatives.

    `turned_a` and `turned_b` are the shapes that were searched; MPR takes surface normals from a and b.
    """
    points = record.points
    turned = touched(tables.hulls, turned_a, points.index[:, 0]), touched(tables.hulls, turned_b, points.index[:, 1])
    if settings.use_mpr:
        hit, depth, pos, normal = mpr_contact(settings.types, *turned, record)
        found = DeepestPoint(hit, -depth, pos, pos, normal)
    else:
        found = _of_witness(*turned, record)
    if not settings.surface:
        return found
    normal = surface_normal(settings.types, a, b, 0.5 * (found.x1 + found.x2), found.normal)
    return found._replace(normal=jnp.where(found.hit, normal, found.normal))


def _rotated(s: ConvexShape, rot: Array, centre: Array) -> ConvexShape:
    """The shape rotated about a point of the world."""
    return s._replace(pos=centre + matvec(rot, s.pos - centre), mat=jnp.sum(rot[:, :, None] * s.mat, axis=1))


def _rotation(axis: Array, cos: Array, sin: Array) -> Array:
    """The rotation (3, 3) about a unit axis by an angle of this cosine and sine."""
    x, y, z = split(sin * axis)
    zero = jnp.zeros_like(x)
    turn = jnp.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape(3, 3)
    return cos * jnp.eye(3, dtype=axis.dtype) + turn + (1 - cos) * axis[:, None] * axis


def _distinct(pos: Array, hit: Array, tolerance: Array) -> Array:
    """Whether each contact (k,) is farther than the tolerance from all earlier ones that were kept."""
    gap = pos[:, None] - pos
    close = jnp.sqrt(jnp.sum(gap * gap, axis=-1)) <= tolerance
    kept = [hit[0]]
    for i in range(1, len(pos)):
        kept.append(hit[i] & kept[0] & ~jnp.any(close[i, :i] & jnp.stack(kept)))
    return jnp.stack(kept)


def _of_witness(a: ConvexShape, b: ConvexShape, record: Witness) -> DeepestPoint:
    """The numbers of a record; if it is solved, with derivatives. `a.corner` and `b.corner` (3, 3) are its vertices."""
    if record.solved is None:
        return DeepestPoint(*record[:5])
    z, known = witness(False, a, b, record.solved), _is_known(record)
    found = WitnessPoints(record.x1, record.x2, record.normal, record.dist)
    twin = WitnessPoints(*[jnp.where(known, x, y) for x, y in zip((z[:3], z[3:6], z[6:9], z[9]), found, strict=True)])
    found = with_derivatives_of(twin, found)
    return DeepestPoint(record.hit, found.dist, found.x1, found.x2, found.normal)


def _is_known(record: Witness) -> Array:
    """Whether a search found witness points."""
    return jnp.isfinite(record.dist) & jnp.any(record.weight != 0)


def solved(settings: SearchSettings, tables: SearchTables, a: ConvexShape, b: ConvexShape, record: Any) -> Any:
    """Complete the record of a search with what its derivatives need; MPR's needs nothing."""
    if settings.use_mpr:
        return record
    a, b = (touched(tables.hulls, s, record.points.index[:, i]) for i, s in enumerate((a, b)))
    start = WitnessPoints(record.x1, record.x2, contact_normal(a, b, record), record.dist)
    start = WitnessPoints(*[jnp.where(_is_known(record), x, 0) for x in start])
    feature1 = surface_feature(a, record.points.a, record.weight, start.x1, start.normal)
    feature2 = surface_feature(b, record.points.b, record.weight, start.x2, -start.normal)
    return record._replace(solved=solved_witness(a, b, feature1, feature2, start))


def contact_normal(a: ConvexShape, b: ConvexShape, found: Witness) -> Array:
    """Return the contact normal, or the polytope face's where the witness points are too close to give one."""
    w = found.points.w
    face_normal = unit(cross(w[1] - w[0], w[2] - w[0]))[0]
    face_normal = jnp.where(inner(face_normal, centre(b) - centre(a)) < 0, -face_normal, face_normal)
    on_face = (found.dist <= 0) & (found.dist > -NORMAL_MIN_DISTANCE)
    return jnp.where(on_face, face_normal, found.normal)


def witness_search(
    settings: SearchSettings, tables: SearchTables, a: ConvexShape, b: ConvexShape, active: Array, cutoff: Array
) -> Witness:
    """Search two shapes, inflated by half of their margins, for penetration, or for distances up to a `cutoff` > 0.

    Spheres and capsules are first searched as points and segments. If these are separated, their nearest points
    determine the result.
    """
    types, iterations, tolerance = settings.types, settings.iterations, tables.tolerance
    discrete = are_polyhedra(a, b)
    radius = [jnp.where(is_type(s.type, ROUND_TYPES), s.size[0] + 0.5 * s.margin, 0) for s in (a, b)]
    any_round = is_type(a.type, ROUND_TYPES) | is_type(b.type, ROUND_TYPES)
    start = split(centre(a) - centre(b))
    farthest = partial(farthest_point, types, tables.hulls)

    def attempt(core_only: Array, needed: Array) -> Any:
        support = pair_support(farthest, _without_radius(a, core_only), _without_radius(b, core_only))
        limit = cutoff + jnp.where(core_only, sum(radius), 0)
        return gjk(support, start, tolerance, discrete, iterations, limit, needed)

    if set(types) & set(ROUND_TYPES):
        attempt, empty = traced_once(attempt, active, active)

        def both(i: Array, state: tuple) -> tuple:
            _, simplex, shallow = state
            needed = active & jnp.where(i == 0, any_round, ~shallow)
            found = attempt(i == 0, needed)
            return simplex, found, shallow | ((i == 0) & needed & (found.dist > tolerance))

        core, simplex, shallow = repeat(2, both, (empty, empty, jnp.array(False)))
    else:
        shallow, simplex = jnp.array(False), attempt(jnp.array(False), active)
        core = simplex
    (core1, core2), (near1, near2) = weighted(core.points, core.weight), weighted(simplex.points, simplex.weight)
    direction = unit(core2 - core1)[0]
    dist = core.dist - sum(radius)
    overlapping = active & ~shallow & (simplex.dist <= tolerance) & (simplex.n > 1)
    numbered = tuple(s.type != GeomType.HFIELD for s in (a, b))

    def penetration() -> EpaResult:
        return epa(pair_support(farthest, a, b), simplex, tolerance, discrete, iterations, numbered, overlapping)

    deepest = when(overlapping, penetration)
    penetrating = overlapping & deepest.valid
    separation = jnp.where(overlapping, 0, simplex.dist)
    dist = jnp.where(
        shallow, jnp.where(dist > cutoff, jnp.inf, dist), jnp.where(penetrating, -deepest.depth, separation)
    )
    x1 = jnp.where(shallow, core1 + radius[0] * direction, jnp.where(penetrating, deepest.x1, near1))
    x2 = jnp.where(shallow, core2 - radius[1] * direction, jnp.where(penetrating, deepest.x2, near2))
    nearest = jax.tree.map(
        lambda x, y: jnp.where(shallow, x, y)[:3], (core.points, core.weight), (simplex.points, simplex.weight)
    )
    points, weight = jax.tree.map(lambda x, y: jnp.where(penetrating, x, y), (deepest.face, deepest.weight), nearest)
    normal = unit(jnp.where(dist < 0, x1 - x2, x2 - x1))[0]
    hit = jnp.where(shallow, dist < 0, penetrating & (deepest.depth > 0))
    return Witness(hit, dist, x1, x2, normal, points, weight)


def _without_radius(s: ConvexShape, core_only: Array) -> ConvexShape:
    """A sphere or capsule without its radius and margin; other shapes unchanged."""
    core_only = core_only & is_type(s.type, ROUND_TYPES)
    size = jnp.where(core_only & (jnp.arange(3) == 0), 0, s.size)
    return s._replace(size=size, margin=jnp.where(core_only, 0, s.margin))
