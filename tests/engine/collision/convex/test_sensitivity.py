"""Derivatives of witness points and distances of convex shapes, in both modes, by poses and by shape."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.types import GeomType
from jaxsim.engine.collision.convex.sensitivity import WitnessPoints, solved_witness, surface_feature, witness
from jaxsim.engine.collision.convex.support import ConvexShape, farthest_point
from jaxsim.engine.collision.distance import geom_distance
from jaxsim.math.component import join, split
from jaxsim.math.rotation import quat_mul, quat_to_mat, rotvec_to_quat
from tests.engine.collision.scenes import pair_xml, random_qpos

KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "hull")
FACETED = ("sphere", "capsule", "box", "hull")  # pairs whose search ends at the exact answer
PAIRS = [
    ("box", "hull"),
    ("hull", "hull"),
    ("capsule", "hull"),
    ("box", "cylinder"),
    ("cylinder", "hull"),
    ("capsule", "cylinder"),
    ("sphere", "ellipsoid"),
    ("ellipsoid", "box"),
    ("ellipsoid", "ellipsoid"),
]
FIRST = np.arange(0, 2 * len(PAIRS), 2)
EXACT = [i for i, pair in enumerate(PAIRS) if set(pair) <= set(FACETED)]
STEP = 1e-5


@pytest.fixture(scope="module")
def moved():
    """Distance and segment with derivatives along random changes of poses, sizes and vertices, and differences."""
    mj = mujoco.MjModel.from_xml_string(pair_xml(PAIRS, 0.0, 'ccd_tolerance="1e-12" ccd_iterations="100"'))
    m = jaxsim.from_mujoco(mj)
    d, rng, n = jaxsim.make_data(m), np.random.default_rng(3), 24
    qpos = jnp.asarray(random_qpos(rng, n, 2 * len(PAIRS), 0.3).reshape(n, -1, 7))

    def measure(t, q, move, turn, grow, stretch):
        mat = quat_to_mat(quat_mul(rotvec_to_quat(t * turn), q[:, 3:])).reshape(-1, 9)
        changed = m.replace(geom_size=m.geom_size * (1 + t * grow), mesh_vert=m.mesh_vert * (1 + t * stretch))
        at = d.replace(geom_xpos=q[:, :3] + t * move, geom_xmat=mat)
        dist, fromto = geom_distance(changed, at, FIRST, FIRST + 1, 10.0)
        return jnp.concatenate([dist[:, None], fromto], axis=1)

    def both(t, weight, *args):
        value, forward = jax.jvp(lambda t: measure(t, *args), (t,), (1.0,))
        backward = jax.grad(lambda t: jnp.sum(weight * measure(t, *args)))(t)
        return value, forward, backward

    shape = (n, 2 * len(PAIRS), 3)
    args = (qpos, *[0.3 * rng.standard_normal(shape) for _ in range(3)], 0.3 * rng.standard_normal((n, 1, 3)))
    weight = rng.standard_normal((len(PAIRS), 7))
    run = jax.jit(jax.vmap(both, in_axes=(None, None, 0, 0, 0, 0, 0)))
    value, forward, backward = map(np.asarray, run(0.0, weight, *args))
    central = np.asarray(run(STEP, weight, *args)[0] - run(-STEP, weight, *args)[0]) / (2 * STEP)
    return value, forward, backward, central, weight


def error(moved, pair, columns):
    _, forward, _, central, _ = moved
    gap = np.abs(forward - central)[:, pair, columns] / (1 + np.abs(central[:, pair, columns]))
    return gap.reshape(len(gap), -1).max(axis=1)


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=["-".join(p) for p in PAIRS])
def test_derivative_of_distance_equals_central_differences(moved, pair):
    assert (
        error(moved, pair, slice(0, 1)) < 1e-5
    ).mean() > 0.85  # elsewhere the feature changes, or the search ends early


@pytest.mark.parametrize("pair", EXACT, ids=["-".join(PAIRS[i]) for i in EXACT])
def test_derivative_of_points_equals_central_differences(moved, pair):
    assert (error(moved, pair, slice(1, 7)) < 1e-5).mean() > 0.7


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=["-".join(p) for p in PAIRS])
def test_derivative_of_points_follows_that_of_the_distance(moved, pair):
    """The segment is as long as the distance, and so are their derivatives."""
    value, forward, *_ = moved
    gap, change = value[:, pair, 4:] - value[:, pair, 1:4], forward[:, pair, 4:] - forward[:, pair, 1:4]
    along = np.sum(gap * change, axis=1) / value[:, pair, 0]
    close = np.abs(along - forward[:, pair, 0]) < 1e-3 * (1 + np.abs(forward[:, pair, 0]))
    assert close.mean() > 0.9


def test_both_modes_agree_and_are_finite(moved):
    _, forward, backward, _, weight = moved
    assert np.isfinite(forward).all()
    np.testing.assert_allclose(backward, np.sum(weight * forward, axis=(1, 2)), rtol=1e-6)


def make_shape(kind, pos, mat, size, margin=0.0, corner=None):
    none = jnp.int32(0)
    return ConvexShape(kind, pos, mat, size, jnp.asarray(margin), none, none, jnp.zeros(2, jnp.int32), corner=corner)


CURVED = (GeomType.SPHERE, GeomType.CAPSULE, GeomType.ELLIPSOID, GeomType.CYLINDER, GeomType.BOX)


def test_derivative_of_witness_points_of_curved_shapes_is_exact():
    """Shapes placed by their support points along a known normal, so that no search adds its tolerance."""
    rng, n = np.random.default_rng(4), 60
    kinds = jnp.asarray(rng.choice(CURVED, (n, 2)))
    quat = rng.standard_normal((n, 2, 4))
    quat /= np.linalg.norm(quat, axis=-1, keepdims=True)
    size, dist = 0.2 + 0.3 * rng.random((n, 2, 3)), np.where(np.arange(n) % 2, 0.05, -0.05)
    normal = rng.standard_normal((n, 3))
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    change = 0.3 * rng.standard_normal((n, 2, 3, 3))

    def shape(t, kind, pos, quat, size, change):
        mat = quat_to_mat(quat_mul(rotvec_to_quat(t * change[1]), quat))
        grown = size * (1 + t * change[2])
        return make_shape(kind, pos + t * change[0], mat, grown, corner=jnp.zeros((3, 3)))

    def check(kinds, quat, size, normal, dist, change):
        a = shape(0.0, kinds[0], jnp.zeros(3), quat[0], size[0], change[0])
        b = shape(0.0, kinds[1], jnp.zeros(3), quat[1], size[1], change[1])
        x1, x2 = (join(farthest_point(CURVED, None, s, split(n))[0]) for s, n in ((a, normal), (b, -normal)))
        place = (jnp.zeros(3), x1 + dist * normal - x2)
        known = WitnessPoints(x1, x1 + dist * normal, normal, dist)

        def both(t):
            sides = zip(kinds, place, quat, size, change, strict=True)
            return [shape(t, *side) for side in sides]

        a, b = both(0.0)
        weight = jnp.array([1.0, 0, 0])
        feature1 = surface_feature(a, jnp.stack([known.x1] * 3), weight, known.x1, normal)
        feature2 = surface_feature(b, jnp.stack([known.x2] * 3), weight, known.x2, -normal)
        solved = solved_witness(a, b, feature1, feature2, known)
        start = jnp.concatenate([known.x1, known.x2, normal, dist[None]])
        _, moved = jax.jvp(both, (0.0,), (1.0,))
        exact = jax.jvp(lambda a, b: witness(False, a, b, solved), (a, b), tuple(moved))[1]
        ends = [solved_witness(*both(h), feature1, feature2, known).z for h in (STEP, -STEP)]
        return solved.z - start, exact, (ends[0] - ends[1]) / (2 * STEP)

    off, exact, central = jax.jit(jax.vmap(check))(kinds, quat, size, normal, dist, change)
    assert np.abs(off).max() < 1e-9  # the construction solves the equations
    gap = np.abs(exact - central) / (1 + np.abs(central))
    assert np.isfinite(exact).all() and np.quantile(gap, 0.98) < 1e-5


@pytest.mark.parametrize("kind", [GeomType.BOX, GeomType.MESH])
@pytest.mark.parametrize(("corners", "use"), [((0, 1, 1), (True, False)), ((0, 0, 1), (False, True))])
def test_support_points_that_differ_by_the_margin_alone_are_one_vertex(kind, corners, use):
    """Of an edge, two of three support points are one vertex, seen along two directions and so apart with a margin."""
    size, margin = jnp.array([0.1, 0.2, 0.3]), 0.01
    signs = jnp.array([[1.0, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]])
    corner = (signs * size)[jnp.array(corners)]
    s = make_shape(jnp.array(int(kind)), jnp.zeros(3), jnp.eye(3), size, jnp.array(margin), corner)
    ways = jnp.array([[1.0, 1.0, 0], [1.0, 1.01, 0.01], [1.01, 1.0, -0.01]])
    ways /= jnp.linalg.norm(ways, axis=1, keepdims=True)
    vertices = (signs * size)[jnp.array(corners)]
    x = vertices.mean(0) + 0.5 * margin * ways[0]
    found = surface_feature(s, vertices + 0.5 * margin * ways, jnp.array([0.4, 0.35, 0.25]), x, ways[0])
    assert tuple(map(bool, found.use)) == use
