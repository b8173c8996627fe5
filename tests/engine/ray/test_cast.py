"""Rays against every type of geom, compared with MuJoCo's."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.ray import mesh as ray_mesh
from validation.stages import to_data

HEIGHTS = " ".join(f"{0.5 + 0.5 * np.sin(1.3 * i + 0.2 * i * i):.3f}" for i in range(35))
XML = f"""
<mujoco>
  <asset>
    <mesh name="ball" builtin="sphere" params="2" scale=".3 .2 .25"/>
    <mesh name="tet" vertex="0 0 0  .3 0 0  0 .4 0  0 0 .5"/>
    <hfield name="hill" nrow="5" ncol="7" size=".6 .4 .3 .2" elevation="{HEIGHTS}"/>
    <material name="clear" rgba="1 1 1 0"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="3 4 1" pos="0 0 -1" euler="3 2 0"/>
    <geom name="hidden" size=".5" pos="-1 0 1" rgba="1 1 1 0"/>
    <geom name="glass" size=".5" pos="1 0 1" material="clear"/>
    <body pos="0 .8 0" euler="20 30 40"><freejoint/>
      <geom name="hill" type="hfield" hfield="hill" mass="1"/>
    </body>
    <body pos=".5 0 .2" euler="10 20 30"><freejoint/>
      <geom name="capsule" type="capsule" size=".12 .3" group="1"/>
      <geom name="ellipsoid" type="ellipsoid" size=".3 .2 .15" pos="0 -.7 .1" group="2"/>
    </body>
    <body pos="-.5 -.1 .2" euler="-20 10 5"><freejoint/>
      <geom name="cylinder" type="cylinder" size=".2 .25"/>
      <geom name="box" type="box" size=".2 .15 .25" pos=".1 -.8 .2" group="3" euler="0 0 30"/>
      <geom name="sphere" size=".2" pos="-.6 -.6 .4" group="9"/>
    </body>
    <body pos="0 0 .9" euler="40 10 5"><freejoint/>
      <geom name="ball" type="mesh" mesh="ball" pos=".1 .5 0" mass="1"/>
      <geom name="tet" type="mesh" mesh="tet" pos="-.4 -.2 .1" mass="1"/>
    </body>
  </worldbody>
</mujoco>
"""
MODEL = mujoco.MjModel.from_xml_string(XML)
DATA = mujoco.MjData(MODEL)
mujoco.mj_forward(MODEL, DATA)
OURS = jaxsim.from_mujoco(MODEL)
STATE = jax.jit(lambda m, d: jaxsim.kinematics(m, d))(OURS, to_data(OURS, DATA))


def rays(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rays from all around, half of them aimed at geoms, some from inside them."""
    rng = np.random.default_rng(seed)
    pnt = 1.5 * rng.standard_normal((n, 3))
    target = DATA.geom_xpos[rng.integers(1, MODEL.ngeom, n)] + 0.15 * rng.standard_normal((n, 3))
    vec = np.where(np.arange(n)[:, None] % 4, target - pnt, rng.standard_normal((n, 3)))
    inside = np.arange(n) % 5 == 0
    pnt[inside] = target[inside]
    vec[inside] = rng.standard_normal((inside.sum(), 3))
    return pnt, vec


def oracle(pnt, vec, group=None, static=1, exclude=-1):
    """mj_ray for each ray."""
    out = []
    for p, v in zip(pnt, vec, strict=True):
        geom, normal = np.zeros(1, np.int32), np.zeros(3)
        dist = mujoco.mj_ray(MODEL, DATA, p, v, group, static, exclude, geom, normal)
        out.append((dist, geom[0], normal))
    return [np.array(x) for x in zip(*out, strict=True)]


def check(ours, theirs):
    dist, geom, normal = (np.asarray(x) for x in ours)
    np.testing.assert_array_equal(geom, theirs[1])
    np.testing.assert_allclose(dist, theirs[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(normal, theirs[2], rtol=1e-7, atol=1e-7)


def ours(pnt, vec, *args):
    return jax.jit(lambda p, v: jax.vmap(lambda p, v: jaxsim.ray(OURS, STATE, p, v, *args))(p, v))(pnt, vec)


@pytest.mark.parametrize(
    ("group", "static", "exclude"),
    [(None, 1, -1), ((1, 0, 1, 1, 0, 1), 0, 2)],
    ids=["all", "some groups that move without one body"],
)
def test_rays_meet_what_mujocos_meet(group, static, exclude, monkeypatch):
    monkeypatch.setattr(ray_mesh, "BRUTE_FORCE_MAX_TRIANGLES", 0)
    pnt, vec = rays(600)
    flags = None if group is None else np.array(group, np.uint8)
    theirs = oracle(pnt, vec, flags, static, exclude)
    if group is None and exclude < 0 and static:
        assert set(theirs[1]) == set(range(-1, MODEL.ngeom)) - {1, 2}
    check(ours(pnt, vec, group, bool(static), exclude), theirs)


def test_brute_force_search_of_small_meshes_has_the_same_results(monkeypatch):
    monkeypatch.setattr(ray_mesh, "BRUTE_FORCE_MAX_TRIANGLES", 10**6)
    pnt, vec = rays(400, seed=3)
    check(ours(pnt, vec), oracle(pnt, vec))


def test_many_rays_from_a_point_leave_out_what_mujoco_leaves_out():
    rng = np.random.default_rng(5)
    vec, pnt = rng.standard_normal((500, 3)), np.array([0.1, -0.2, 0.4])
    vec[7] = 0
    geom, dist, normal = np.zeros(len(vec), np.int32), np.zeros(len(vec)), np.zeros(3 * len(vec))
    mujoco.mj_multiRay(MODEL, DATA, pnt, vec.reshape(-1), None, 1, 3, geom, dist, normal, len(vec), 0.5)
    geom[7], normal = -1, normal.reshape(-1, 3)
    normal[7] = 0
    got = jax.jit(lambda p, v: jaxsim.multi_ray(OURS, STATE, p, v, None, True, 3, 0.5))(pnt, vec)
    check(got, (dist, geom, normal))


@jax.jit
def distances(pnt, vec, pos, mat, size):
    m, d = OURS.replace(geom_size=size), STATE.replace(geom_xpos=pos, geom_xmat=mat)
    return jax.vmap(lambda p, v: jaxsim.ray(m, d, p, v)[0])(pnt, vec)


def test_a_direction_of_length_zero_is_refused():
    m = jaxsim.load_model("<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>")
    with pytest.raises(ValueError, match="vec has length zero"):
        jaxsim.ray(m, jaxsim.make_data(m), [0, 0, 1], [0, 0, 0])


def test_derivatives_of_the_distance_are_those_of_differences():
    pnt, vec = rays(60, seed=2)
    args = (pnt, vec, STATE.geom_xpos, STATE.geom_xmat, OURS.geom_size)
    rng = np.random.default_rng(0)
    direction = tuple(jnp.asarray(rng.standard_normal(np.shape(a))) for a in args)
    _, derivative = jax.jvp(distances, args, direction)
    up, down = (distances(*(a + s * 1e-6 * w for a, w in zip(args, direction, strict=True))) for s in (1, -1))
    central = (up - down) / 2e-6
    smooth = np.abs(central) < 1e3  # a ray along an edge jumps to another geom
    assert smooth.mean() > 0.9
    np.testing.assert_allclose(derivative[smooth], central[smooth], rtol=1e-5, atol=1e-5)
    back = jax.vjp(distances, *args)[1](jnp.asarray(smooth, float))
    assert np.isclose(
        sum(jnp.vdot(a, b) for a, b in zip(back, direction, strict=True)), derivative[smooth].sum(), rtol=1e-9
    )


def test_derivatives_are_finite_for_rays_that_graze_miss_or_start_on_a_surface():
    pnt = jnp.array([[0.2, 0, 3], [0, 0, 3], [0, 0, 0.2], [5, 5, 5]])
    vec = jnp.array([[0, 0, -1.0], [0, 0, -1], [0, 0, 0], [0, 0, 1]])
    xml = '<mujoco><worldbody><geom size=".2"/><geom type="capsule" size=".2 .5" pos="3 0 0"/></worldbody></mujoco>'
    m = jaxsim.load_model(xml)
    d = jaxsim.kinematics(m, jaxsim.make_data(m))
    derivatives = jax.jacrev(lambda p, v: jaxsim.multi_ray(m, d, p[0], v)[0], (0, 1))(pnt, vec)
    assert all(np.isfinite(x).all() for x in derivatives)


def test_single_precision_meets_the_same_geoms(float32):
    pnt, vec = rays(200, seed=4)
    m = jaxsim.from_mujoco(MODEL)
    d = jaxsim.kinematics(m, to_data(m, DATA))
    dist, geom, _ = jax.jit(jax.vmap(lambda p, v: jaxsim.ray(m, d, p, v)))(pnt, vec)
    theirs = oracle(pnt, vec)
    assert (np.asarray(geom) == theirs[1]).mean() > 0.99
    same = np.asarray(geom) == theirs[1]
    assert dist.dtype == jnp.float32
    np.testing.assert_allclose(dist[same], theirs[0][same], rtol=1e-3, atol=1e-4)
