"""Bodies of contacts and their weights: a side is a geom's body, or the bodies that carry an element of a flex.

The vertices of an element carry a contact with weights inverse to their distances from it. A vertex of an interpolated
flex is carried by the nodes of its cell. Sources: mj_contactJacobian, mj_elemBodyWeight, mj_vertBodyWeight.
"""

import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.core.layout import ELEMENT_VERTICES, side_widths
from jaxsim.core.structure import geom_bodies
from jaxsim.core.types import MINVAL
from jaxsim.engine.structure import flex_tables as tables
from jaxsim.engine.structure.flex_interpolation import polynomials, steps
from jaxsim.math import safe
from jaxsim.math.arrays import gather, inner
from jaxsim.math.safe import Array

LEAST_WEIGHT = 1e-5  # least weight of a node


class ContactSides(NamedTuple):
    """Bodies of contacts (ncontact, s), the first side's before the second's, and their signed weights (ncontact, s).

    `inverse_inertia` (ncontact,) is the sum of both sides' means. Unused entries have weight zero.
    """

    body: Array
    weight: Array
    inverse_inertia: Array


def contact_sides(m: Any, d: Any) -> ContactSides:
    """Return the sides of all contacts of a model with flexes."""
    parts = [_side(m, d, k, width) for k, width in enumerate(side_widths(m))]
    used = (d.contact.dim > 0)[:, None]
    body, weight = (jnp.concatenate([p[i] for p in parts], axis=1) for i in (0, 1))
    return ContactSides(jnp.where(used, body, 0), jnp.where(used, weight, 0), sum(p[2] for p in parts))


def _side(m: Any, d: Any, side: int, width: int) -> tuple[Array, Array, Array]:
    """Return the bodies and signed weights (ncontact, width) of one side, and mean inverse inertias (ncontact,)."""
    c, sign = d.contact, 2 * side - 1
    geom, flex, elem, vert = (x[:, side] for x in (c.geom, c.flex, c.elem, c.vert))
    of_geom = gather(jnp.asarray(geom_bodies(m)), jnp.maximum(geom, 0))
    first = np.arange(width) == 0
    body, weight = jnp.where(first, of_geom[:, None], 0), jnp.where((geom >= 0)[:, None] & first, 1, 0)
    weight = weight.astype(c.dist.dtype)
    of_side = body, sign * weight, gather(m.body_invweight0[:, 0], of_geom)
    if width == 1:
        return of_side
    is_flex = flex >= 0
    flex = jnp.maximum(flex, 0)
    at = jnp.maximum(elem, 0) + gather(jnp.asarray(m.flex_elemadr), flex)
    vertex = gather(jnp.asarray(tables.element_vertices(m)), at)
    start = gather(jnp.asarray(m.flex_vertadr), flex)
    other = start + c.vert[:, 1 - side]
    counts = (vertex >= 0) & ~((vertex == other[:, None]) & (c.vert[:, 1 - side, None] >= 0))
    vertex = jnp.maximum(vertex, 0)
    away = safe.norm(c.pos[:, None] - gather(d.flexvert_xpos, vertex))
    near = jnp.where(counts, 1 / jnp.maximum(away, MINVAL), 0)
    share = near / jnp.maximum(jnp.sum(near, axis=1, keepdims=True), MINVAL)
    single = (vert >= 0)[:, None]
    only = np.arange(ELEMENT_VERTICES) == 0
    vertex = jnp.where(single, jnp.where(only, (start + jnp.maximum(vert, 0))[:, None], 0), vertex)
    share = jnp.where(single, jnp.where(only, 1, 0).astype(share.dtype), share)
    carriers = _carriers(m, flex, vertex, share, width, sign)
    body, weight, inverse = (
        jnp.where(is_flex.reshape(-1, *(1,) * (x.ndim - 1)), x, y) for x, y in zip(carriers, of_side, strict=True)
    )
    return body, weight, inverse


def _carriers(m: Any, flex: Array, vertex: Array, share: Array, width: int, sign: int) -> tuple[Array, Array, Array]:
    """Return bodies that carry points of flexes, their signed weights (n, width), and mean inverse inertias (n,)."""
    n = len(flex)
    empty = jnp.zeros((n, max(width - ELEMENT_VERTICES, 0)), share.dtype)

    def padded(x: Array) -> Array:
        return jnp.concatenate([x[:, :width], empty.astype(x.dtype)], axis=1)

    body = padded(jnp.maximum(gather(jnp.asarray(m.flex_vertbodyid), vertex), 0))
    weight = padded(share)
    inverse = m.body_invweight0[:, 0]
    out = [body, sign * weight, inner(gather(inverse, body), weight)]
    order = abs(m.flex_interp)
    for k in np.unique(order[order > 0]).tolist():
        mine = gather(jnp.asarray(order == k), flex)[:, None]
        local = jnp.sum(gather(m.flex_vert0, vertex) * share[..., None], axis=1)
        node, basis = _nodes(m, flex, local, k)
        # of a first side MuJoCo takes the sign to the point, which then lies before the first node, not to the weights
        carrier, weight = (node, basis) if sign > 0 else _nodes(m, flex, -local, k)
        fill = ((0, 0), (0, width - node.shape[1]))
        body, carrier = (gather(jnp.asarray(m.flex_nodebodyid), x) for x in (node, carrier))
        new = jnp.pad(carrier, fill), jnp.pad(weight, fill), inner(gather(inverse, body), basis)
        out = [jnp.where(mine if x.ndim > 1 else mine[:, 0], x, y) for x, y in zip(new, out, strict=True)]
    return out[0], out[1], out[2]


def _nodes(m: Any, flex: Array, local: Array, order: int) -> tuple[Array, Array]:
    """Return the nodes of the model (n, k) of the cell around points, and their weights.

    The points (n, 3) are in the unit box.
    """
    cells = gather(jnp.asarray(m.flex_cellnum), flex)
    scaled = local * cells.astype(local.dtype)
    cell = jnp.clip(jnp.floor(scaled).astype(jnp.int32), 0, cells - 1)
    values = [polynomials(s, order) for s in jnp.clip(scaled - cell, 0, 1).T]
    weight = jnp.stack([x * y * z for x, y, z in itertools.product(*values)], axis=1)
    size = cells * order + 1
    index = cell[:, None] * order + steps(order).astype(np.int32)
    node = (index[..., 0] * size[:, None, 1] + index[..., 1]) * size[:, None, 2] + index[..., 2]
    node = node + gather(jnp.asarray(m.flex_nodeadr), flex)[:, None]
    return node, jnp.where(weight < LEAST_WEIGHT, 0, weight)
