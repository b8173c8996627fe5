"""How the deepest or nearest points of two convex shapes move with the shapes: the implicit function theorem.

The search ends at points x1, x2 on the shapes, a unit normal n from the first to the second and a signed distance:
x2 - x1 = dist n. On either shape the point lies on a feature: a vertex, an edge or a face, or such a feature of a core
with something strictly convex added (the ball of a sphere or capsule, an ellipsoid, the disc of a cylinder). In the
shape's own frame, with T the projector on the feature's tangents, v a point of the feature and s(n) the point of the
strictly convex part with normal n,

    (1 - T) (x - s(n) - v) + T n = 0:

along its tangents the feature stands upright on the normal, across them the point lies on it. Together with the gap and
|n| = 1 these are ten equations for ten unknowns, regular also where the shapes just touch. Along a `ray` the points are
apart not along the normal but along the line between the centres.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.support import ROUND, Shape, centre, is_any
from jaxsim.math import safe
from jaxsim.math.arrays import dot, inner, matvec, matvec_t
from jaxsim.math.rotation import cross
from jaxsim.math.safe import Array
from jaxsim.xla import linalg

FLAT = 1e-2  # sine between normal and tangent below which a feature is taken to be an edge or face
INSIDE = 1e-9  # relative distance from the end of a side or the rim of a cap
STEPS = 4  # of Newton's method from the search's answer to the solution of the equations
REACH = 0.1  # Newton's answer is dropped if it lies farther from the search's than this


class Touch(NamedTuple):
    """Where two shapes touch: points x1, x2 (3,), unit normal from the first to the second (3,), signed distance."""

    x1: Array
    x2: Array
    normal: Array
    dist: Array


class Feature(NamedTuple):
    """What of a shape is touched, in choices that have no derivative.

    `index` (3,) vertices of a mesh or prism, `sign` (3, 3) of a box's corners; `use` (2,) which of the second and third
    vertex span the feature with the first; `flat` whether a capsule or cylinder is touched at its side, `cap` at a cap;
    `end` the sign of the cap, rim or end.
    """

    index: Array
    sign: Array
    use: Array
    flat: Array
    cap: Array
    end: Array


def feature(s: Shape, points: Array, weight: Array, x: Array, normal: Array) -> Feature:
    """The feature of a shape at x (3,) with the outward normal (3,), given the support points (3, 3) that x mixes."""
    local = matvec_t(s.mat, points - s.pos)
    order = jnp.argsort(-weight)
    local = local[order]
    index = jnp.argmin(jnp.sum((local[:, None] - s.vert) ** 2, axis=-1), axis=1)
    n, p = matvec_t(s.mat, normal), matvec_t(s.mat, x - s.pos)
    corner = _corners(s, index, jnp.sign(local))  # the points hold margins, by which those of one vertex differ
    edge = corner[1:] - corner[:1]
    length = safe.norm(edge)
    scale = jnp.maximum(jnp.max(jnp.abs(corner)), 1e-12)
    use = (length > 1e-6 * scale) & (jnp.abs(inner(edge, n)) < FLAT * length)
    use = use.at[1].set(
        use[1] & (safe.norm(cross(edge[0], edge[1])) > 1e-6 * length[0] * length[1]) | (use[1] & ~use[0])
    )
    half, radius = s.size[1], s.size[0]
    core = jnp.where(s.kind == GeomType.CAPSULE, p[2] - radius * n[2], p[2])
    flat = (jnp.abs(core) < half * (1 - INSIDE)) & (jnp.abs(n[2]) < FLAT)
    across = safe.norm(n[:2])
    cap = (across < FLAT) & (safe.norm(p[:2]) < radius * (1 - INSIDE)) & ~flat
    return Feature(index, jnp.sign(local), use, flat, cap, jnp.where(flat, 0.0, jnp.sign(core)).astype(p.dtype))


def _corners(s: Shape, index: Array, sign: Array) -> Array:
    """Vertices (3, 3) of a mesh or prism by their index (3,), of a box by their signs."""
    return jnp.where(s.kind == GeomType.BOX, sign * s.size, s.vert[index])


def rounding(s: Shape, cap: Array, n: Array) -> Array:
    """The point with normal n (3,) of what is strictly convex in a shape, in the shape's frame; `cap` of a cylinder."""
    kind = s.kind
    wide = s.size * n
    oval = s.size * safe.divide(wide, safe.norm(wide))
    disc = s.size[0] * safe.normalize(n * np.array([1.0, 1, 0]).astype(n.dtype))[0]
    bulge = jnp.where(is_any(kind, ROUND), s.size[0] * n, jnp.where(kind == GeomType.ELLIPSOID, oval, 0))
    bulge = jnp.where(kind == GeomType.CYLINDER, jnp.where(cap, 0, disc), bulge) + 0.5 * s.margin * n
    return bulge


def _residual(s: Shape, f: Feature, x: Array, normal: Array) -> Array:
    """The three equations of one side (3,) at a point x with the outward normal."""
    kind, eye = s.kind, jnp.eye(3, dtype=x.dtype)
    n, p = matvec_t(s.mat, normal), matvec_t(s.mat, x - s.pos)
    corner = _corners(s, f.index, f.sign)
    first = safe.normalize(corner[1] - corner[0])[0] * f.use[0]
    second = corner[2] - corner[0]
    second = safe.normalize(second - first * inner(first, second))[0] * f.use[1]
    spanned = first[:, None] * first + second[:, None] * second
    z = eye[2]
    axial = jnp.where(f.flat, 1, 0) * z[:, None] * z + jnp.where(f.cap & (kind == GeomType.CYLINDER), 1, 0) * (
        eye - z[:, None] * z
    )
    long = is_any(kind, (GeomType.CAPSULE, GeomType.CYLINDER))
    curved = is_any(kind, (*ROUND, GeomType.ELLIPSOID, GeomType.CYLINDER))
    tangent = jnp.where(long, axial, jnp.where(curved, 0, spanned))
    base = jnp.where(long, z * f.end * s.size[1], jnp.where(curved, 0, corner[0]))
    bulge = rounding(s, f.cap, n)
    off = p - bulge - base
    return off - matvec(tangent, off) + matvec(tangent, n)


def equations(a: Shape, b: Shape, fa: Feature, fb: Feature, z: Array, ray: bool = False) -> Array:
    """The ten equations at the unknowns z (10,): x1, x2, normal, distance."""
    x1, x2, n, dist = z[:3], z[3:6], z[6:9], z[9]
    along = safe.normalize(centre(b) - centre(a))[0] if ray else n
    return jnp.concatenate(
        [_residual(a, fa, x1, n), _residual(b, fb, x2, -n), x2 - x1 - dist * along, 0.5 * (inner(n, n) - 1)[None]]
    )


def _solve(jacobian: Array, right: Array) -> Array:
    """Least-squares solution of least length; finite for singular systems, such as two faces that are parallel."""
    damping = float(jnp.finfo(jacobian.dtype).eps) ** 0.75
    # a sum: a product of matrices this small is a kernel that takes several times as long
    normal = jnp.sum(jacobian[:, :, None] * jacobian[:, None], axis=0)
    scale = jnp.maximum(jnp.max(jnp.abs(normal)), 1)
    damped = normal + damping * scale * jnp.eye(len(normal), dtype=normal.dtype)
    fixed = jax.lax.stop_gradient(damped)
    solve = lambda _, y: linalg.solve_positive(fixed, y)  # noqa: E731
    return jax.lax.custom_linear_solve(partial(dot, damped), matvec_t(jacobian, right), solve, symmetric=True)


def polished(a: Shape, b: Shape, fa: Feature, fb: Feature, touch: Touch, ray: bool = False) -> Array:
    """The search's answer taken to the solution of the equations by Newton's method, as unknowns (10,)."""
    start = jnp.concatenate([touch.x1, touch.x2, touch.normal, touch.dist[None]])

    def step(z: Array, _: None) -> tuple[Array, None]:
        jacobian = jax.jacfwd(lambda z: equations(a, b, fa, fb, z, ray))(z)
        return z - _solve(jacobian, equations(a, b, fa, fb, z, ray)), None

    z, _ = jax.lax.scan(step, start, None, length=STEPS)
    ok = jnp.all(jnp.isfinite(z)) & (jnp.max(jnp.abs(z - start)) < REACH)
    return jnp.where(ok, z, start)


def derivative(
    a: Shape, b: Shape, a_dot: Shape, b_dot: Shape, z: Array, fa: Feature, fb: Feature, ray: bool = False
) -> Touch:
    """Tangents of where two shapes touch, given those of the shapes' numbers; `z` solves the equations."""
    names = ("pos", "mat", "size", "vert", "margin")

    def at(numbers: tuple) -> Array:
        one, two = [s._replace(**dict(zip(names, x, strict=True))) for s, x in zip((a, b), numbers, strict=True)]
        return equations(one, two, fa, fb, z, ray)

    numbers, moved = [tuple(tuple(getattr(s, n) for n in names) for s in pair) for pair in ((a, b), (a_dot, b_dot))]
    _, change = jax.jvp(at, (numbers,), (moved,))
    jacobian = jax.jacfwd(lambda z: equations(a, b, fa, fb, z, ray))(z)
    z_dot = -_solve(jacobian, change)
    return Touch(z_dot[:3], z_dot[3:6], z_dot[6:9], z_dot[9])
