"""The constraint problem of one world in the form of a kernel: padded to powers of two, rows in planes.

Three groups of rows, each an array or a tuple of arrays of one shape, so that every formula is elementwise:

- *unit* rows touch one dof: dry friction, then the lower and the upper limit, each a plane (n,) over the dofs;
- *dense* scalar rows (general rows, frictionless contacts, edges of pyramids) are one plane (chunks, CHUNK);
- *cones*: row k of every elliptic contact is plane k (chunks, CHUNK).

`pack` runs outside of the kernel, everything else inside. What pads has D = 0 and rows of zeros, M has ones there.
"""

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.layout import Layout
from jaxsim.core.rows import contact_facets
from jaxsim.engine.solver.problem import (
    Cone,
    ConstraintProblem,
    MiddleCurvature,
    elliptic,
    make_cone,
    middle_curvature,
    middle_normal,
    scalar_force,
    scalar_weight,
)
from jaxsim.math.arrays import take_or_zero
from jaxsim.math.safe import Array, divide, sqrt

CHUNK = 16  # rows whose Jacobian is in registers at a time: the least that matrix units take
UNIT_SIGNS = (1, 1, -1)  # dry friction, lower limit, upper limit


class ScalarRows(NamedTuple):
    """Scalar rows of any shape."""

    D: Array
    aref: Array
    lo: Array
    hi: Array


class ConeRows(NamedTuple):
    """Elliptic contacts: for each of the `dim` rows D, reference and scale (mu, then friction), of one shape."""

    D: Any
    aref: Any
    scale: Any


class ProblemPlanes(NamedTuple):
    """A problem; `dense` and `cones` with their Jacobians are None where the model has no such rows.

    M (n, n), smooth (n,), unit of (1 or 3, n), dense of (1, chunks, CHUNK), J_dense (1, k, CHUNK, n), cones of (dim,
    chunks, CHUNK), J_cones (dim, k, CHUNK, n): `n` and `chunks` are powers of two, `k` is what the rows need.
    """

    M: Array
    smooth: Array
    unit: ScalarRows
    dense: ScalarRows | None
    J_dense: Array | None
    cones: ConeRows | None
    J_cones: Array | None


class RowPlanes(NamedTuple):
    """A number for every row, one array a plane: of the unit rows, then the dense rows if there are any, and cones."""

    scalars: tuple[Array, ...]
    cones: tuple[Array, ...]


class RowConstants(NamedTuple):
    """What is known of the rows: one `ScalarRows` for each plane of scalar rows; `ConeRows` of tuples, or None."""

    scalars: tuple[ScalarRows, ...]
    cones: ConeRows | None


def padded_size(n: int) -> int:
    """The power of two, CHUNK at least, that holds n."""
    return max(CHUNK, 1 << (n - 1).bit_length())


def pack(layout: Layout, p: ConstraintProblem) -> ProblemPlanes:
    """The problem in planes."""
    extra = padded_size(layout.nv) - layout.nv
    ones = np.diag(np.repeat([0, 1], [layout.nv, extra])).astype(p.M.matrix.dtype)
    dense, j_dense = _pack_dense(layout, p)
    cones, j_cones = _pack_cones(layout, p) if elliptic(layout) else (None, None)
    return ProblemPlanes(
        M=jnp.pad(p.M.matrix, (0, extra)) + ones,
        smooth=jnp.pad(p.qfrc_smooth, (0, extra)),
        unit=_pack_unit(layout, p),
        dense=dense,
        J_dense=j_dense,
        cones=cones,
        J_cones=j_cones,
    )


def _scalars(p: ConstraintProblem) -> ScalarRows:
    return ScalarRows(p.D, p.aref, p.lo, p.hi)


def _pack_unit(layout: Layout, p: ConstraintProblem) -> ScalarRows:
    _, friction, limit, contact, _ = layout.offsets
    slots = np.full((3, padded_size(layout.nv)), -1)
    slots[0, : layout.nv] = np.arange(friction, limit)
    slots[1:, layout.limit_dof] = np.arange(limit, contact).reshape(2, -1)
    used = slots[: 3 if layout.nlimit else 1]
    return ScalarRows(*(take_or_zero(x, used) for x in _scalars(p)))


def _pack_dense(layout: Layout, p: ConstraintProblem) -> tuple[ScalarRows | None, Array | None]:
    parts = [(0, layout.ngeneral, p.J.general)]
    if layout.ncontact and not elliptic(layout):
        rows = contact_facets(layout, p.J.friction, p.J.contact)
        parts.append((*layout.offsets[3:], rows))
    parts = [part for part in parts if part[1] > part[0]]
    if not parts:
        return None, None
    rows = ScalarRows(*(_chunks(jnp.concatenate([x[a:b] for a, b, _ in parts]))[None] for x in _scalars(p)))
    return rows, _jacobian(layout, jnp.concatenate([jac for *_, jac in parts]))[None]


def _pack_cones(layout: Layout, p: ConstraintProblem) -> tuple[ConeRows, Array]:
    def planes(x: Array) -> Array:
        return jnp.stack([_chunks(x[:, k]) for k in range(layout.condim)])

    d, aref = (x[layout.offsets[3] :].reshape(layout.ncontact, layout.condim) for x in (p.D, p.aref))
    scale = jnp.concatenate([p.mu[:, None], p.J.friction[:, : layout.condim - 1]], axis=1)
    jac = jnp.stack([_jacobian(layout, p.J.contact[:, k]) for k in range(layout.condim)])
    return ConeRows(planes(d), planes(aref), planes(scale)), jac


def _chunks(x: Array) -> Array:
    """(rows,) as (chunks, CHUNK), a power of two of them."""
    count = 1 << (-(-len(x) // CHUNK) - 1).bit_length()
    return jnp.pad(x, (0, count * CHUNK - len(x))).reshape(count, CHUNK)


def _jacobian(layout: Layout, jac: Array) -> Array:
    rows, nv = jac.shape
    jac = jnp.pad(jac, ((0, -rows % CHUNK), (0, padded_size(nv) - nv)))
    return jac.reshape(-1, CHUNK, jac.shape[1])


def residual(table: RowConstants, z: RowPlanes) -> RowPlanes:
    """J a - aref from J a."""
    scalars = tuple(x - p.aref for p, x in zip(table.scalars, z.scalars, strict=True))
    cones = table.cones and tuple(x - ref for x, ref in zip(z.cones, table.cones.aref, strict=True))
    return RowPlanes(scalars, cones or ())


def force(table: RowConstants, r: RowPlanes) -> RowPlanes:
    """Minus the derivative of the cost, as `problem.force`."""
    scalars = tuple(scalar_force(p, x) for p, x in zip(table.scalars, r.scalars, strict=True))
    return RowPlanes(scalars, _cone_force(table.cones, r.cones) if table.cones else ())


def weights(table: RowConstants, r: RowPlanes) -> tuple[Array, ...]:
    """Second derivative of the cost of each plane of scalar rows."""
    return tuple(scalar_weight(p, x) for p, x in zip(table.scalars, r.scalars, strict=True))


def along(table: RowConstants, r: RowPlanes, z: RowPlanes) -> tuple[Array, Array, Array]:
    """Force times z, the sum of the sizes of its terms, and z' s'' z."""
    push = [f * x for f, x in zip(jax.tree.leaves(force(table, r)), jax.tree.leaves(z), strict=True)]
    curvature_along = [w * x * x for w, x in zip(weights(table, r), z.scalars, strict=True)]
    if table.cones:
        curvature_along.append(_cone_curvature_along(table.cones, r.cones, z.cones))
    return tuple(total([jnp.sum(x) for x in terms]) for terms in (push, map(jnp.abs, push), curvature_along))


def _cone_curvature_along(p: ConeRows, r: tuple[Array, ...], z: tuple[Array, ...]) -> Array:
    c = _cone(p, r)
    middle = middle_curvature(c)
    y = [x * scale for x, scale in zip(z, c.scale, strict=True)]
    along = total([u * x for u, x in zip(c.u[1:], y[1:], strict=True)])
    square = total([x * x for x in y[1:]])
    middle = y[0] * (y[0] - 2 * middle.ratio * along) + middle.outer * along * along + middle.rest * square
    return _by_zone(c, total([d * x * x for d, x in zip(p.D, z, strict=True)]), c.weight * middle)


def _cone(p: ConeRows, r: tuple[Array, ...]) -> Cone:
    u = tuple(jnp.where(d > 0, x * scale, 0) for d, x, scale in zip(p.D, r, p.scale, strict=True))
    t = sqrt(total([x * x for x in u[1:]]))
    return make_cone(u, p.scale, u[0], t, r[0], p.D[0], p.scale[0])


def _cone_force(p: ConeRows, r: tuple[Array, ...]) -> tuple[Array, ...]:
    c = _cone(p, r)
    normal = middle_normal(c)
    pull = -divide(normal, c.t)
    middle = [normal] + [pull * u * scale for u, scale in zip(c.u[1:], c.scale[1:], strict=True)]
    quadratic = [-d * x for d, x in zip(p.D, r, strict=True)]
    return tuple(_by_zone(c, q, m) for q, m in zip(quadratic, middle, strict=True))


def blocks(table: RowConstants, r: RowPlanes) -> list[list[Array]]:
    """Second derivative of the cost of elliptic contacts: dim lines of dim planes."""
    p, dim = table.cones, len(r.cones)
    c = _cone(p, r.cones)
    middle = middle_curvature(c)

    def entry(i: int, j: int) -> Array:
        value = _curvature_entry(c, middle, i, j) * c.weight * c.scale[i] * c.scale[j]
        return _by_zone(c, p.D[i] if i == j else jnp.zeros_like(value), value)

    upper = {(i, j): entry(i, j) for i in range(dim) for j in range(i, dim)}
    return [[upper[min(i, j), max(i, j)] for j in range(dim)] for i in range(dim)]


def _curvature_entry(c: Cone, middle: MiddleCurvature, i: int, j: int) -> Array:
    if j == 0:
        return jnp.ones_like(c.n)
    if i == 0:
        return -middle.ratio * c.u[j]
    value = middle.outer * c.u[i] * c.u[j]
    return value + middle.rest if i == j else value


def _by_zone(c: Cone, bottom: Array, middle: Array) -> Array:
    return jnp.where(c.bottom, bottom, jnp.where(c.middle, middle, 0))


def total(parts: Any) -> Array:
    """The sum of a few arrays."""
    return functools.reduce(operator.add, parts)
