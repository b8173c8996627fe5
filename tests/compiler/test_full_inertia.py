"""Moving the inertial frame of a body that compiles to a diagonal M: steps against MuJoCo, and derivatives."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim import identify
from validation.stages import exact

XML = """<mujoco><option integrator="{integrator}" timestep="0.005"/><worldbody><body pos="0 0 1"><freejoint/>
<inertial pos="{pos}" quat="{quat}" mass="2" diaginertia=".02 .03 .04"/><geom size=".1"/></body>
<body pos="1 0 1"><joint type="slide"/><geom size=".1"/></body></worldbody></mujoco>"""
POS, QUAT = np.array([0.02, -0.03, 0.05]), np.array([0.9, 0.1, -0.3, 0.2]) / np.sqrt(0.95)
VELOCITY = np.array([0.3, 0.1, -0.2, 2.0, -3.0, 1.0, 0.5])


def text(pos=(0, 0, 0), quat=(1, 0, 0, 0), integrator="Euler"):
    words = {"pos": " ".join(map(repr, map(float, pos))), "quat": " ".join(map(repr, map(float, quat)))}
    return XML.format(integrator=integrator, **words)


@pytest.fixture(scope="module")
def model():
    return jaxsim.with_full_inertia(jaxsim.load_model(text()))


def test_a_moved_inertial_frame_equals_a_model_that_mujoco_compiles_with_it(model):
    assert jaxsim.load_model(text()).nC < model.nC
    moved = model.replace(body_ipos=model.body_ipos.at[1].set(POS), body_iquat=model.body_iquat.at[1].set(QUAT))
    mj_model = exact(mujoco.MjModel.from_xml_string(text(POS, QUAT)))
    data = mujoco.MjData(mj_model)
    data.qvel[:] = VELOCITY
    mujoco.mj_step(mj_model, data)
    d = jax.jit(jaxsim.step)(moved, jaxsim.make_data(moved).replace(qvel=VELOCITY))
    np.testing.assert_allclose(d.qacc, data.qacc, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(d.qvel, data.qvel, rtol=1e-9, atol=1e-9)


def test_the_step_stays_the_same(model):
    plain = jaxsim.load_model(text())
    step = jax.jit(jaxsim.step)
    a, b = (step(m, jaxsim.make_data(m).replace(qvel=VELOCITY)).qvel for m in (plain, model))
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_torque_of_an_eccentric_force_has_a_derivative_where_the_offset_is_zero():
    """Under implicitfast free bodies have a rotation update of their own, with the offset as a lever arm."""
    m = jaxsim.with_full_inertia(jaxsim.load_model(text(integrator="implicitfast")))
    d = jaxsim.make_data(m).replace(qvel=VELOCITY, qfrc_applied=np.array([1.0, 2, -3, 0.1, 0.2, 0.3, 0]))
    spin = jax.jit(lambda x: jaxsim.step(m.replace(body_ipos=m.body_ipos.at[1].set(x)), d).qvel[3:6])
    zero = jnp.zeros(3)
    for axis in np.eye(3):
        derivative = jax.jvp(spin, (zero,), (jnp.asarray(axis),))[1]
        h = 1e-5
        np.testing.assert_allclose(derivative, (spin(h * axis) - spin(-h * axis)) / (2 * h), atol=1e-7)


def test_identifying_an_inertial_frame_needs_the_entries_of_m():
    m = jaxsim.load_model(text().replace("<body pos", '<body name="box" pos', 1))
    with pytest.raises(ValueError, match="with_full_inertia"):
        identify.inertia(m, "box")
    with pytest.raises(ValueError, match="with_full_inertia"):
        identify.parameter(m, "body_ipos", "box")
    assert len(identify.inertia(jaxsim.with_full_inertia(m), "box").labels) == 10
