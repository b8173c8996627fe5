"""Models in which nothing has a degree of freedom step as in MuJoCo, and have gradients."""

import chex
import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from validation.stages import assert_fields

SENSORS = "<clock/><e_potential/>"
SITES = '<site name="s"/><site name="t" pos="1 0 0"/>'
MODELS = {
    "nothing": "<worldbody/>",
    "a fixed geom": '<worldbody><geom size=".1"/></worldbody>',
    "a mocap body": """<worldbody><geom type="plane" size="1 1 1"/>
      <body name="b" mocap="true" pos=".1 .2 .3" quat="1 2 0 0">
      <geom type="capsule" size=".1 .2" pos=".1 0 0" euler="10 20 30"/></body></worldbody>""",
    "tendons and their actuators": f"""<worldbody>{SITES}<geom name="g" size=".1" pos=".5 0 0"/></worldbody><tendon>
      <spatial name="T" frictionloss="1" limited="true" range="0 .5" stiffness="9" damping="1" armature=".1">
        <site site="s"/><site site="t"/></spatial>
      <spatial name="U"><site site="s"/><geom geom="g"/><site site="t"/><pulley divisor="2"/>
        <site site="t"/><site site="s"/></spatial></tendon>
      <equality><tendon tendon1="T"/><tendon tendon1="T" tendon2="U"/></equality>
      <actuator><motor tendon="T"/><position site="s" refsite="t" kp="1" kv="1"/></actuator>""",
    "equalities of fixed bodies": f"""<worldbody>{SITES}<body name="c"/><body name="e" pos="1 0 0"/></worldbody>
      <equality><connect body1="c" body2="e" anchor="0 0 0"/><weld body1="c" body2="e"/>
      <weld site1="s" site2="t"/></equality>""",
    "an explicit pair": """<worldbody><geom name="g" size=".1"/><body pos=".1 0 0"><geom name="h" size=".1"/></body>
      </worldbody><contact><pair geom1="g" geom2="h"/></contact>""",
    "a rigid flex on a box": """<worldbody><geom type="box" size=".1 .1 .1"/><body name="r"><flexcomp name="f" dim="2"
      type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01" rigid="true"/></body></worldbody>""",
}
FIELDS = ("time", "xpos", "xquat", "xipos", "geom_xpos", "geom_xmat", "subtree_com", "ncon", "nefc", "sensordata")
FIELDS += ("ten_length", "ten_velocity", "actuator_length", "actuator_force")


def xml(name):
    sensors = SENSORS + ('<framepos objtype="body" objname="b"/>' if "mocap" in name else "")
    flag = '<option><flag energy="enable"/></option>'
    return f"<mujoco>{flag}{MODELS[name]}<sensor>{sensors}</sensor></mujoco>"


@pytest.mark.parametrize("name", MODELS)
def test_model_without_dofs_steps_as_in_mujoco(name):
    model = mujoco.MjModel.from_xml_string(xml(name))
    data = mujoco.MjData(model)
    if model.nmocap:
        data.mocap_pos[:], data.mocap_quat[:] = (0.4, -0.1, 0.2), np.array([1, 0, 2, 1]) / np.sqrt(6)
    m = jaxsim.load_model(xml(name))
    d = jaxsim.make_data(m).replace(mocap_pos=data.mocap_pos.copy(), mocap_quat=data.mocap_quat.copy())
    step = jax.jit(jaxsim.step)
    for _ in range(2):
        d = step(m, d)
        mujoco.mj_step(model, data)
        assert_fields(FIELDS, model, data, d)
    assert float(d.time) == pytest.approx(0.004)
    chex.assert_tree_all_finite(d.replace(contact=None))


def test_gradient_of_a_mocap_body_is_that_of_its_pose():
    m = jaxsim.load_model(xml("a mocap body"))
    d = jaxsim.make_data(m)
    gradient = jax.jit(jax.grad(lambda pos: jaxsim.step(m, d.replace(mocap_pos=pos)).sensordata[-3:] @ m.opt.gravity))
    np.testing.assert_allclose(gradient(d.mocap_pos), [[0, 0, -9.81]], atol=1e-12)


@pytest.mark.parametrize("name", ["tendons and their actuators", "an explicit pair", "a rigid flex on a box"])
def test_gradient_by_the_model_is_finite(name):
    m = jaxsim.load_model(xml(name))
    d = jaxsim.make_data(m)
    gradient = jax.jit(jax.grad(lambda m: jaxsim.step(m, d).xpos.sum() + jaxsim.step(m, d).ten_length.sum()))(m)
    chex.assert_tree_all_finite(gradient)
