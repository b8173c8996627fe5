"""`set_const`: derived constants under jit after masses and lengths changed, and gradients through them."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxsim import load_model, set_const
from validation.compare import assert_models_equal

XML = """
<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
  <body name="a" pos="0 0 1"><freejoint/><geom size=".1 .2" type="capsule"/><site name="s" pos=".1 0 0"/>
    <body name="b" pos=".3 0 0"><joint name="j" axis="0 1 0" armature=".1"/><geom size=".1" pos=".1 0 0"/></body></body>
  <body name="c" pos="1 0 0"><joint name="k" type="slide"/><geom size=".1"/><camera mode="trackcom" pos="0 0 1"/></body>
</worldbody>
<equality><connect body1="b" body2="c" anchor=".1 .2 .3"/></equality>
<actuator><motor joint="j" gear="3"/><position joint="k" kp="10" kv="1"/></actuator></mujoco>
"""
refreshed = jax.jit(set_const)


@pytest.fixture(scope="module")
def model():
    return load_model(XML)


def test_changed_model_equals_the_reference(model):
    ours = refreshed(model.replace(body_mass=model.body_mass * 2, body_pos=model.body_pos * 1.1))
    theirs = mujoco.MjModel.from_xml_string(XML)
    theirs.body_mass[:] *= 2
    theirs.body_pos[:] *= 1.1
    mujoco.mj_setConst(theirs, mujoco.MjData(theirs))
    assert_models_equal(ours, theirs)


def test_unchanged_model_stays(model):
    again = refreshed(model)
    for old, new in zip(jax.tree.leaves(model), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-9, atol=1e-12)


def test_gradient_equals_central_differences(model):
    def weight(scale):
        m = refreshed(model.replace(body_mass=model.body_mass * scale, geom_size=model.geom_size))
        return jnp.sum(m.dof_invweight0) + jnp.sum(m.body_invweight0) + jnp.sum(m.actuator_acc0) + m.stat.meaninertia

    h = 1e-5
    expected = (weight(1 + h) - weight(1 - h)) / (2 * h)
    np.testing.assert_allclose(jax.grad(weight)(1.0), expected, rtol=1e-7)


def test_centre_of_geoms_that_end_alike_moves_with_both_and_stays_where_they_grow():
    rails = '<geom type="box" size=".5 .1 .1" pos="0 {} 0"/>'
    m = load_model(f"<mujoco><worldbody>{rails.format(-1)}{rails.format(1)}</worldbody></mujoco>")

    def centre(x, radius):
        changed = m.replace(geom_pos=m.geom_pos.at[:, 0].set(x), geom_rbound=radius)
        return set_const(changed).stat.center[0]

    moved, grown = jax.jacrev(centre, (0, 1))(jnp.zeros(2), jnp.asarray(m.geom_rbound))
    np.testing.assert_allclose(moved, [0.5, 0.5])
    np.testing.assert_allclose(grown, 0, atol=1e-15)
