"""Convex pairs by GJK and EPA against MuJoCo: deepest points and manifolds."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from tests.engine.collision.scenes import make_scene, pair_xml, random_qpos

PAIRS = [
    ("hull", "hull"),
    ("box", "prism"),
    ("cube", "prism"),
    ("cylinder", "box"),
    ("ellipsoid", "box"),
    ("sphere", "hull"),
    ("capsule", "cylinder"),
    ("ellipsoid", "ellipsoid"),
]
FACETED = 3  # the first pairs: shapes with finitely many support points
# flat on flat, with one curved side, rounding picks the face at which the search ends; a margin makes it unique
MARGIN = [0.02 if pair == ("cylinder", "box") else 0 for pair in PAIRS]
# where a surface is curved the search ends within ccd_tolerance = 1e-6, at a point that rounding can move by as much
TOLERANCE = {i: 1e-9 if i < FACETED else 5e-6 for i in range(len(PAIRS))}


def lying(rng, n):
    """The second geom flat on the first: any heading, a little tilt, a little penetration."""
    q = np.zeros((n, len(PAIRS), 2, 7))
    q[..., :2] = rng.uniform(-0.2, 0.2, q[..., :2].shape)
    heading = rng.uniform(0, np.pi, q.shape[:-1])
    tilt = rng.standard_normal((*q.shape[:-1], 2)) * 10.0 ** rng.uniform(-6, -2, (*q.shape[:-1], 1))
    q[..., 3], q[..., 6], q[..., 4:6] = np.cos(heading), np.sin(heading), tilt
    q[..., 3:] /= np.linalg.norm(q[..., 3:], axis=-1, keepdims=True)
    top = {"hull": 0.3, "box": 0.4, "prism": 0.2, "cube": 0.2, "cylinder": 0.3, "ellipsoid": 0.3, "sphere": 0.3}
    height = [top.get(a, 0.5) + top.get(b, 0.5) for a, b in PAIRS]
    q[:, :, 1, 2] = np.array(height) - rng.uniform(0, 0.04, (n, len(PAIRS)))
    return q.reshape(n, -1)


@pytest.fixture(scope="module")
def convex():
    rng = np.random.default_rng(1)
    scene = make_scene(pair_xml(PAIRS, MARGIN))
    qpos = np.concatenate([random_qpos(rng, 60, 2 * len(PAIRS), 0.3), lying(rng, 60)])
    pos, mat, contacts = scene.oracle(qpos)
    return scene, (pos, mat), scene.run(pos, mat), contacts


def of_pair(geom, pair):
    return np.all(np.asarray(geom) == [2 * pair, 2 * pair + 1], axis=-1)


@pytest.mark.parametrize("pair", range(len(PAIRS)), ids=["-".join(p) for p in PAIRS])
def test_contacts_of_a_pair_equal_mujocos(convex, pair):
    _, _, ours, contacts = convex
    agree = several = total = 0
    for i, contact in enumerate(contacts):
        mine, theirs = of_pair(ours.contact.geom[i], pair), of_pair(contact["geom"], pair)
        total += 1
        several += theirs.sum() > 1
        if mine.sum() != theirs.sum():
            continue
        # contacts of one manifold stand in an order that ties between equal areas decide: compare them as sets
        a, b = np.asarray(ours.contact.pos)[i][mine], contact["pos"][theirs]
        gap = np.abs(a[:, None] - b).max(axis=-1)
        near = not len(a) or (gap.min(axis=0).max() < TOLERANCE[pair] and gap.min(axis=1).max() < TOLERANCE[pair])
        near &= np.allclose(np.asarray(ours.contact.dist)[i][mine], contact["dist"][theirs], rtol=0, atol=1e-6)
        agree += near
    assert agree >= 0.97 * total
    assert several > 10 or not {"box", "prism", "cube"} & set(PAIRS[pair]) or "ellipsoid" in PAIRS[pair]


def test_derivative_of_distance_equals_central_differences(convex):
    scene, (pos, mat), *_ = convex
    direction = np.random.default_rng(2).standard_normal(pos.shape)

    def along(t, pos, mat, direction):
        return jnp.sum(scene.single(pos + t * direction, mat).contact.dist)

    derivative = jax.jit(jax.vmap(lambda *args: jax.jvp(lambda t: along(t, *args), (0.0,), (1.0,))[1]))
    exact = np.asarray(derivative(pos, mat, direction))
    assert np.isfinite(exact).all()
    h = 1e-3  # distances of curved shapes are known to 1e-6
    plus, minus = scene.run(pos + h * direction, mat), scene.run(pos - h * direction, mat)
    same = np.all(np.asarray(plus.contact.geom) == np.asarray(minus.contact.geom), axis=(1, 2))
    central = np.asarray(jnp.sum(plus.contact.dist, axis=1) - jnp.sum(minus.contact.dist, axis=1)) / (2 * h)
    close = np.abs(exact - central) < 1e-2 * (1 + np.abs(central))
    assert same.sum() > 20 and close[same].mean() > 0.9


@pytest.mark.slow
def test_second_derivatives_are_not_right_by_mpr_alone_which_warns():
    xml = """<mujoco><option><flag nativeccd="FLAG"/></option><worldbody><geom type="ellipsoid" size="0.3 0.2 0.1"/>
      <body pos="0 0 0.2"><freejoint/><geom type="ellipsoid" size="0.2 0.2 0.2"/></body></worldbody></mujoco>"""

    def trace_second(flag):
        m = jaxsim.load_model(xml.replace("FLAG", flag))
        d = jaxsim.make_data(m)
        depth = lambda qpos: jnp.sum(jaxsim.forward(m, d.replace(qpos=qpos)).contact.dist ** 2)  # noqa: E731
        jax.make_jaxpr(jax.jacfwd(jax.grad(depth)))(m.qpos0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace_second("enable")
    with pytest.warns(UserWarning, match="second derivatives"):
        trace_second("disable")
