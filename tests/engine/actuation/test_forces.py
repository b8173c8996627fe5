"""Actuators that are DC motors in part, and laws that the user hands in, against the oracle."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.types import ObjType, Stage
from validation.stages import assert_fields, exact, load, states, to_data

STEP = jax.jit(jaxsim.step)

# a DC motor by one or two of dynamics, gain and bias, with and without states, controllers, cogging and friction
MIXED = """
<mujoco><option timestep="0.005" integrator="implicitfast"/>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".1"/>
  <geom type="capsule" size=".05 .2" pos="0 0 -.2"/>
  <body pos="0 0 -.4"><joint name="b" axis="0 1 0" damping=".1"/><geom size=".1" pos=".05 0 -.1"/></body></body>
</worldbody>
<actuator>
  <general joint="a" dynprm="0" gaintype="dcmotor" gainprm="2 .5" biastype="affine" biasprm=".1 -.2 -.3"/>
  <general joint="a" dyntype="filter" dynprm=".05" gaintype="dcmotor" gainprm="2 .5" biastype="none"/>
  <general joint="b" dynprm="0" gaintype="affine" gainprm="1 .2 .3" biastype="dcmotor" biasprm=".1 3 .2"/>
  <general joint="b" gaintype="fixed" gainprm="1.5 .4" biastype="dcmotor" biasprm=".1 2 0"/>
  <general joint="a" dyntype="dcmotor" actearly="true"
    dynprm=".02 30" actdim="1" gaintype="fixed" gainprm="1 .3" biastype="none"/>
  <general joint="b" dyntype="dcmotor" actearly="true"
    dynprm="0 0 2 3 25 4 .1 20" actdim="3" gaintype="dcmotor" gainprm="2 .5 .004 25"
    biastype="affine" biasprm=".1 -.2 -.3"/>
  <general joint="b" dyntype="dcmotor" actearly="true"
    dynprm="0 0 0 0 0 4 .1 20" actdim="2" gaintype="affine" gainprm="2 .5 .1"
    biastype="dcmotor" biasprm=".1 2 .3 .2 .3 .05"/>
  <general joint="a" dynprm="0" gaintype="dcmotor" gainprm="2 .5 0 0 3 0 .2 5 1" biastype="dcmotor"/>
  <general joint="a" dyntype="dcmotor" actearly="true"
    dynprm=".02 0 0 0 0 0 0 0 .5" actdim="2" gaintype="dcmotor"
    gainprm="2 .5 0 0 3 .7 .2 5 2" biastype="dcmotor"/>
</actuator></mujoco>
"""
FIELDS = ["act_dot", "actuator_force", "qfrc_actuator", "qacc", "act", "qvel", "qpos"]


def test_partial_dc_motors_equal_the_oracles():
    mj_model = exact(load(MIXED))
    m = jaxsim.from_mujoco(mj_model)
    for mj_data in states(mj_model, 3):
        d = STEP(m, to_data(m, mj_data))
        mujoco.mj_step(mj_model, mj_data)
        assert_fields(FIELDS, mj_model, mj_data, d, 1e-9)


LAWS = """
<mujoco><option timestep="0.005"/>
<worldbody><geom name="floor" type="plane" size="3 3 1"/>
  <body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom type="capsule" size=".05 .2" pos="0 0 -.2" contype="0"/>
  <body pos="0 0 -.4"><joint name="b" axis="0 1 0"/><geom size=".1" pos=".05 0 -.1" contype="0"/></body></body>
  <body pos="1 0 .09"><freejoint/><geom name="one" size=".1"/></body>
  <body pos="2 0 .09"><freejoint/><geom name="two" size=".1"/></body></worldbody>
<actuator>
  <general joint="a" dyntype="user" gaintype="user" biastype="user" dynprm="2 3" gainprm="1.5" biasprm=".3"/>
  <general joint="b" dyntype="user" actdim="2" gaintype="fixed" gainprm="2" biastype="none" dynprm="1 4"/>
  <general joint="b" dyntype="none" gaintype="user" biastype="user" gainprm=".5" biasprm="-.4"/>
  <motor joint="a"/>
</actuator>
<sensor><user dim="2" needstage="pos"/><user dim="1" needstage="acc" cutoff=".2"/><jointpos joint="a"/></sensor>
</mujoco>
"""


def act_dyn(m, d, ids):
    act = d.act
    return jnp.stack(
        [m.actuator_dynprm[0, 0] * (d.ctrl[0] - act[0]), act[2], -m.actuator_dynprm[1, 1] * act[1] + d.ctrl[1]]
    )


def act_gain(m, d, ids):
    return m.actuator_gainprm[ids, 0] * (1 + d.actuator_length[ids] ** 2)


def act_bias(m, d, ids):
    return m.actuator_biasprm[ids, 0] * d.actuator_velocity[ids]


def passive(m, d):
    return -0.2 * d.qvel


def control(m, d):
    return d.replace(ctrl=d.ctrl.at[3].set(0.3 * d.qpos[0]))


def sensor(m, d, stage, ids):
    return d.xpos[2, :2] if stage == Stage.POS else d.qacc[:1] + d.sensordata[3]


def contact_filter(m, d, geom1, geom2):
    return geom2 == m.name2id("geom", "one")


@functools.cache
def with_laws():
    mj_model = exact(load(LAWS))
    laws = jaxsim.Callbacks(act_dyn, act_gain, act_bias, passive, control, sensor, contact_filter)
    m = jaxsim.from_mujoco(mj_model)
    return mj_model, m, m.replace(callbacks=laws)


def oracle_callbacks():
    def dyn(model, data, i):
        if i == 0:
            return model.actuator_dynprm[0, 0] * (data.ctrl[0] - data.act[0])
        data.act_dot[1] = data.act[2]
        data.act_dot[2] = -model.actuator_dynprm[1, 1] * data.act[1] + data.ctrl[1]
        return 0.0

    def gain(model, data, i):
        return model.actuator_gainprm[i, 0] * (1 + data.actuator_length[i] ** 2)

    def bias(model, data, i):
        return model.actuator_biasprm[i, 0] * data.actuator_velocity[i]

    def force(model, data):
        data.qfrc_passive[:] -= 0.2 * data.qvel

    def set_ctrl(model, data):
        data.ctrl[3] = 0.3 * data.qpos[0]

    def sense(model, data, stage):
        if stage == mujoco.mjtStage.mjSTAGE_POS:
            data.sensordata[:2] = data.xpos[2, :2]
        if stage == mujoco.mjtStage.mjSTAGE_ACC:
            data.sensordata[2] = data.qacc[0] + data.sensordata[3]

    one = 3

    def drop(model, data, geom1, geom2):
        masks = model.geom_contype[geom1] & model.geom_conaffinity[geom2]
        masks |= model.geom_contype[geom2] & model.geom_conaffinity[geom1]
        return int(one in (geom1, geom2) or not masks)

    return {
        "act_dyn": dyn,
        "act_gain": gain,
        "act_bias": bias,
        "passive": force,
        "control": set_ctrl,
        "sensor": sense,
        "contactfilter": drop,
    }


@pytest.fixture
def in_oracle():
    with_laws()  # compiling a model calls what is set
    laws = oracle_callbacks()
    for name, law in laws.items():
        getattr(mujoco, f"set_mjcb_{name}")(law)
    yield
    for name in laws:
        getattr(mujoco, f"set_mjcb_{name}")(None)


def test_laws_of_the_user_equal_the_oracles_callbacks(in_oracle):
    mj_model, _, m = with_laws()
    assert mujoco.mj_name2id(mj_model, ObjType.GEOM, "one") == 3
    for mj_data in states(mj_model, 2, skip=3):
        d = STEP(m, to_data(m, mj_data))
        mujoco.mj_step(mj_model, mj_data)
        assert mj_data.ncon == 1
        names = ["ncon", "qfrc_passive", "ctrl", "sensordata", *FIELDS]
        assert_fields(names, mj_model, mj_data, d, 1e-9)


def test_without_laws_user_gains_are_one_and_the_rest_zero():
    mj_model, m, _ = with_laws()
    mj_data = states(mj_model, 1, skip=3)[0]
    d = STEP(m, to_data(m, mj_data))
    mujoco.mj_step(mj_model, mj_data)
    assert_fields(["ncon", "sensordata", *FIELDS], mj_model, mj_data, d, 1e-9)


def test_gradients_pass_through_the_laws():
    _, _, m = with_laws()
    d = jaxsim.make_data(m).replace(act=jnp.array([0.2, 0.1, -0.3]), ctrl=jnp.array([1.0, 0.5, 0.2, 0.0]))

    def f(prm):
        new = jaxsim.step(m.replace(actuator_dynprm=prm), d)
        return new.act.sum()

    grad = jax.jit(jax.grad(f))(m.actuator_dynprm)
    np.testing.assert_allclose(grad[0, 0], 0.005 * 0.8, rtol=1e-9)
    np.testing.assert_allclose(grad[1, 1], 0.005 * -0.1, rtol=1e-9)


def test_laws_are_static_and_compared_by_identity():
    _, plain, m = with_laws()
    again = plain.replace(callbacks=m.callbacks)
    assert again.structure == m.structure and hash(again.structure) == hash(m.structure)
    assert plain.structure != m.structure
    assert plain.replace(callbacks=jaxsim.Callbacks(passive=lambda m, d: d.qvel)).structure != m.structure


def test_a_law_of_the_wrong_size_is_named():
    _, plain, _ = with_laws()
    m = plain.replace(callbacks=jaxsim.Callbacks(passive=lambda m, d: d.qvel[:2]))
    with pytest.raises(ValueError, match="callback passive gave 2 numbers"):
        jax.eval_shape(jaxsim.step, m, jaxsim.make_data(m))
