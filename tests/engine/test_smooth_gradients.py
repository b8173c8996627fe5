"""Derivatives of a whole step through the smooth stages: both modes, against central differences at two step sizes."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from tests.paths import MODELS
from validation.stages import exact, load, states, to_data

MODEL = """
<mujoco><option timestep="0.01" integrator="implicitfast" density="1.2" viscosity="0.1" wind="1 .3 .2"/>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody><site name="w0" pos="0 .02 2"/><geom name="cyl" type="cylinder" size=".08 .2" pos=".1 0 1.6" euler="90 0 0"/>
<body pos="0 0 1"><joint name="b" type="ball" stiffness="3 1" damping=".1"/>
  <geom type="box" size=".1 .2 .3" pos=".1 .05 0"/>
  <body pos="0 0 .3" gravcomp=".5"><joint name="h" axis="1 0 0" damping=".1 .2" armature=".1"/>
  <geom type="capsule" size=".05 .1" pos="0 .1 0" fluidshape="ellipsoid"/>
  <site name="s1" pos=".1 .01 .1"/></body></body>
<body pos="1 0 1"><freejoint/><geom type="box" size=".1 .2 .1"/><site name="s2"/></body></worldbody>
<tendon><spatial name="t" stiffness="10" damping=".2"><site site="w0"/><geom geom="cyl"/>
  <site site="s1"/></spatial></tendon>
<actuator><motor tendon="t" gear="2"/><muscle joint="h" lengthrange="-.7 1" ctrlrange="0 1"/>
<general joint="b" gear="1 2 3" dyntype="filterexact" dynprm=".1" biastype="affine" biasprm="0 -1 -.2"/></actuator>
<sensor><accelerometer site="s2"/><tendonpos tendon="t"/><framequat objtype="site" objname="s1"/></sensor></mujoco>
"""
LEAVES = ("body_inertia", "dof_damping", "tendon_stiffness", "actuator_gear", "site_pos")


@functools.cache
def setup():
    mj_model = exact(load(MODEL))
    m = jaxsim.from_mujoco(mj_model)

    def outcome(x, m, d):
        state, leaves = x
        new = jaxsim.step(m.replace(**leaves), d.replace(**state))
        return jnp.concatenate([new.qpos, new.qvel, new.act, new.sensordata])

    def both(x, v, w, m, d):
        """Value, derivative along v, and gradient of its product with w."""
        y, linear = jax.linearize(lambda x: outcome(x, m, d), x)
        return y, linear(v), jax.linear_transpose(linear, x)(w)[0]

    d = to_data(m, mujoco.MjData(mj_model))
    size = jax.eval_shape(outcome, point(m, d), m, d).shape
    return mj_model, m, size, jax.jit(both)


def point(m, d):
    return {n: getattr(d, n) for n in ("qpos", "qvel", "ctrl", "act")}, {n: getattr(m, n) for n in LEAVES}


@pytest.mark.parametrize("index", [0, 1])
def test_both_modes_agree_with_central_differences(index):
    mj_model, m, size, both = setup()
    d = to_data(m, states(mj_model, 2)[index])
    x = point(m, d)
    rng = np.random.default_rng(index)
    v = jax.tree.map(lambda a: jnp.asarray(rng.standard_normal(a.shape)) * (0.1 + abs(a)), x)
    w = jnp.asarray(rng.standard_normal(size))
    _, dy, back = both(x, v, w, m, d)
    pairs = zip(jax.tree.leaves(back), jax.tree.leaves(v), strict=True)
    np.testing.assert_allclose(sum(jnp.vdot(a, b) for a, b in pairs), jnp.vdot(w, dy), rtol=1e-9)
    for eps in (1e-5, 1e-6):
        plus, minus = (both(jax.tree.map(lambda a, b, e=e: a + e * b, x, v), v, w, m, d)[0] for e in (eps, -eps))
        np.testing.assert_allclose((plus - minus) / (2 * eps), dy, atol=1e-6 * max(1, abs(dy).max()))


def test_gradients_are_finite_at_rest():
    mj_model, m, size, both = setup()
    d = to_data(m, mujoco.MjData(mj_model))
    x = point(m, d)
    found = both(x, jax.tree.map(jnp.ones_like, x), jnp.ones(size), m, d)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(found))


def test_the_factor_of_m_has_the_derivative_of_differences():
    m = jaxsim.load_model(str(MODELS / "double_pendulum.xml"))
    d = jaxsim.make_data(m)

    def factors(scale):
        stages = (jaxsim.kinematics, jaxsim.com_pos, jaxsim.crb, jaxsim.factor_m)
        changed = m.replace(body_mass=m.body_mass * scale)
        out = functools.reduce(lambda d, stage: stage(changed, d), stages, d)
        return jnp.concatenate([out.qLD, out.qLDiagInv])

    both = jax.jit(lambda x: jax.jvp(factors, (x,), (1.0,)))
    h, slope = 1e-5, both(1.0)[1]
    np.testing.assert_allclose(slope, (both(1 + h)[0] - both(1 - h)[0]) / (2 * h), rtol=1e-7)
    assert np.abs(slope).max() > 0.1
