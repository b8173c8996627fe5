"""The first-party plugins that act on dynamics: elastic cables and PID actuators, against the oracle."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.actuation.pid import activation_rates
from jaxsim.engine.dynamics.cable import cables
from validation.models.features import CABLES, PIDS
from validation.stages import assert_fields, exact, load, states, to_data

STEP = jax.jit(jaxsim.step)


def test_cables_equal_the_oracles():
    mj_model = exact(load(CABLES))
    m = jaxsim.from_mujoco(mj_model)
    for mj_data in states(mj_model, 2, noise=2.0):
        d = STEP(m, to_data(m, mj_data))
        mujoco.mj_step(mj_model, mj_data)
        assert np.abs(mj_data.qfrc_passive).max() > 0.03
        assert_fields(["qfrc_passive"], mj_model, mj_data, d, 1e-10)
        assert_fields(["qacc", "qvel", "qpos"], mj_model, mj_data, d, 1e-8)


def test_cables_are_read_from_xml():
    ours, theirs = cables(jaxsim.load_model(CABLES)), cables(jaxsim.from_mujoco(load(CABLES)))
    for name, a, b in zip(ours._fields, ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert len(ours.body) == 4 + 3 + 2 and len(ours.felt) == 12


@pytest.mark.slow  # compiles for more than 15 s
def test_cables_are_differentiable_straight_and_bent():
    m = jaxsim.from_mujoco(load(CABLES))
    d = jaxsim.make_data(m)

    def f(qvel, size):
        return jaxsim.step(m.replace(geom_size=size), d.replace(qvel=qvel)).qvel.sum()

    grads = jax.jit(jax.grad(f, argnums=(0, 1)))(jnp.zeros(m.nv), m.geom_size)
    assert all(np.isfinite(g).all() and np.abs(g).max() > 0 for g in grads)


def test_pid_actuators_equal_the_oracles_along_a_run():
    mj_model = exact(load(PIDS))
    m = jaxsim.from_mujoco(mj_model)
    mj_data, d = mujoco.MjData(mj_model), jaxsim.make_data(m)
    rng = np.random.default_rng(0)
    for _ in range(15):
        ctrl = rng.standard_normal(m.nu)
        mj_data.ctrl[:] = ctrl
        mujoco.mj_step(mj_model, mj_data)
        d = STEP(m, d.replace(ctrl=ctrl))
        assert_fields(["actuator_force", "act_dot", "act", "qacc", "qpos"], mj_model, mj_data, d, 1e-9)


def test_pid_rates_have_the_derivative_by_the_time_step_of_differences():
    """A controller without a bound on its slew holds an infinite one, which times zero is not a number."""
    m = jaxsim.load_model(PIDS)
    d = jaxsim.make_data(m).replace(time=1.0, ctrl=np.linspace(-0.6, 0.6, m.nu), act=np.linspace(-0.1, 0.2, m.na))

    @jax.jit
    def change(h):
        rates = activation_rates(m.replace(opt=m.opt.replace(timestep=h)), d)
        return sum(jnp.sum(value * h) for _, value in rates)

    h = 0.01
    slope = (change(h + 1e-5) - change(h - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(change)(h), slope, rtol=1e-8)
    assert abs(slope) > 0.1


def test_a_pid_without_room_for_its_state_is_an_error():
    mj_model = load(PIDS)
    m = jaxsim.from_mujoco(mj_model)
    number = m.actuator_actnum.copy()
    number[1] = 0
    with pytest.raises(jaxsim.ModelError, match="actuator 1 needs actdim 1"):
        jax.eval_shape(jaxsim.step, m.replace(actuator_actnum=number), jaxsim.make_data(m))
