"""float32 decides as float64 does: wraps at random, with side sites inside and outside, and ends near the surface.

Both start from numbers that float32 holds. What remains are ties: paths that just touch a geom, of which one in 100,000
falls the other way.
"""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.tendon.wrap import wrap

N = 20_000
RTOL = 5e-5  # lengths in float32: some hundred roundings
TIES = 1e-3  # the part of decisions that may differ; 1e-5 was measured

# a shoulder: muscles over a head of the humerus with side sites inside and outside, and over a cylinder
MUSCLES = """<mujoco><worldbody>
  <site name="o1" pos=".03 0 .1"/><site name="o2" pos="-.04 .01 .08"/><site name="o3" pos=".02 -.03 .09"/>
  <geom name="head" type="sphere" size=".025" contype="0" conaffinity="0"/>
  <site name="inside" pos="0 0 .01"/><site name="surface" pos=".02501 0 0"/>
  <body><joint type="ball"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".01" contype="0" conaffinity="0"/>
    <geom name="shaft" type="cylinder" fromto="-.05 0 -.02 .05 0 -.02" size=".02" contype="0" conaffinity="0"/>
    <site name="shaft_inside" pos="0 .001 -.02"/>
    <site name="i1" pos=".02 0 -.1"/><site name="i2" pos="-.02 .01 -.08"/><site name="i3" pos="0 -.02 -.06"/></body>
</worldbody><tendon>
  <spatial><site site="o1"/><geom geom="head" sidesite="inside"/><site site="i1"/></spatial>
  <spatial><site site="o2"/><geom geom="head" sidesite="inside"/><site site="i2"/></spatial>
  <spatial><site site="o3"/><geom geom="head"/><site site="i3"/></spatial>
  <spatial><site site="o1"/><geom geom="head" sidesite="surface"/><site site="i2"/></spatial>
  <spatial><site site="surface"/><geom geom="head"/><site site="i3"/></spatial>
  <spatial><site site="o2"/><geom geom="shaft" sidesite="shaft_inside"/><site site="i1"/></spatial>
  <spatial><site site="o3"/><geom geom="shaft" sidesite="shaft_inside"/><site site="i2"/></spatial>
</tendon></mujoco>"""


def random_wraps(side, near):
    """Arguments of `wrap` that float32 holds: frames at random, ends between the surface and four radii."""
    rng = np.random.default_rng(0)
    radius = rng.uniform(0.01, 0.06, N)

    def points(low, high):
        v = rng.normal(size=(N, 3))
        return v / np.linalg.norm(v, axis=1, keepdims=True) * (radius * rng.uniform(low, high, N))[:, None]

    start = points(1 + 1e-5, 1 + 1e-3) if near else points(1.001, 4)
    end, site = points(1.001, 4), points(*{"inside": (0.05, 0.95)}.get(side, (1.05, 2)))
    mat = np.linalg.qr(rng.normal(size=(N, 3, 3)))[0]
    pos = rng.uniform(-1, 1, (N, 3))
    start, end, site = (np.einsum("nij,nj->ni", mat, x) + pos for x in (start, end, site))
    return [np.float32(x) for x in (start, end, pos, mat, radius)], np.float32(site), np.full(N, side is not None)


@functools.cache
def compiled(sphere):
    return jax.jit(lambda *a: wrap(*a[:5], np.full(N, sphere), *a[5:]))


def whole(out, start, end):
    """Lengths of the paths, straight where they do not wrap."""
    wraps, touch0, touch1, arc = (np.asarray(x, np.float64) for x in out)
    around = np.linalg.norm(start - touch0, axis=1) + arc + np.linalg.norm(end - touch1, axis=1)
    return np.where(wraps > 0, around, np.linalg.norm(np.float64(start) - end, axis=1))


@pytest.mark.parametrize("near", [False, True], ids=["far", "near"])
@pytest.mark.parametrize("side", [None, "outside", "inside"])
@pytest.mark.parametrize("sphere", [True, False], ids=["sphere", "cylinder"])
def test_lengths_of_random_wraps(sphere, side, near):
    arrays, site, has = random_wraps(side, near)
    single = compiled(sphere)(*map(jnp.asarray, arrays), jnp.asarray(site), has)
    double = compiled(sphere)(*map(np.float64, arrays), np.float64(site), has)
    assert single[3].dtype == np.float32 and double[3].dtype == np.float64
    assert np.mean(np.asarray(single[0]) == np.asarray(double[0])) >= 1 - TIES
    one, other = (whole(x, arrays[0], arrays[1]) for x in (single, double))
    assert np.mean(np.isclose(one, other, rtol=RTOL, atol=1e-6)) >= 1 - TIES


def test_muscles_of_a_shoulder_equal_mujocos_in_single_precision():
    """10,000 states of the joint: lengths in float32, float64 and MuJoCo."""
    theirs = mujoco.MjModel.from_xml_string(MUSCLES)
    data, rng = mujoco.MjData(theirs), np.random.default_rng(0)
    qpos = rng.normal(size=(10_000, 4))
    qpos = np.float32(qpos / np.linalg.norm(qpos, axis=1, keepdims=True))
    want = []
    for q in qpos:
        data.qpos[:] = q
        mujoco.mj_fwdPosition(theirs, data)
        want.append(np.copy(data.ten_length))

    def lengths():
        m = jaxsim.from_mujoco(theirs)
        d = jaxsim.make_data(m)

        def one(q):
            at = jaxsim.com_pos(m, jaxsim.kinematics(m, d.replace(qpos=q)))
            return jaxsim.tendon(m, at).ten_length

        return np.asarray(jax.jit(jax.vmap(one))(jnp.asarray(qpos)))

    np.testing.assert_allclose(lengths(), want, atol=1e-9)
    with jax.enable_x64(False):
        single = lengths()
    assert single.dtype == np.float32
    assert np.mean(np.isclose(single, want, rtol=RTOL, atol=1e-6)) >= 0.999


@pytest.mark.parametrize("sphere", [True, False], ids=["sphere", "cylinder"])
def test_paths_that_graze_a_geom_do_not_run_around_it(sphere):
    """Straight lines at the surface or up to 1e-3 radii below it, with the side site on their side."""
    rng, out = np.random.default_rng(1), np.array([1.0, 0, 0])
    radius, depth = rng.uniform(0.01, 0.06, N), 10 ** rng.uniform(-8, -3, N)
    nearest, side = ((radius * x)[:, None] * out for x in (1 - depth, np.full(N, 1.2)))
    along = np.stack([np.zeros(N), rng.uniform(0.3, 2, N), np.zeros(N)], axis=1) * radius[:, None]
    start, end = nearest + along, nearest - along * rng.uniform(1.2, 3, (N, 1))
    arrays = [np.float32(x) for x in (start, end, np.zeros((N, 3)), np.tile(np.eye(3), (N, 1, 1)), radius)]
    for xp, kind in ((jnp, np.float32), (np, np.float64)):
        found = (compiled(sphere) if xp is jnp else lambda *a: wrap(*a[:5], np.full(N, sphere), *a[5:]))(
            *(xp.asarray(x, kind) for x in arrays), xp.asarray(side, kind), np.ones(N, bool)
        )
        straight = np.linalg.norm(np.float64(arrays[0]) - arrays[1], axis=1)
        np.testing.assert_allclose(whole(found, arrays[0], arrays[1]), straight, rtol=3e-3)
