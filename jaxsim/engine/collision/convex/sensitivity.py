"""Implicit derivatives of witness points: how the deepest or nearest points of two convex shapes move with the shapes.

The search ends at points x1, x2 on the shapes, a unit normal n from the first to the second, and a signed distance: x2
- x1 = dist n. On either shape the point is on a feature: a vertex, an edge, a face, or one of these of a core to which
something strictly convex is added (the ball of a sphere or capsule, an ellipsoid, the disc of a cylinder). In the
shape's frame let T be the projector on the feature's tangents, v a point of the feature, and s(n) the support point of
the strictly convex part. Then

    (1 - T) (x - s(n) - v) + T n = 0:

across its tangents the point is on the feature, and along them the feature is perpendicular to the normal. The second
point follows from the first, the normal and the distance, so these are six equations for six unknowns: the first point,
the normal's two turns, and the distance. They are regular also where the shapes just touch. The implicit function
theorem gives the derivatives. With `ray`, the points differ not along the normal but along the line between the
centres.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.support import ROUND_TYPES, ConvexShape, centre, is_type
from jaxsim.engine.collision.shapes import make_frame
from jaxsim.math import safe
from jaxsim.math.arrays import inner, matmul, matvec, matvec_t, row_at
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.xla.loops import repeat

TANGENT_MAX_SINE = 1e-2  # between normal and tangent, for the feature to be an edge or face
END_TOLERANCE = 1e-9  # relative distance from the end of a side or the rim of a cap, below which it is the end
NUMBERS = ("pos", "mat", "size", "vert", "corner", "margin")  # fields of a shape that have derivatives
NEWTON_STEPS = 4  # from the result of the search to the solution of the equations
NEWTON_MAX_CHANGE = 0.1  # Newton's solution is rejected if an unknown changed by more


class WitnessPoints(NamedTuple):
    """Witness points x1, x2 (3,), unit normal from the first shape to the second (3,), signed distance."""

    x1: Array
    x2: Array
    normal: Array
    dist: Array


class SurfaceFeature(NamedTuple):
    """The feature of a shape at its witness point, as choices that have no derivative.

    `index` (3,) are those of the shape's vertices, `sign` (3, 3) those of a box; `use` (2,) is whether the second and
    third vertex span the feature with the first; `at_side` and `cap` whether the point is on the side or on a cap of a
    capsule or cylinder; `end` is the sign of the cap, rim or end.
    """

    index: Array
    sign: Array
    use: Array
    at_side: Array
    cap: Array
    end: Array


class SolvedWitness(NamedTuple):
    """Where the equations are solved, which is all that derivatives need of a search.

    `z` (10,): x1, x2, normal and distance. The features of both shapes there. `inverse` (6, 6): how the unknowns change
    with the residual of the equations.
    """

    z: Array
    feature1: SurfaceFeature
    feature2: SurfaceFeature
    inverse: Array


def surface_feature(s: ConvexShape, points: Array, weight: Array, x: Array, normal: Array) -> SurfaceFeature:
    """Find the feature at x (3,), the mean of support points (3, 3) with weights (3,), with the outward normal (3,).

    `s.corner` (3, 3) are the vertices of the support points, where the shape has some.
    """
    index = _heaviest_first(weight)
    local = matvec_t(s.mat, points - s.pos)[index]
    n, p = matvec_t(s.mat, normal), matvec_t(s.mat, x - s.pos)
    corner = _corners(s, index, jnp.sign(local))  # the points hold margins, by which those of one vertex differ
    edge = corner[1:] - corner[:1]
    length = safe.norm(edge)
    scale = jnp.maximum(jnp.max(jnp.abs(corner)), 1e-12)
    use = (length > 1e-6 * scale) & (jnp.abs(inner(edge, n)) < TANGENT_MAX_SINE * length)
    spans = safe.norm(cross(edge[0], edge[1])) > 1e-6 * length[0] * length[1]
    use = jnp.stack([use[0], use[1] & (spans | ~use[0])])
    half, radius = s.size[1], s.size[0]
    core = jnp.where(s.type == GeomType.CAPSULE, p[2] - radius * n[2], p[2])
    at_side = (jnp.abs(core) < half * (1 - END_TOLERANCE)) & (jnp.abs(n[2]) < TANGENT_MAX_SINE)
    radial = safe.norm(n[:2])
    cap = (radial < TANGENT_MAX_SINE) & (safe.norm(p[:2]) < radius * (1 - END_TOLERANCE)) & ~at_side
    return SurfaceFeature(
        index, jnp.sign(local), use, at_side, cap, jnp.where(at_side, 0.0, jnp.sign(core)).astype(p.dtype)
    )


def _heaviest_first(weight: Array) -> Array:
    """The order (3,) of falling weights, by comparisons: a search does not sort."""
    i = np.arange(3, dtype=np.int32)
    before = (weight[:, None] > weight) | ((weight[:, None] == weight) & (i[:, None] < i))
    rank = jnp.sum(before, axis=0, dtype=jnp.int32)
    index = jnp.sum(jnp.where(rank == i[:, None], i, 0), axis=1, dtype=jnp.int32)
    return jnp.minimum(index, 2)  # of weights that are no numbers


def _corners(s: ConvexShape, index: Array, sign: Array) -> Array:
    """Vertices (3, 3) of a mesh or prism by their index (3,), of a box by their signs."""
    return jnp.where(s.type == GeomType.BOX, sign * s.size, s.corner[index])


def round_part_support(s: ConvexShape, cap: Array, n: Array) -> Array:
    """Compute the support point, in a shape's frame, of its strictly convex part for the unit normal n (3,).

    `cap`: the point is on a cap of a cylinder, where only the margin is strictly convex.
    """
    geom_type = s.type
    scaled = s.size * n
    oval = s.size * safe.divide(scaled, safe.norm(scaled))
    disc = s.size[0] * safe.normalize(n * np.array([1.0, 1, 0]).astype(n.dtype))[0]
    point = jnp.where(
        is_type(geom_type, ROUND_TYPES), s.size[0] * n, jnp.where(geom_type == GeomType.ELLIPSOID, oval, 0)
    )
    point = jnp.where(geom_type == GeomType.CYLINDER, jnp.where(cap, 0, disc), point) + 0.5 * s.margin * n
    return point


def _feature_equations(s: ConvexShape, f: SurfaceFeature, x: Array, normal: Array) -> Array:
    """The three equations of one shape (3,) at a point x with the outward normal."""
    geom_type, eye = s.type, jnp.eye(3, dtype=x.dtype)
    n, p = matvec_t(s.mat, normal), matvec_t(s.mat, x - s.pos)
    corner, use = _corners(s, f.index, f.sign), f.use.astype(x.dtype)
    first = safe.normalize(corner[1] - corner[0])[0] * use[0]
    second = corner[2] - corner[0]
    second = safe.normalize(second - first * inner(first, second))[0] * use[1]
    in_plane = first[:, None] * first + second[:, None] * second
    z = eye[2]
    axial = jnp.where(f.at_side, 1, 0) * z[:, None] * z + jnp.where(f.cap & (geom_type == GeomType.CYLINDER), 1, 0) * (
        eye - z[:, None] * z
    )
    axisymmetric = is_type(geom_type, (GeomType.CAPSULE, GeomType.CYLINDER))
    curved = is_type(geom_type, (*ROUND_TYPES, GeomType.ELLIPSOID, GeomType.CYLINDER))
    tangent = jnp.where(axisymmetric, axial, jnp.where(curved, 0, in_plane))
    base = jnp.where(axisymmetric, z * f.end * s.size[1], jnp.where(curved, 0, corner[0]))
    round_point = round_part_support(s, f.cap, n)
    off = p - round_point - base
    return off - matvec(tangent, off) + matvec(tangent, n)


def _moved(a: ConvexShape, b: ConvexShape, z: Array, y: Array, ray: bool) -> Array:
    """What z (10,) becomes by the unknowns y (6,): how far x1 moves, how far the normal turns, what the distance gains.

    x1, x2, normal and distance, in z and in the result; x2 follows from the others.
    """
    x1, dist = z[:3] + y[:3], z[9] + y[5]
    first, second = make_frame(z[None, 6:9], None).reshape(3, 3)[1:]
    n = safe.normalize(z[6:9] + y[3] * first + y[4] * second)[0]
    along = safe.normalize(centre(b) - centre(a))[0] if ray else n
    return jnp.concatenate([x1, x1 + dist * along, n, dist[None]])


def _residual(
    a: ConvexShape, b: ConvexShape, feature1: SurfaceFeature, feature2: SurfaceFeature, z: Array, y: Array, ray: bool
) -> Array:
    """The six equations at z moved by y (6,)."""
    z = _moved(a, b, z, y, ray)
    n = z[6:9]
    return jnp.concatenate([_feature_equations(a, feature1, z[:3], n), _feature_equations(b, feature2, z[3:6], -n)])


def _pseudo_inverse(jacobian: Array) -> Array:
    """The inverse (n, n) in the least-squares sense, of least norm; finite for singular systems, as of parallel faces.

    By elimination (Gauss and Jordan) of the damped normal equations, which are positive and need no pivots.
    """
    n, damping = len(jacobian), float(jnp.finfo(jacobian.dtype).eps) ** 0.75
    normal = jnp.sum(jacobian[:, :, None] * jacobian[:, None], axis=0)
    scale = jnp.trace(normal)  # at least the largest eigenvalue, of which rounding is a share
    rows = jnp.concatenate([normal + damping * scale * np.eye(n, dtype=normal.dtype), jacobian.T], axis=1)

    def eliminate(i: Array, rows: Array) -> Array:
        own = row_at(rows, i) / jnp.maximum(row_at(row_at(rows, i), i), tiny)
        return jnp.where(np.arange(n)[:, None] == i, own, rows - row_at(rows.T, i)[:, None] * own)

    tiny = float(jnp.finfo(jacobian.dtype).tiny)  # of shapes that are not used
    return repeat(n, eliminate, rows)[:, n:]


def solved_witness(
    a: ConvexShape,
    b: ConvexShape,
    feature1: SurfaceFeature,
    feature2: SurfaceFeature,
    witness: WitnessPoints,
    ray: bool = False,
) -> SolvedWitness:
    """Solve the equations by Newton's method, from the result of the search; not differentiable."""
    start = jnp.concatenate([witness.x1, witness.x2, witness.normal, witness.dist[None]])
    still = jnp.zeros(6, start.dtype)

    def at(z: Array) -> tuple[Array, Array]:
        equations = partial(_residual, a, b, feature1, feature2, z, ray=ray)
        return _pseudo_inverse(jax.jacfwd(equations)(still)), equations(still)

    def step(_: Array, z: Array) -> Array:
        inverse, residual = at(z)
        return _moved(a, b, z, -matvec(inverse, residual), ray)

    z = repeat(NEWTON_STEPS, step, start)
    ok = jnp.all(jnp.isfinite(z)) & (jnp.max(jnp.abs(z - start)) < NEWTON_MAX_CHANGE)
    z = jnp.where(ok, z, start)
    return SolvedWitness(z, feature1, feature2, at(z)[0])


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def witness(ray: bool, a: ConvexShape, b: ConvexShape, solved: SolvedWitness) -> Array:
    """Return the solution z (10,), differentiable by the shapes; its rule is made of differentiable functions."""
    return solved.z


@witness.defjvp
def _witness_jvp(ray: bool, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    a, b, solved = primals
    z, still = witness(ray, a, b, solved), jnp.zeros(6, solved.z.dtype)
    inverse = _inverse(ray, a, b, solved, z)
    shapes, numbers, numbers_dot = numbers_of(a, b, tangents[:2])
    equations = partial(_residual, feature1=solved.feature1, feature2=solved.feature2, z=z, y=still, ray=ray)
    _, residual_dot = jax.jvp(lambda x: equations(*shapes(x)), (numbers,), (numbers_dot,))
    y_dot = -matvec(inverse, residual_dot)
    return z, jax.jvp(lambda x, y: _moved(*shapes(x), z=z, y=y, ray=ray), (numbers, still), (numbers_dot, y_dot))[1]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _inverse(ray: bool, a: ConvexShape, b: ConvexShape, solved: SolvedWitness, z: Array) -> Array:
    """The inverse (6, 6) of the equations' Jacobian at z, differentiable by the shapes and by z."""
    return solved.inverse


@_inverse.defjvp
def _inverse_jvp(ray: bool, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    a, b, solved, z = primals
    inverse, still = _inverse(ray, a, b, solved, z), jnp.zeros(6, z.dtype)
    shapes, numbers, numbers_dot = numbers_of(a, b, tangents[:2])

    def jacobian(x: tuple, z: Array) -> Array:
        one, two = shapes(x)
        equations = partial(_residual, one, two, solved.feature1, solved.feature2, z, ray=ray)
        return jax.jacfwd(equations)(still)

    _, jacobian_dot = jax.jvp(jacobian, (numbers, z), (numbers_dot, tangents[3]))
    return inverse, -matmul(inverse, matmul(jacobian_dot, inverse))


def numbers_of(a: ConvexShape, b: ConvexShape, tangents: tuple) -> tuple[Callable, tuple, tuple]:
    """Return a function from the numbers of two shapes to the shapes, these numbers, and their tangents."""

    def shapes(numbers: tuple) -> tuple[ConvexShape, ConvexShape]:
        one, two = (s._replace(**dict(zip(NUMBERS, x, strict=True))) for s, x in zip((a, b), numbers, strict=True))
        return one, two

    numbers, numbers_dot = (tuple(tuple(getattr(s, n) for n in NUMBERS) for s in pair) for pair in ((a, b), tangents))
    return shapes, numbers, numbers_dot
