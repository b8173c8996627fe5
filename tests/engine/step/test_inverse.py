"""Inverse dynamics against the reference, and against forward dynamics."""

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from validation.models import dynamics as models
from validation.stages import assert_fields, exact, load, states, to_data

EULER, FAST, IMPLICIT = 0, 3, 2
MODEL = """
<mujoco><option timestep="0.01"/>
<worldbody><geom type="plane" size="3 3 .1"/>
<body pos="0 0 .25"><freejoint/><geom type="capsule" size=".1 .2" euler="80 0 0"/>
<body pos="0 .3 0"><joint name="h" axis="1 0 0" damping=".3" range="-10 10" frictionloss=".1"/><geom size=".06"/>
<site name="s"/></body></body></worldbody>
<actuator><velocity joint="h" kv="3"/></actuator>
<sensor><accelerometer site="s"/><force site="s"/></sensor></mujoco>
"""
INVDISCRETE = int(mujoco.mjtEnableBit.mjENBL_INVDISCRETE)
FWDINV = int(mujoco.mjtEnableBit.mjENBL_FWDINV)
FIELDS = ("qfrc_inverse", "qfrc_constraint", "sensordata", "qacc")


@pytest.mark.parametrize(("integrator", "flags"), [(EULER, 0), (EULER, INVDISCRETE), (FAST, INVDISCRETE)])
def test_inverse_equals_the_reference(integrator, flags):
    mj_model = exact(load(MODEL, integrator=integrator, enableflags=flags))
    m = jaxsim.from_mujoco(mj_model)
    run = jax.jit(jaxsim.inverse)
    for mj_data in states(mj_model, 2):
        mujoco.mj_forward(mj_model, mj_data)
        mj_data.qacc[:] += np.random.default_rng(0).standard_normal(m.nv)
        d = to_data(m, mj_data).replace(qacc=np.array(mj_data.qacc), actuator_force=np.array(mj_data.actuator_force))
        d = run(m, d)
        mujoco.mj_inverse(mj_model, mj_data)
        assert_fields(FIELDS, mj_model, mj_data, d, 1e-8)


def test_inverse_undoes_forward():
    mj_model = exact(load(models.FLUID))
    m = jaxsim.from_mujoco(mj_model)
    d = to_data(m, states(mj_model, 1)[0]).replace(xfrc_applied=np.zeros((m.nbody, 6)))
    d = jax.jit(lambda m, d: jaxsim.inverse(m, jaxsim.forward(m, d)))(m, d)
    np.testing.assert_allclose(d.qfrc_inverse, d.qfrc_applied + d.qfrc_actuator, atol=1e-8)


def test_the_flag_fwdinv_compares_both():
    """After a sweep of noslip, which changes the forces but not the accelerations."""
    mj_model = exact(load(MODEL, enableflags=FWDINV, noslip_iterations=1))
    m = jaxsim.from_mujoco(mj_model)
    mj_data = states(mj_model, 1, skip=15, noise=0.02)[0]
    d = jax.jit(jaxsim.step)(m, to_data(m, mj_data))
    assert d.nefc > 0
    back = jax.jit(jaxsim.inverse)(m, d.replace(qpos=mj_data.qpos, qvel=mj_data.qvel))
    want = np.linalg.norm(np.asarray(d.qfrc_constraint - back.qfrc_constraint))
    np.testing.assert_allclose(d.solver_fwdinv[0], want, atol=1e-9)
    mujoco.mj_step(mj_model, mj_data)
    np.testing.assert_allclose(d.solver_fwdinv, mj_data.solver_fwdinv, rtol=1e-6)
    assert want > 1
