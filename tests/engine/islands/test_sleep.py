"""Sleep against the oracle: who falls asleep when, who wakes by what, and that what sleeps stands still."""

import functools

import jax
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.step.forward import step_by_stages
from validation.oracle import oracle_data
from validation.stages import host, load

STEP = jax.jit(jaxsim.step)

# a box and a ball on the floor, a stack of two, a driven arm (never), a pendulum at rest tied to another, an init tree
SCENE = """
<mujoco><option timestep="0.005" tolerance="1e-12" iterations="100" sleep_tolerance="2e-3">
  <flag sleep="enable"/></option>
<default><geom solref=".01 1"/></default>
<worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/><site name="s"/></body>
  <body name="low" pos="1 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="high" pos="1 0 .3"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="arm" pos="-1 0 .5"><joint name="arm" axis="0 1 0" damping="1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/></body>
  <body name="p1" pos="2 0 1"><joint name="p1" axis="0 1 0" damping=".3" frictionloss=".1"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04" contype="0" conaffinity="0"/></body>
  <body name="p2" pos="2 .5 1"><joint name="p2" axis="0 1 0" damping=".3" range="-5 60"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04" contype="0" conaffinity="0"/></body>
  <body name="never" pos="3 0 .1" sleep="never"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="init" pos="4 0 .0999" sleep="init"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="drop" pos="0 0 .5"><freejoint/><geom size=".08" pos="0 0 .02"/></body>
</worldbody>
<equality><joint name="tie" joint1="p1" joint2="p2" active="false"/></equality>
<actuator><position joint="arm" kp="5"/></actuator>
<sensor><framelinvel objtype="site" objname="s"/><accelerometer site="s"/><jointvel joint="p1"/><clock/></sensor>
</mujoco>
"""


@functools.cache
def models():
    mj_model = load(SCENE)
    return mj_model, jaxsim.from_mujoco(mj_model, max_contacts=40)


def same_steps(mj_data, steps):
    """One step of both from every state of the oracle's run; gives the sleep states that were seen."""
    mj_model, m = models()
    blank, seen = make(m), set()
    for _ in range(steps):
        d = oracle_data(m, blank, mj_data)
        mujoco.mj_step(mj_model, mj_data)
        d = STEP(m, d)
        seen.add(tuple(mj_data.tree_asleep.tolist()))
        np.testing.assert_array_equal(d.tree_asleep, mj_data.tree_asleep)
        for name in ("qpos", "qvel", "sensordata"):
            np.testing.assert_allclose(getattr(d, name), getattr(mj_data, name), atol=2e-6, err_msg=name)
        derived = jaxsim.update_sleep(m, d)
        for name in ("tree_awake", "body_awake", "ntree_awake", "nbody_awake", "nparent_awake", "nv_awake"):
            np.testing.assert_array_equal(derived[name], getattr(mj_data, name), err_msg=name)
        n = mj_data.nbody_awake
        np.testing.assert_array_equal(derived["body_awake_ind"][:n], mj_data.body_awake_ind[:n])
    return seen


@functools.cache
def make(m):
    return jaxsim.make_data(m)


def test_trees_of_policy_init_start_asleep():
    mj_model, m = models()
    mj_data = mujoco.MjData(mj_model)
    np.testing.assert_array_equal(make(m).tree_asleep, mj_data.tree_asleep)
    assert (mj_data.tree_asleep >= 0).sum() == 1


def settled(steps=260):
    mj_model, _ = models()
    mj_data = mujoco.MjData(mj_model)
    for _ in range(steps):
        mujoco.mj_step(mj_model, mj_data)
    return mj_data


def test_the_run_into_sleep_equals_the_oracles():
    mj_model, _ = models()
    mj_data = mujoco.MjData(mj_model)
    seen = same_steps(mj_data, 150)
    assert len(seen) > 10 and (mj_data.tree_asleep >= 0).sum() >= 4


def push(mj_model, data):
    data.xfrc_applied[mj_model.body("box").id, 0] = 1.0


def pull(mj_model, data):
    data.qfrc_applied[mj_model.joint("p2").dofadr[0]] = 0.1


def move(mj_model, data):
    data.qpos[mj_model.body("low").jntadr[0] * 0 + 9] += 0.01  # the stack's lower box, up


def kick(mj_model, data):
    data.qvel[mj_model.joint("p1").dofadr[0]] = 1.0


def tie(mj_model, data):
    data.eq_active[0] = True


def hit(mj_model, data):
    adr = mj_model.jnt_qposadr[mj_model.body("drop").jntadr[0]]
    data.qpos[adr : adr + 3] = 1.05, 0, 0.47


@pytest.mark.parametrize("disturb", [push, pull, move, kick, tie, hit])
def test_what_wakes_a_tree_wakes_it_as_in_the_oracle(disturb):
    mj_model, _ = models()
    mj_data = settled()
    assert (mj_data.tree_asleep >= 0).sum() >= 6
    disturb(mj_model, mj_data)
    before = mj_data.tree_asleep.copy()
    same_steps(mj_data, 12)
    assert (before != mj_data.tree_asleep).any()


def test_sleepers_keep_their_bits():
    _, m = models()
    d = oracle_data(m, make(m), settled())
    first = STEP(m, d)
    last = first
    for _ in range(5):
        last = STEP(m, last.replace(ctrl=np.ones(1)))
    asleep = np.asarray(first.tree_asleep)[m.dof_treeid] >= 0
    assert asleep.sum() >= 24 and not np.asarray(last.qvel)[asleep].any()
    trees = m.body_treeid[m.jnt_bodyid]
    for joint in np.flatnonzero(np.asarray(first.tree_asleep)[trees] >= 0):
        adr = m.jnt_qposadr[joint]
        width = (7, 4, 1, 1)[m.jnt_type[joint]]
        np.testing.assert_array_equal(first.qpos[adr : adr + width], d.qpos[adr : adr + width])
        np.testing.assert_array_equal(last.qpos[adr : adr + width], first.qpos[adr : adr + width])


def test_nothing_sleeps_without_the_flag():
    _, m = models()
    off = m.replace(opt=m.opt.replace(enableflags=0))
    plain = jax.make_jaxpr(step_by_stages)(off, jaxsim.make_data(off))
    assert len(plain.eqns) < len(jax.make_jaxpr(step_by_stages)(m, make(m)).eqns)
    assert (np.asarray(jaxsim.make_data(off).tree_asleep) == -11).all()


@pytest.mark.slow
def test_gradients_are_finite_beside_sleepers():
    _, m = models()
    d = oracle_data(m, make(m), settled())
    grad = jax.jit(jax.grad(lambda q: jaxsim.step(m, d.replace(qvel=q)).qvel.sum()))(d.qvel)
    assert np.isfinite(grad).all() and np.abs(grad).max() > 0


# a hinge held by its actuator that begins asleep, and one that moves
BEGINS_ASLEEP = """
<mujoco><option><flag sleep="enable"/></option>
<worldbody>
  <body sleep="init"><joint name="held" axis="0 1 0"/><geom name="ball" size=".1" pos=".3 0 0"/></body>
  <body pos="0 2 0"><joint axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body>
</worldbody>
<actuator><intvelocity joint="held" kp="5" actrange="-1 1"/></actuator>
<sensor><jointpos joint="held"/><framelinacc objtype="geom" objname="ball"/></sensor>
</mujoco>"""


def test_forces_of_trees_that_begin_asleep_are_zero_and_a_rollout_keeps_them_asleep():
    mj_model = load(BEGINS_ASLEEP)
    mj_data, m = mujoco.MjData(mj_model), jaxsim.from_mujoco(mj_model)
    start = d = jaxsim.make_data(m).replace(ctrl=np.ones(1))
    mj_data.ctrl[:] = 1
    for _ in range(3):
        mujoco.mj_step(mj_model, mj_data)
        d = STEP(m, d)
    end, _ = jaxsim.rollout(m, start, nstep=3)
    sim = jaxsim.Simulation(m)
    sim.step(np.ones(1), n=3)
    assert mj_data.tree_asleep[0] == 0
    for name in ("qfrc_smooth", "qacc_smooth", "qacc", "sensordata", "act_dot", "act", "qpos", "tree_asleep"):
        theirs = getattr(mj_data, name)
        for ours in (d, end, sim) if name in ("qpos", "act", "tree_asleep", "sensordata") else (d, sim):
            np.testing.assert_allclose(getattr(ours, name), theirs, atol=1e-6, err_msg=name)


# a double pendulum with springs that a ball wakes, a hinge that begins asleep, and tendons with actuators on both;
# cameras and lights that follow the centre of mass of all
TENDONS = """
<mujoco><option timestep="0.005" sleep_tolerance=".05" tolerance="1e-12" iterations="100">
  <flag sleep="enable" energy="enable"/></option>
<worldbody><site name="top" pos="0 0 1.4"/>
  <camera mode="trackcom" pos="0 -3 1"/><camera mode="targetbodycom" target="world" pos="0 -3 1"/>
  <light mode="targetbodycom" target="world" pos="2 -3 1"/><light mode="targetbodycom" target="ball" pos="2 -3 1"/>
  <body pos="0 0 1" sleep="allowed"><joint name="a" axis="0 1 0" damping=".5" stiffness="3" springref="3"/>
    <camera mode="targetbodycom" target="world"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04"/><site name="a" pos="0 0 -.2"/>
    <body pos="0 0 -.4"><joint axis="0 1 0" damping=".5"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.1" size=".04"/><site name="a2" pos="0 0 -.2"/></body></body>
  <body pos="4 0 1" sleep="init"><joint name="i" axis="0 1 0" stiffness="2" ref="10"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04"/><site name="i" pos="0 0 -.2"/></body>
  <body name="ball" pos="0 0 1.5"><freejoint/><geom size=".03"/></body>
</worldbody>
<tendon>
  <spatial name="s" stiffness="3" springlength=".1" armature=".01"><site site="top"/><site site="a"/></spatial>
  <spatial limited="true" range=".01 .5"><site site="a"/><site site="a2"/></spatial>
  <spatial name="si" stiffness="3"><site site="top"/><site site="i"/></spatial>
  <fixed name="f"><joint joint="i" coef="2"/><joint joint="a" coef="3"/></fixed>
</tendon>
<actuator><motor tendon="s" gear="3"/><motor tendon="si" gear="2"/><motor tendon="f"/><motor joint="i"/></actuator>
</mujoco>"""


def test_what_belongs_to_sleeping_trees_is_the_oracles():
    mj_model = load(TENDONS)
    mj_data, m = mujoco.MjData(mj_model), jaxsim.from_mujoco(mj_model, max_contacts=5)
    d, seen, moment = make(m), set(), np.zeros((mj_model.nu, mj_model.nv))
    for _ in range(60):
        mujoco.mj_step(mj_model, mj_data)
        d = STEP(m, d)
        seen.add(tuple(mj_data.tree_asleep[:2] >= 0))
        sparse = (mj_data.moment_rownnz, mj_data.moment_rowadr, mj_data.moment_colind)
        mujoco.mju_sparse2dense(moment, mj_data.actuator_moment, *sparse)
        np.testing.assert_allclose(d.actuator_moment, moment, atol=1e-5)
        for name in ("tree_asleep", "ten_length", "ten_J", "actuator_length", "energy", "qfrc_spring", "qfrc_passive"):
            np.testing.assert_allclose(getattr(d, name), getattr(mj_data, name), atol=1e-4, err_msg=name)
        for name in ("M", "cam_xpos", "cam_xmat", "light_xpos", "light_xdir"):
            np.testing.assert_allclose(getattr(d, name), getattr(mj_data, name), atol=1e-5, err_msg=name)
    assert seen == {(False, True), (True, True)} and mj_data.tree_asleep[0] == -10  # woken by the last step


def test_data_of_a_model_on_the_host_begins_asleep():
    m = host(load(BEGINS_ASLEEP))
    np.testing.assert_array_equal(jaxsim.make_data(m).tree_asleep, mujoco.MjData(load(BEGINS_ASLEEP)).tree_asleep)
