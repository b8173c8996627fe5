"""Narrow phase of elements of flexes: elements as shapes, and the collider of each pair.

An element is a capsule, a triangle or a tetrahedron with the radius of its flex. Source: mj_collideGeomElem,
mj_collideElems, mj_collideElemVert.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import MAXCONPAIR, DisableBit, GeomType
from jaxsim.engine.collision.convex.convex import SearchSettings, SearchTables, convex_context, convex_pairs, shapes_of
from jaxsim.engine.collision.convex.hull import hull_table
from jaxsim.engine.collision.convex.prism import hfield_setup, hfield_shapes
from jaxsim.engine.collision.convex.support import ConvexShape
from jaxsim.engine.collision.flex.rounding import run_time_one
from jaxsim.engine.collision.flex.triangle import box_triangles, capsule_triangles, sphere_triangles
from jaxsim.engine.collision.primitive.capsule import capsule_box, capsule_capsule
from jaxsim.engine.collision.primitive.sphere import sphere_capsule
from jaxsim.engine.collision.shapes import Geoms, PairContacts, min_length, unit
from jaxsim.math.arrays import gather, matvec_t, take
from jaxsim.math.safe import Array

SHAPE_VERTICES = 6  # rows of `ConvexShape.vert`


class Elements(NamedTuple):
    """One element of each of n pairs: vertices (n, dim + 1, 3), centre of its box (n, 3), radius (n,).

    `one` is that of `rounding`, or None where no collider of triangles is used.
    """

    vertex: Array
    centre: Array
    radius: Array
    one: Array | None = None


# (shared data, geoms, elements, margins, number of real pairs) -> contacts
Collider = Callable[[Any, Geoms, Elements, Array, Array], PairContacts]


class GeomCollider(NamedTuple):
    """A collider of geoms and elements, the most contacts of a pair, and the setup of data shared by its pairs."""

    function: Collider
    ncon: int
    setup: Callable[[Any, np.ndarray, int], Any] | None = None


def edge_capsules(e: Elements) -> Geoms:
    """Return the capsules around edges. Source: mj_makeCapsule."""
    first, second = e.vertex[:, 0], e.vertex[:, 1]
    axis, length = unit(first - second, min_length(e.radius.dtype))
    axis = jnp.where((length > 0)[:, None], axis, jnp.array([0.0, 0, 1], axis.dtype))
    size = jnp.stack([e.radius, 0.5 * length, jnp.zeros_like(length)], axis=1)
    return Geoms(0.5 * (first + second), None, size, None, axis)


def element_shapes(e: Elements, margin: Array) -> ConvexShape:
    """Return elements as shapes of the convex search, inflated by their radius and half of the margin."""
    n = len(e.radius)
    local = e.vertex - e.centre[:, None]
    pad = jnp.broadcast_to(local[:, :1], (n, SHAPE_VERTICES - local.shape[1], 3))
    zero = jnp.zeros(n, jnp.int32)
    eye = jnp.broadcast_to(jnp.eye(3, dtype=local.dtype), (n, 3, 3))
    return ConvexShape(
        *(jnp.full(n, int(GeomType.FLEX), jnp.int32), e.centre, eye, jnp.zeros_like(e.centre)),
        *(jnp.maximum(margin, 0) + 2 * e.radius, zero, zero, jnp.zeros((n, 2), jnp.int32)),
        vert=jnp.concatenate([local, pad], axis=1),
    )


def _sphere_edge(_: Any, g: Geoms, e: Elements, margin: Array, count: Array) -> PairContacts:
    return sphere_capsule(g, edge_capsules(e), margin)


def _capsule_edge(_: Any, g: Geoms, e: Elements, margin: Array, count: Array) -> PairContacts:
    return capsule_capsule(g, edge_capsules(e), margin)


def _box_edge(_: Any, g: Geoms, e: Elements, margin: Array, count: Array) -> PairContacts:
    found = capsule_box(edge_capsules(e), g, margin)
    return found._replace(normal=-found.normal)


def _with_triangles(find: Callable[..., PairContacts]) -> Callable[..., PairContacts]:
    """Return a collider of triangles, given its function of their vertices and radii."""
    return lambda _, g, e, margin, count: find(g, e.vertex, e.radius, margin, e.one)


def _convex_setup(m: Any, geom: np.ndarray, dim: int) -> Any:
    context = convex_context(m, geom, geom)
    settings = context.settings
    fixed = dim == 2 and not settings.use_mpr
    settings = settings._replace(
        types=(*settings.types, int(GeomType.FLEX)), multiccd=False, faceted=False, surface=fixed
    )
    return context._replace(settings=settings, tables=context.tables._replace(facets=None))


def _convex_element(c: Any, g: Geoms, e: Elements, margin: Array, count: Array) -> PairContacts:
    return convex_pairs(c.settings, c.tables, shapes_of(c, g, margin), element_shapes(e, margin), margin, count)


def _hfield_setup(m: Any, geom: np.ndarray, dim: int) -> Any:
    context = hfield_setup(m, geom, geom)
    settings = context.convex.settings._replace(
        types=(int(GeomType.HFIELD), int(GeomType.FLEX)), multiccd=False, faceted=False, surface=False
    )
    tables = context.convex.tables._replace(facets=None)
    return context._replace(convex=context.convex._replace(settings=settings, tables=tables))


def _hfield_element(c: Any, g: Geoms, e: Elements, margin: Array, count: Array) -> PairContacts:
    vertex = matvec_t(g.mat[:, None], e.vertex - g.pos[:, None])
    inside = Elements(vertex, matvec_t(g.mat, e.centre - g.pos), e.radius)
    found = hfield_shapes(c, g, element_shapes(inside, margin), margin, count)
    size = gather(take(c.size, c.fields.field), gather(jnp.asarray(c.fields.of_geom), g.id))
    low, high = jnp.min(vertex, axis=1), jnp.max(vertex, axis=1)
    below = jnp.stack([-size[:, 0], -size[:, 1], -size[:, 3]], axis=1)
    near = jnp.all((low - margin[:, None] <= size[:, :3]) & (high + margin[:, None] >= below), axis=1)
    return found._replace(valid=found.valid & near[:, None])


CONVEX = GeomCollider(_convex_element, 1, _convex_setup)
_CONVEX_COLLIDERS = {
    (kind, dim): CONVEX
    for dim in (1, 2, 3)
    for kind in (
        GeomType.SPHERE,
        GeomType.CAPSULE,
        GeomType.ELLIPSOID,
        GeomType.CYLINDER,
        GeomType.BOX,
        GeomType.MESH,
    )
    if dim == 3 or kind in (GeomType.ELLIPSOID, GeomType.CYLINDER, GeomType.MESH)
}
GEOM_COLLIDERS: dict[tuple[int, int], GeomCollider] = {
    (GeomType.SPHERE, 1): GeomCollider(_sphere_edge, 1),
    (GeomType.CAPSULE, 1): GeomCollider(_capsule_edge, 2),
    (GeomType.BOX, 1): GeomCollider(_box_edge, 2),
    (GeomType.SPHERE, 2): GeomCollider(_with_triangles(sphere_triangles), 1),
    (GeomType.BOX, 2): GeomCollider(_with_triangles(box_triangles), 11),
    (GeomType.CAPSULE, 2): GeomCollider(_with_triangles(capsule_triangles), 5),
    **{(GeomType.HFIELD, dim): GeomCollider(_hfield_element, MAXCONPAIR, _hfield_setup) for dim in (1, 2, 3)},
    **_CONVEX_COLLIDERS,
}


def element_search(m: Any) -> tuple[SearchSettings, SearchTables]:
    """Return data shared by searches between elements."""
    use_mpr = bool(m.opt.disableflags & DisableBit.NATIVECCD)
    settings = SearchSettings((int(GeomType.FLEX),), m.opt.ccd_iterations, False, False, use_mpr, False, 0)
    return settings, SearchTables(hull_table(m, np.zeros(0, int)).hulls, None, m.opt.ccd_tolerance)


def elements_at(m: Any, d: Any, ids: np.ndarray, vertices: np.ndarray, flex: np.ndarray, index: Array) -> Elements:
    """Return the elements with indices (n,) into `ids` (k,), given `vertices` (k, dim + 1) and flexes (k,)."""
    at = gather(d.flexvert_xpos, gather(jnp.asarray(vertices, jnp.int32), index))
    centre, radius = gather(take(d.flexelem_aabb, ids)[:, :3], index), gather(take(m.flex_radius, flex), index)
    return Elements(at, centre, radius, run_time_one(m))
