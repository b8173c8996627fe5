"""Implicit integrators where an actuator pushes along its own motion: the matrix of the step is indefinite."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim

PUSHED = """<mujoco><option timestep=".01" integrator="implicitfast"><flag constraint="disable"/></option><worldbody>
  <body><joint name="a" type="ball" armature=".01"/><geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
    <body pos=".3 .1 0"><joint name="b" axis="0 1 .2"/><geom size=".1" pos=".1 0 .1"/></body></body>
  <body pos="1 0 0"><joint name="c"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
  <actuator><general joint="b" gaintype="affine" gainprm="1 0 60"/>
    <general joint="c" gaintype="affine" gainprm="1 0 60"/></actuator></mujoco>"""
# The factor exists in the first world only. Eight worlds are one native program, in which they share a vector.
CTRL = 2 * [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (2.0, -3.0)]


@pytest.fixture(scope="module")
def pushed():
    mj = mujoco.MjModel.from_xml_string(PUSHED)
    m = jaxsim.load_model(PUSHED)
    d = jaxsim.make_data(m)
    qvel = np.array([0.3, -0.2, 0.5, 1.0, -0.7])
    return mj, qvel, lambda ctrl: jaxsim.step(m, d.replace(ctrl=ctrl, qvel=qvel)).qvel


def test_a_step_with_an_indefinite_matrix_equals_the_reference(pushed):
    mj, qvel, step = pushed
    ours, alone = np.asarray(jax.jit(jax.vmap(step))(np.array(CTRL))), jax.jit(step)
    for ctrl, mine in zip(CTRL, ours, strict=True):
        data = mujoco.MjData(mj)
        data.ctrl[:], data.qvel[:] = ctrl, qvel
        mujoco.mj_step(mj, data)
        np.testing.assert_allclose(mine, data.qvel, rtol=0, atol=1e-11 * np.abs(data.qvel).max())
        np.testing.assert_allclose(alone(np.array(ctrl)), mine, rtol=0, atol=1e-11 * np.abs(data.qvel).max())
        assert np.any(data.qHDiagInv < 0) == (ctrl != CTRL[0])


def test_its_derivative_equals_central_differences(pushed):
    *_, alone = pushed
    step = jax.jit(jax.vmap(alone))
    ctrl, h = np.array(CTRL), 1e-6
    way = np.array([[1.0, -0.5]] * len(CTRL))
    slope = jax.jvp(step, (ctrl,), (way,))[1]
    central = (step(ctrl + h * way) - step(ctrl - h * way)) / (2 * h)
    np.testing.assert_allclose(slope, central, rtol=1e-6, atol=1e-6)
    columns = jax.jit(jax.vmap(jax.jacfwd(alone)))(ctrl)  # by a program of directions
    np.testing.assert_allclose(np.einsum("wij,wj->wi", columns, way), slope, rtol=1e-9, atol=1e-12)
    back = jax.grad(lambda c: (step(c) ** 2).sum())(ctrl)
    np.testing.assert_allclose((back * way).sum(), 2 * (step(ctrl) * slope).sum(), rtol=1e-9)
