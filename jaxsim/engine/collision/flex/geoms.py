"""Contacts of geoms with flexes: planes with vertices, other geoms with elements near them."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import EnableBit
from jaxsim.engine.collision.flex import segments as static
from jaxsim.engine.collision.flex.elements import GEOM_COLLIDERS, Elements, GeomCollider, elements_at
from jaxsim.engine.collision.flex.found import Found, found_of
from jaxsim.engine.collision.flex.rounding import along, dot, run_time_one
from jaxsim.engine.collision.shapes import PairContacts, posed_geoms
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.math.arrays import gather, matvec, matvec_t, take
from jaxsim.math.safe import Array
from jaxsim.xla.compaction import compact

NEAR_MIN = 512  # least capacity for near pairs of geoms and elements


def plane_contacts(m: Any, d: Any) -> list[Found]:
    """Compute the contacts of planes with vertices. Source: mj_collidePlaneFlex."""
    pairs = static.plane_vertices(m)
    if not len(pairs.geom):
        return []
    normal = take(d.geom_xmat.reshape(-1, 3, 3)[:, :, 2], pairs.geom)
    vertex, radius = take(d.flexvert_xpos, pairs.vertex), take(m.flex_radius, pairs.flex)
    one = run_time_one(m)
    height = dot(vertex - take(d.geom_xpos, pairs.geom), normal, one)
    dist = height - radius
    pos = along(vertex, normal, -dist * 0.5 - radius, one)
    near = height <= margin_of(m, pairs.geom, pairs.flex) + radius
    contacts = PairContacts(dist[:, None], pos[:, None], normal[:, None], near[:, None])
    local = pairs.vertex - m.flex_vertadr[pairs.flex]
    ids = {"geom": pairs.geom, "flex2": pairs.flex, "vert2": local}
    return [found_of(contacts, pairs.segment, (0 * local, pairs.geom, local), ids)]


def margin_of(m: Any, geom: Any, flex: Any) -> Array:
    """Return the margins (n,) of pairs of geoms and flexes; ids may be static or traced."""
    if m.opt.enableflags & EnableBit.OVERRIDE:
        return jnp.broadcast_to(m.opt.o_margin, np.shape(geom))
    fetch = take if isinstance(geom, np.ndarray) else gather
    return fetch(m.geom_margin, geom) + fetch(m.flex_margin, flex)


def element_contacts(m: Any, d: Any) -> list[Found]:
    """Compute the contacts of geoms with elements."""
    out = []
    for dim in tables.elements(m):
        pairs = static.geom_elements(m, dim)
        kinds = [GEOM_COLLIDERS.get((int(t), dim)) for t in m.geom_type[pairs.geom]]
        for kind in dict.fromkeys(k for k in kinds if k is not None):
            mine = np.array([k == kind for k in kinds])
            out.append(_contacts_of(m, d, dim, kind, static.GeomPairs(*(x[mine] for x in pairs))))
    return out


def _near(m: Any, d: Any, ids: np.ndarray, flex: np.ndarray, pairs: static.GeomPairs) -> Array:
    """Return the mask of pairs (k, n) whose boxes along the world's axes overlap.

    As in MuJoCo, the box of a geom in a tree encloses the geom's own box; otherwise it encloses the bounding sphere.
    """
    box = take(d.flexelem_aabb, ids)
    centre, half = box[:, :3], box[:, 3:]
    margin = take(m.geom_margin, pairs.geom)[:, None] + take(m.flex_margin, flex)
    if m.opt.enableflags & EnableBit.OVERRIDE:
        margin = jnp.broadcast_to(m.opt.o_margin, margin.shape)
    pos, aabb = take(d.geom_xpos, pairs.geom), take(m.geom_aabb, pairs.geom)
    mat = take(d.geom_xmat.reshape(-1, 3, 3), pairs.geom)
    middle, size = pos + matvec(mat, aabb[:, :3]), matvec(jnp.abs(mat), aabb[:, 3:])
    by_tree, radius = pairs.tree[:, flex], take(m.geom_rbound, pairs.geom)[:, None]
    near = pairs.allowed
    for k in range(3):
        around = jnp.where(by_tree, size[:, k, None], radius) + margin + half[:, k]
        near = near & (jnp.abs(jnp.where(by_tree, middle[:, k, None], pos[:, k, None]) - centre[:, k]) <= around)
    return near


def _boxes_touch(m: Any, d: Any, geom: Array, centre: Array, half: Array, margin: Array) -> Array:
    """Return whether the boxes of geoms and the boxes of elements (n, 3) overlap along the axes of either."""
    mat = gather(d.geom_xmat.reshape(-1, 3, 3), geom)
    box = gather(m.geom_aabb, geom)
    gap = centre - gather(d.geom_xpos, geom) - matvec(mat, box[:, :3])
    size, cosine = box[:, 3:], jnp.abs(mat)
    apart = jnp.abs(matvec_t(mat, gap)) > size + matvec_t(cosine, half) + margin[:, None]
    return ~jnp.any(apart | (jnp.abs(gap) > half + matvec(cosine, size) + margin[:, None]), axis=1)


def _contacts_of(m: Any, d: Any, dim: int, kind: GeomCollider, pairs: static.GeomPairs) -> Found:
    """Compute the contacts of the geoms of one collider with all elements of a dimension."""
    ids, vertices = tables.elements(m)[dim]
    flex_of = tables.element_flex(m)[ids]
    n = len(ids)
    near = _near(m, d, ids, flex_of, pairs)
    capacity = min(near.size, max(NEAR_MIN, n, 2 * m.max_contacts))
    index, real, dropped = compact(near.reshape(-1), capacity)
    row, at = index // n, index % n
    geom, flex = gather(jnp.asarray(pairs.geom, jnp.int32), row), gather(jnp.asarray(flex_of, jnp.int32), at)
    e = elements_at(m, d, ids, vertices, flex_of, at)
    margin = margin_of(m, geom, flex)
    half = gather(take(d.flexelem_aabb, ids)[:, 3:], at)
    by_tree = gather(jnp.asarray(pairs.tree).reshape(-1), row * m.nflex + flex)
    real &= ~by_tree | _boxes_touch(m, d, geom, e.centre, half, margin)
    if kind.setup:  # the search takes the real pairs first
        order, real, _ = compact(real, capacity)
        geom, flex, at, row, margin = (gather(x, order) for x in (geom, flex, at, row, margin))
        e = Elements._make((*(gather(x, order) for x in e[:3]), e.one))
    mat = d.geom_xmat.reshape(-1, 3, 3)
    g = posed_geoms(gather, d.geom_xpos, mat, gather(m.geom_size, geom), geom)
    shared = kind.setup(m, pairs.geom, dim) if kind.setup else None
    contacts = kind.function(shared, g, e, margin, jnp.sum(real, dtype=jnp.int32))
    contacts = contacts._replace(valid=contacts.valid & real[:, None])
    element = gather(jnp.asarray(ids - m.flex_elemadr[flex_of], jnp.int32), at)
    segment = gather(jnp.asarray(pairs.segment, jnp.int32).reshape(-1), row * m.nflex + flex)
    named = {"geom": geom, "flex2": flex, "elem2": element}
    found = found_of(contacts, segment, (jnp.full_like(geom, 2), geom, element), named)
    return found._replace(dropped=found.dropped + dropped)
