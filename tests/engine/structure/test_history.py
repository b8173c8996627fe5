"""Delays and histories of controls and sensors: the whole run against the oracle, step by step."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.structure.history import Buffers, insert, lookup
from validation.models.features import DELAYS

STEP = jax.jit(jaxsim.step)


@functools.cache
def models(integrator):
    mj_model = mujoco.MjModel.from_xml_string(DELAYS.format(integrator=integrator))
    return mj_model, jaxsim.from_mujoco(mj_model)


@pytest.mark.parametrize("integrator", ["Euler", pytest.param("RK4", marks=pytest.mark.slow)])
def test_runs_equal_the_oracles(integrator):
    mj_model, m = models(integrator)
    mj_data, d = mujoco.MjData(mj_model), jaxsim.make_data(m)
    np.testing.assert_allclose(d.history, mj_data.history, atol=1e-15)
    rng = np.random.default_rng(0)
    for _ in range(40):
        ctrl = rng.standard_normal(m.nu)
        mj_data.ctrl[:] = ctrl
        mujoco.mj_step(mj_model, mj_data)
        d = STEP(m, d.replace(ctrl=ctrl))
        for name in ("history", "sensordata", "actuator_force", "act", "qpos", "qvel"):
            np.testing.assert_allclose(getattr(d, name), getattr(mj_data, name), atol=1e-9, err_msg=name)


def test_reading_and_setting_histories():
    mj_model, m = models("Euler")
    mj_data, d = mujoco.MjData(mj_model), jaxsim.make_data(m)
    times, values = np.array([-0.2, -0.1, -0.05, -0.03, -0.02, -0.01]), np.arange(6.0) ** 2
    for name, data in (("hold", values), ("line", values[::-1])):
        i = m.name2id("actuator", name)
        when = times if name == "hold" else None
        mujoco.mj_initCtrlHistory(mj_model, mj_data, i, when, data)
        d = jaxsim.init_ctrl_history(m, d, i, when, data)
    sensor = np.arange(6.0).reshape(6, 1)
    mujoco.mj_initSensorHistory(mj_model, mj_data, 1, None, sensor, 0.3)
    d = jaxsim.init_sensor_history(m, d, 1, None, sensor, 0.3)
    np.testing.assert_allclose(d.history, mj_data.history, atol=1e-15)
    for interp in (-1, 0, 1, 2):
        for time in (-1.0, -0.07, -0.0213, 0.0, 0.5):
            for i in range(m.nu):
                want = mujoco.mj_readCtrl(mj_model, mj_data, i, time, interp)
                np.testing.assert_allclose(jaxsim.read_ctrl(m, d, i, time, interp), want, atol=1e-12)
            result = np.zeros(1)
            want = mujoco.mj_readSensor(mj_model, mj_data, 1, time, result, interp)
            np.testing.assert_allclose(jaxsim.read_sensor(m, d, 1, time, interp), want, atol=1e-12)


def test_what_has_no_history_is_refused_by_name():
    _, m = models("Euler")
    d = jaxsim.make_data(m)
    with pytest.raises(ValueError, match="actuator 4 has no history"):
        jaxsim.init_ctrl_history(m, d, 4, None, None)
    with pytest.raises(ValueError, match="do not increase"):
        jaxsim.init_ctrl_history(m, d, 0, np.zeros(6), None)


def test_reset_and_keyframe_start_histories_anew():
    mj_model, m = models("Euler")
    mj_data = mujoco.MjData(mj_model)
    mujoco.mj_resetDataKeyframe(mj_model, mj_data, 0)
    d = jaxsim.make_data(m)
    moved = STEP(m, d.replace(ctrl=np.ones(m.nu)))
    np.testing.assert_allclose(jaxsim.reset_data(m, moved).history, d.history)
    np.testing.assert_allclose(jaxsim.make_data(m, keyframe="k").history, mj_data.history, atol=1e-15)


DRIVEN = """
<mujoco><option timestep="0.01"/><worldbody><body><joint name="a"/><geom size=".1" pos=".1 0 0"/></body></worldbody>
<actuator><motor joint="a" delay=".034" nsample="6" interp="cubic"/></actuator></mujoco>
"""


def test_gradients_reach_a_control_that_was_given_before():
    m = jaxsim.from_mujoco(mujoco.MjModel.from_xml_string(DRIVEN))
    start = jaxsim.make_data(m)

    def run(ctrl):
        def one(d, u):
            return jaxsim.step(m, d.replace(ctrl=u)), None

        return jax.lax.scan(one, start, ctrl)[0].qvel

    ctrl = jnp.sin(jnp.arange(8.0))[:, None]
    v = jnp.cos(jnp.arange(8.0))[:, None]
    value, forward = jax.jit(lambda c: jax.jvp(run, (c,), (v,)))(ctrl)
    reverse = jax.jit(jax.grad(lambda c: run(c).sum()))(ctrl)
    at = jax.jit(run)
    central = (at(ctrl + 1e-4 * v) - at(ctrl - 1e-4 * v)) / 2e-4
    np.testing.assert_allclose(forward, central, rtol=1e-6)
    np.testing.assert_allclose(jnp.vdot(reverse, v), forward.sum(), rtol=1e-9)
    assert np.abs(reverse[:4]).min() > 1e-4 and not np.asarray(reverse[6:]).any() and np.isfinite(value).all()


def test_single_precision_keeps_the_sample_of_the_exact_time():
    h = np.float32(0.002)
    b = Buffers(
        jnp.zeros(1, "float32"), jnp.array([9]), h * jnp.arange(-10, 0, dtype="float32")[None], jnp.zeros((1, 10, 1))
    )
    time = jnp.zeros((), "float32")

    def one(state, i):
        b, time = state
        return (insert(b, time, jnp.full((1, 1), i), jnp.ones(1, bool)), time + h), None

    (b, time), _ = jax.lax.scan(one, (b, time), jnp.arange(700.0))
    seen = lookup(b, time[None] - 5 * h, 0)
    assert float(seen[0, 0]) == 695.0
