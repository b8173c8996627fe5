"""Transition derivatives against the finite differences of the reference, and the logarithm of displacements."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.kinematics.positions import integrate_pos
from tests.paths import HUMANOID
from validation.stages import exact, load, to_data

SCENE = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="3 3 1"/>
<body pos="0 0 .095"><freejoint/><geom size=".1" mass="1"/><site name="s"/>
  <body pos="0 0 .2"><joint name="b" type="ball" damping=".1"/><geom type="capsule" size=".03" fromto="0 0 0 0 .1 .2"/>
    <body pos="0 .1 .2"><joint name="h" axis="1 0 0" stiffness="2"/><geom size=".05"/></body></body></body>
</worldbody>
<actuator><general name="h" joint="h" dyntype="filter" dynprm=".1" gainprm="3"/>
<motor joint="b" gear="1 2 3"/></actuator>
<sensor><accelerometer site="s"/><gyro site="s"/><actuatorfrc actuator="h"/></sensor></mujoco>"""
derivatives = jax.jit(jaxsim.transition_derivatives, static_argnames="mode")


def moving(mj_model, steps, seed=0):
    data = mujoco.MjData(mj_model)
    if mj_model.nkey:
        mujoco.mj_resetDataKeyframe(mj_model, data, 0)
    rng = np.random.default_rng(seed)
    data.qvel[:] = 0.3 * rng.standard_normal(mj_model.nv)
    for _ in range(steps):
        data.ctrl[:] = rng.uniform(-0.5, 0.5, mj_model.nu)
        mujoco.mj_step(mj_model, data)
    mujoco.mj_forward(mj_model, data)
    return data


def differences(mj_model, mj_data, eps):
    """A, B, C, D of the reference. Its centred D has the wrong sign (3.8.1), so D is one-sided."""
    n, nu, ns = 2 * mj_model.nv + mj_model.na, mj_model.nu, mj_model.nsensordata
    out = [np.zeros(s) for s in ((n, n), (n, nu), (ns, n), (ns, nu))]
    mujoco.mjd_transitionFD(mj_model, mj_data, eps, True, *out)
    mujoco.mjd_transitionFD(mj_model, mj_data, eps, False, None, None, None, out[3])
    return out


def errors(mj_model, mj_data):
    """Largest relative error of A, B, C, D; of two step sizes the better one, entry by entry."""
    m = jaxsim.from_mujoco(mj_model)
    ours = derivatives(m, to_data(m, mj_data))
    theirs = [differences(mj_model, mj_data, eps) for eps in (1e-5, 1e-6)]
    out = []
    for k, mine in enumerate(ours):
        gap = np.minimum(*(np.abs(np.asarray(mine) - t[k]) for t in theirs))
        out.append((gap / np.maximum(1, np.abs(theirs[0][k]).max())).max(initial=0))
    return out


@pytest.mark.parametrize("steps", [3, 40])
def test_derivatives_equal_those_of_the_reference(steps):
    mj_model = exact(load(SCENE))
    data = moving(mj_model, steps)
    assert data.ncon
    assert max(errors(mj_model, data)) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("steps", [5, 60])
def test_derivatives_of_the_humanoid_equal_those_of_the_reference(steps):
    mj_model = exact(mujoco.MjModel.from_xml_path(str(HUMANOID)))
    data = moving(mj_model, steps)
    assert data.ncon
    assert max(errors(mj_model, data)[:2]) < 1e-6


@pytest.mark.slow
def test_both_modes_agree():
    mj_model = exact(load(SCENE))
    m = jaxsim.from_mujoco(mj_model)
    d = to_data(m, moving(mj_model, 10))
    for a, b in zip(derivatives(m, d), derivatives(m, d, mode="reverse"), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9 * max(1, np.abs(a).max()))


def test_displacement_is_undone_by_its_logarithm():
    m = jaxsim.load_model(SCENE)
    rng = np.random.default_rng(0)
    qpos = integrate_pos(m, m.qpos0, jnp.asarray(rng.standard_normal(m.nv)), 1.0)
    step = jnp.asarray(rng.standard_normal(m.nv))
    back = jaxsim.differentiate_pos(m, qpos, integrate_pos(m, qpos, step, 0.5), 0.5)
    np.testing.assert_allclose(back, step, atol=1e-12)
    want = np.zeros(m.nv)
    mj_model = load(SCENE)
    mujoco.mj_differentiatePos(mj_model, want, 0.5, np.asarray(m.qpos0), np.asarray(qpos))
    np.testing.assert_allclose(jaxsim.differentiate_pos(m, m.qpos0, qpos, 0.5), want, atol=1e-12)
