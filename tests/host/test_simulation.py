"""Simulations with a state of their own, beside the functions that they stand for."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.native import compiler

XML = """
<mujoco model="pusher">
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="ball" pos="0 0 .15"><freejoint/><geom size=".1"/></body>
    <body name="arm" pos="1 0 .5">
      <joint name="hinge" axis="0 1 0" damping=".1"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
      <site name="tip" pos=".3 0 0"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge" ctrlrange="-1 1"/></actuator>
  <sensor><framepos name="tip" objtype="site" objname="tip"/></sensor>
  <keyframe><key name="high" qpos="0 0 1 1 0 0 0 .5"/></keyframe>
</mujoco>
"""
STEP = jax.jit(jaxsim.step)


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.fixture
def sim(m):
    return jaxsim.Simulation(m)


@pytest.fixture(scope="module")
def pair(m):
    """A batch, which tests reset."""
    return jaxsim.Simulation(m, nworld=3)


def stepped(m, controls, d=None):
    d = jaxsim.make_data(m) if d is None else d
    for u in controls:
        d = STEP(m, d.replace(ctrl=np.array([u])))
    return d


def test_steps_are_those_of_the_function(m, sim):
    for u in (0.1, 0.5, -0.3):
        sim.step([u])
    d = stepped(m, (0.1, 0.5, -0.3))
    for name in ("time", "qpos", "qvel", "ctrl", "qacc_warmstart"):
        np.testing.assert_allclose(getattr(sim, name), getattr(d, name), atol=1e-6, err_msg=name)


def test_controls_stay_where_none_are_given(m, sim):
    sim.step([0.5])
    sim.step()
    np.testing.assert_allclose(sim.qvel, stepped(m, (0.5, 0.5)).qvel, atol=1e-6)


def test_controls_may_be_written_over_after_the_call(m, sim):
    u = np.array([0.5], np.float32)
    sim.step(u)
    u[:] = -1
    sim.step()
    np.testing.assert_allclose(sim.qvel, stepped(m, (0.5, 0.5)).qvel, atol=1e-6)


def test_derived_fields_are_those_that_the_last_step_computed(m, sim):
    sim.step([0.2])
    sim.step([0.9])  # leaves derived fields out
    d = stepped(m, (0.2, 0.9))
    np.testing.assert_allclose(sim.sensordata, d.sensordata, atol=1e-6)
    sim.step([0.1])  # computes them at once
    d = stepped(m, (0.1,), d)
    np.testing.assert_allclose(sim.sensordata, d.sensordata, atol=1e-6)
    np.testing.assert_allclose(sim.contact.dist, d.contact.dist, atol=1e-6)


def test_many_steps_are_so_many_steps(m, sim):
    sim.step([0.4], n=3)
    d = stepped(m, (0.4,) * 3)
    np.testing.assert_allclose(sim.qpos, d.qpos, atol=1e-6)
    np.testing.assert_allclose(sim.xpos, d.xpos, atol=1e-6)
    sim.step(n=2)
    np.testing.assert_allclose(sim.qpos, stepped(m, (0.4,) * 5).qpos, atol=1e-6)
    with pytest.raises(ValueError, match="n is 0"):
        sim.step(n=0)


def test_data_is_that_of_the_function_field_by_field(m, sim):
    sim.step([0.4])
    d = stepped(m, (0.4,))
    assert jax.tree.structure(sim.data) == jax.tree.structure(d)
    for x, y in zip(jax.tree.leaves(sim.data), jax.tree.leaves(d), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, atol=1e-4)


def test_objects_are_found_by_name(sim):
    sim.step([0.4])
    np.testing.assert_array_equal(sim.body("ball").xpos, sim.xpos[1])


def test_reset_goes_to_the_keyframe_with_derived_fields_of_that_state(m, sim):
    sim.step([1.0])
    sim.reset("high")
    np.testing.assert_allclose(sim.qpos, m.keyframe("high").qpos)
    np.testing.assert_allclose(sim.xpos, jaxsim.forward(m, jaxsim.make_data(m, "high")).xpos, atol=1e-6)
    assert sim.time == 0


def test_set_changes_the_state_and_what_follows_from_it(m, sim):
    sim.step([0.3])
    qpos = np.array(sim.qpos)
    qpos[2] = 2
    sim.set(qpos=qpos, ctrl=[0.7])
    assert sim.qpos[2] == 2 and sim.ctrl == pytest.approx(0.7)
    assert sim.xpos[1, 2] == pytest.approx(2)
    with pytest.raises(TypeError, match="xpos follows from the state"):
        sim.set(xpos=sim.xpos)
    with pytest.raises(TypeError, match=r"no field 'qpso'; did you mean 'qpos'\?"):
        sim.set(qpso=qpos)
    with pytest.raises(ValueError, match=r"qpos has shape \(3,\), wanted \(8,\)"):
        sim.set(qpos=np.zeros(3))


def test_what_is_read_cannot_be_written_to_and_does_not_change(sim):
    before = sim.qpos
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 1
    kept = before.copy()
    sim.step([1.0], n=2)
    np.testing.assert_array_equal(before, kept)


def test_a_new_model_of_the_same_structure_is_used(m, sim):
    sim.model = m.replace(opt=m.opt.replace(gravity=[0, 0, 0]))
    sim.step([0.0])
    assert sim.qvel[2] == 0
    with pytest.raises(ValueError, match="another structure"):
        sim.model = jaxsim.load_model(XML, max_contacts=3)


def test_controls_of_wrong_shape_are_refused(sim):
    with pytest.raises(ValueError, match=r"ctrl has shape \(2,\), wanted \(1,\)"):
        sim.step([1, 2])


def test_a_misspelt_field_gets_the_nearest(sim):
    with pytest.raises(AttributeError, match="did you mean 'qpos'"):
        _ = sim.qposs


def test_copies_and_pickles_go_on_from_the_same_state(sim):
    sim.step([0.5])
    others = copy.deepcopy(sim), pickle.loads(pickle.dumps(sim))
    sim.step()
    for other in others:
        other.step()
        np.testing.assert_array_equal(other.qpos, sim.qpos)


def test_worlds_of_a_batch_have_controls_of_their_own(m, pair):
    pair.reset()
    controls = np.array([[0.0], [0.5], [-0.5]])
    pair.step(controls)
    for w, u in enumerate(controls):
        np.testing.assert_allclose(pair.qpos[w], stepped(m, u).qpos, atol=1e-6)
    assert pair.sensordata.shape == (3, 3)


def test_controls_of_one_world_are_those_of_all(pair):
    pair.reset()
    pair.step([0.5])
    assert np.ptp(pair.qvel, axis=0).max() == 0


def test_chosen_worlds_are_reset(pair):
    pair.reset()
    pair.step([0.5])
    pair.reset("high", worlds=[1])
    np.testing.assert_allclose(pair.time, [0.002, 0, 0.002])
    assert pair.qpos[1, 2] == 1 and pair.qpos[0, 2] < 1


def test_dropped_contacts_are_reported(m):
    with pytest.warns(jaxsim.CapacityWarning):
        little = jaxsim.load_model(XML, max_contacts=0)
        sim = jaxsim.Simulation(little)
        sim.set(qpos=np.array([0, 0, 0.09, 1, 0, 0, 0, 0]))
        from jaxsim.interface import overflow

        overflow.reported.clear()
        sim.step()
        _ = sim.data


def test_data_can_be_assigned(m, sim):
    d = jaxsim.make_data(m, "high").replace(qvel=jnp.ones(m.nv))
    sim.data = d
    np.testing.assert_array_equal(sim.qvel, np.ones(m.nv))


@pytest.mark.skipif(compiler.c_compiler() is None, reason="no C compiler (cc), whose code this runs")
def test_a_step_of_one_world_does_not_call_jax(m, sim):
    sim.step(np.ones(m.nu))
    assert type(sim._state[0]) is np.ndarray
