"""A step by RK4: four evaluations in one loop, of which the first has sensors and is checked."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim

XML = """<mujoco><option integrator="RK4"/><worldbody><geom type="plane" size="3 3 1"/><body pos="0 0 .3"><freejoint/>
<geom type="box" size=".1 .1 .1"/><site name="s"/><body pos=".2 0 0"><joint name="j" axis="0 1 0"/><geom size=".05"/>
</body></body></worldbody><actuator><motor joint="j"/></actuator><sensor><accelerometer site="s"/><gyro site="s"/>
<jointpos joint="j"/></sensor></mujoco>"""


@functools.cache
def scene():
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m).replace(qvel=np.linspace(-1, 1, m.nv), ctrl=[0.3])
    return m, d, jaxsim.jit(jaxsim.step)


def test_sensors_are_those_of_the_state_before_the_step():
    m, d, step = scene()
    np.testing.assert_allclose(step(m, d).sensordata, jaxsim.forward(m, d).sensordata, atol=1e-6)


def test_a_step_is_forward_and_the_integrator_one_after_the_other():
    m, d, step = scene()
    new, parts = step(m, d), jaxsim.rungekutta4(m, jaxsim.forward(m, d))
    for name in ("time", "qpos", "qvel", "qacc_warmstart", "qacc", "xpos"):
        np.testing.assert_allclose(getattr(new, name), getattr(parts, name), rtol=1e-5, atol=1e-6, err_msg=name)


def test_derived_fields_before_the_step_do_not_matter():
    m, d, step = scene()
    unknown = d.replace(qacc=d.qacc * np.nan, act_dot=d.act_dot * np.nan, xpos=d.xpos * np.nan)
    np.testing.assert_array_equal(step(m, unknown).qpos, step(m, d).qpos)
    slope = jax.grad(lambda v: jnp.sum(jaxsim.step(m, unknown.replace(qvel=v)).qpos))(d.qvel)
    assert np.isfinite(slope).all() and np.any(slope)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_world_whose_acceleration_diverges_starts_anew_and_does_not_advance():
    m, d, step = scene()
    new = step(m, d.replace(qfrc_applied=np.full(m.nv, 1e30)))
    np.testing.assert_array_equal(new.qpos, m.qpos0)
    assert new.time == 0 and not new.qvel.any() and not new.qacc.any()
    assert new.warning.number.sum() == 1
    assert np.isfinite(step(m, new).qpos).all() and step(m, new).time > 0


def test_a_control_callback_sees_the_sensors_of_the_state():
    """MuJoCo calls it after the sensors of position and velocity."""
    m, d, step = scene()
    m = m.replace(callbacks=jaxsim.Callbacks(control=lambda m, d: d.replace(ctrl=d.sensordata[-1:] + 1)))
    state = d.replace(qpos=d.qpos.at[-1].set(0.5))  # of the hinge, which the last sensor measures
    parts = jaxsim.rungekutta4(m, jaxsim.forward(m, state))
    np.testing.assert_allclose(step(m, state).qvel, parts.qvel, rtol=1e-5, atol=1e-6)
