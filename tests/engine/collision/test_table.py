"""Every pair of primitive geom types against MuJoCo, in random and nearly aligned poses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.core.types import GeomType
from jaxsim.engine.collision.table import COLLIDERS
from jaxsim.math.rotation import quat_to_mat, rotvec_to_quat
from tests.engine.collision.scenes import PLACES, make_scene, pair_xml, random_qpos

PLANE = [("plane", kind) for kind in ("sphere", "capsule", "ellipsoid", "cylinder", "box", "hull", "cube")]
SPHERES = [("sphere", kind) for kind in ("sphere", "capsule", "cylinder", "box")]
PAIRS = [*PLANE, *SPHERES, ("capsule", "capsule"), ("capsule", "box"), ("box", "box")]


def nearly_aligned(rng, n, bodies):
    q = random_qpos(rng, n, bodies, 0.45).reshape(n, bodies, 7)
    q[..., 3:] = [1, 0, 0, 0]
    q[..., 3:] += rng.standard_normal((n, bodies, 4)) * 10.0 ** rng.uniform(-7, -1, (n, bodies, 1))
    q[..., 3:] /= np.linalg.norm(q[..., 3:], axis=-1, keepdims=True)
    return q.reshape(n, -1)


@pytest.fixture(scope="module")
def primitives():
    """Scene, poses, our contacts and MuJoCo's, for all pairs at once."""
    rng = np.random.default_rng(1)
    scene = make_scene(pair_xml(PAIRS, margin=0.07))
    nfree = scene.mj.njnt
    qpos = np.concatenate([random_qpos(rng, 150, nfree, s) for s in (0.5, 0.15)] + [nearly_aligned(rng, 200, nfree)])
    pos, mat, contacts = scene.oracle(qpos)
    return scene, (pos, mat), scene.run(pos, mat), contacts


def of_pair(scene, contact, pair):
    geoms = {scene.m.name2id("geom", f"{pair}.0"), scene.m.name2id("geom", f"{pair}.1")}
    return np.array([set(g) == geoms for g in np.asarray(contact)], bool)


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=["-".join(p) for p in PAIRS])
def test_contacts_of_a_pair_equal_mujocos(primitives, pair):
    scene, _, ours, contacts = primitives
    seen = 0
    for i, contact in enumerate(contacts):
        mine, theirs = of_pair(scene, ours.contact.geom[i], pair), of_pair(scene, contact["geom"], pair)
        assert mine.sum() == theirs.sum()
        seen += theirs.sum()
        for field in PLACES:
            got = np.asarray(getattr(ours.contact, field))[i][mine]
            np.testing.assert_allclose(got, contact[field][theirs], rtol=0, atol=1e-9, err_msg=f"{field} of pose {i}")
    assert seen > 20


def test_contact_frames_are_rotations(primitives):
    scene, _, ours, _ = primitives
    frame = np.asarray(ours.contact.frame)[np.arange(scene.m.max_contacts) < np.asarray(ours.ncon)[:, None]]
    frame = frame.reshape(-1, 3, 3)
    np.testing.assert_allclose(frame @ frame.transpose(0, 2, 1), np.broadcast_to(np.eye(3), frame.shape), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(frame), 1, atol=1e-12)


@pytest.fixture(scope="module")
def few():
    pairs = [("plane", "box"), ("plane", "cylinder"), ("sphere", "capsule"), ("capsule", "capsule"), ("capsule", "box")]
    return make_scene(pair_xml([*pairs, ("box", "box")], margin=0.07))


def test_gradients_equal_central_differences(few):
    n = 60
    rng = np.random.default_rng(3)
    pos, mat, _ = few.oracle(random_qpos(rng, n, few.mj.njnt, 0.3))
    spin, shift = rng.standard_normal((2, n, few.m.ngeom, 3))

    def along(t, pos, mat, spin, shift):
        turn = quat_to_mat(rotvec_to_quat(t * spin))
        c = few.single(pos + t * shift, (turn @ mat.reshape(-1, 3, 3)).reshape(-1, 9)).contact
        return jnp.concatenate([getattr(c, field).reshape(-1) for field in PLACES])

    axes = (None, 0, 0, 0, 0)
    value = jax.jit(jax.vmap(along, axes))
    gradient = jax.jit(jax.vmap(lambda t, *args: jax.jvp(lambda t: along(t, *args), (t,), (1.0,))[1], axes))
    args = (pos, mat, spin, shift)
    exact = np.asarray(gradient(0.0, *args))
    near, far = [np.asarray(value(h, *args) - value(-h, *args)) / (2 * h) for h in (1e-6, 2e-6)]
    assert np.isfinite(exact).all()
    steady = np.all(np.abs(near - far) < 1e-5 * (1 + np.abs(near)), axis=1)  # no contact comes or goes within the step
    assert steady.sum() > 0.8 * n
    np.testing.assert_allclose(exact[steady], near[steady], rtol=1e-5, atol=1e-6)


def test_reverse_gradients_are_finite_where_geoms_coincide(few):
    eye = np.broadcast_to(np.eye(3).reshape(9), (few.m.ngeom, 9))

    def total(pos, mat):
        c = few.single(pos, mat).contact
        return jnp.sum(c.dist) + jnp.sum(c.pos) + jnp.sum(c.frame)

    gradient = jax.jit(jax.grad(total, argnums=(0, 1)))
    for gap in (0.0, 0.3, 0.6):
        pos = np.array([0, 0, gap]) * np.arange(few.m.ngeom)[:, None]
        assert all(np.isfinite(g).all() for g in gradient(pos, eye))


def test_single_precision_agrees(primitives, float32):
    _, (pos, mat), _, contacts = primitives
    single = make_scene(pair_xml(PAIRS, margin=0.07))
    ours = single.run(np.float32(pos[:40]), np.float32(mat[:40]))
    assert ours.contact.dist.dtype == jnp.float32
    same = [i for i in range(40) if int(ours.ncon[i]) == len(contacts[i]["dist"])]
    assert len(same) > 35
    for i in same:
        n = len(contacts[i]["dist"])
        np.testing.assert_allclose(ours.contact.dist[i, :n], contacts[i]["dist"], atol=2e-5)


def test_table_is_ordered_by_type():
    assert all(a <= b for a, b in COLLIDERS)
    assert all((GeomType.PLANE, g) in COLLIDERS for g in range(GeomType.SPHERE, GeomType.SDF))
