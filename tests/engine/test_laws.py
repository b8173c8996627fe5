"""Laws that no reference is needed for: energy, momentum, inverse dynamics, determinism, neighbours, counters."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.core.types import DisableBit
from tests.paths import MODELS
from validation.stages import assert_fields, exact, load, states, to_data

STEP = jax.jit(jaxsim.step)
BATCH = jax.jit(jax.vmap(jaxsim.step, in_axes=(None, 0)))

CHAIN = """
<mujoco><option integrator="RK4" timestep="0.0025"><flag energy="enable" contact="disable"/></option>
<default><geom type="capsule" size=".03"/><joint armature=".02"/></default>
<worldbody><body pos="0 0 2"><joint axis="0 1 0"/><geom fromto="0 0 0 .4 0 0"/>
  <body pos=".4 0 0"><joint axis="0 1 0"/><geom fromto="0 0 0 .4 0 0"/>
  <body pos=".4 0 0"><joint type="ball"/><geom fromto="0 0 0 .4 .1 0"/>
  <body pos=".4 .1 0"><joint axis="1 0 1"/><geom fromto="0 0 0 .3 0 .1"/></body></body></body></body>
</worldbody></mujoco>
"""
FREE = """
<mujoco><option integrator="RK4" timestep="0.005" gravity="0 0 0"/>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody><body name="free" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .05"/>
  <body pos=".2 0 0"><joint axis="0 1 0" stiffness="3" damping=".1"/>
  <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
  <body pos=".3 0 0"><joint type="ball" damping=".05"/><geom type="box" size=".05 .1 .02"/></body></body></body>
</worldbody><sensor><subtreelinvel body="free"/><subtreeangmom body="free"/></sensor></mujoco>
"""


def run(m, d, steps, read):
    def one(d, _):
        d = jaxsim.step(m, d)
        return d, read(d)

    return jax.jit(lambda d: jax.lax.scan(one, d, None, length=steps))(d)[1]


def test_energy_of_a_chain_drifts_no_more_than_in_the_reference():
    mj_model = load(CHAIN)
    m, mj_data = jaxsim.from_mujoco(mj_model), mujoco.MjData(mj_model)
    energy = np.asarray(run(m, jaxsim.make_data(m), 4000, lambda d: d.energy.sum()))
    theirs = []
    for _ in range(4000):
        mujoco.mj_step(mj_model, mj_data)
        theirs.append(mj_data.energy.sum())
    theirs = np.array(theirs)
    assert abs(energy - energy[0]).max() <= 1.01 * abs(theirs - theirs[0]).max() + 1e-12
    assert abs(energy - energy[0]).max() < 1e-3 * abs(theirs[0])


def test_momentum_of_a_free_system_stays():
    m = jaxsim.from_mujoco(load(FREE))
    d = jaxsim.make_data(m).replace(qvel=np.random.default_rng(0).standard_normal(m.nv))
    momentum = np.asarray(run(m, d, 400, lambda d: d.sensordata))
    assert np.abs(momentum[0]).max() > 0.1
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), atol=1e-6)


NAMES = ["hopper", "cartpole", "humanoid"]


@functools.cache
def moving(name):
    m = jaxsim.load_model(MODELS / f"{name}.xml")
    m = m.replace(opt=m.opt.replace(tolerance=1e-15, ls_tolerance=1e-12, iterations=100))
    rng = np.random.default_rng(0)
    d = jaxsim.make_data(m, keyframe=0 if m.nkey else None)
    return m, d.replace(qvel=0.3 * rng.standard_normal(m.nv), ctrl=0.3 * rng.standard_normal(m.nu))


@pytest.mark.parametrize("name", ["hopper", *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES[1:])])
def test_inverse_undoes_forward_on_our_models(name):
    m, d = moving(name)
    d = jax.jit(lambda m, d: jaxsim.inverse(m, jaxsim.forward(m, d)))(m, d)
    force = np.asarray(d.qfrc_applied + d.qfrc_actuator)
    np.testing.assert_allclose(d.qfrc_inverse, force, atol=1e-8 * max(1, np.abs(force).max()))


def worlds(count):
    m, d = moving("hopper")
    rng = np.random.default_rng(1)
    batch = jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), d)
    return m, batch.replace(
        qvel=jnp.asarray(rng.standard_normal((count, m.nv))), ctrl=jnp.asarray(rng.standard_normal((count, m.nu)))
    )


def same_bits(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def test_the_same_program_gives_the_same_bits():
    m, batch = worlds(5)
    same_bits(BATCH(m, batch), BATCH(m, batch))


def test_the_place_in_a_batch_changes_nothing():
    m, batch = worlds(5)
    order = np.array([3, 0, 4, 2, 1])
    shuffled = BATCH(m, jax.tree.map(lambda x: x[order], batch))
    same_bits(jax.tree.map(lambda x: x[order], BATCH(m, batch)), shuffled)


@pytest.mark.parametrize("bad", [np.nan, 1e12])
def test_a_world_that_diverges_leaves_its_neighbours_alone(bad):
    m, batch = worlds(5)
    other = np.array([0, 1, 3, 4])
    there = BATCH(m, batch.replace(qvel=batch.qvel.at[2, 1].set(bad)))
    same_bits(jax.tree.map(lambda x: x[other], there), jax.tree.map(lambda x: x[other], BATCH(m, batch)))
    assert there.warning.number[2].sum() > 0 and np.isfinite(there.qpos).all()


SPARSE = """
<mujoco><worldbody><geom type="plane" size="9 9 1"/>
<body pos="0 0 .09"><freejoint/><geom size=".1"/></body><body pos="1 0 .09"><freejoint/><geom size=".1"/></body>
<body pos="1 0 .28"><freejoint/><geom size=".1"/></body>
<body pos="3 0 1"><joint axis="0 1 0" frictionloss=".1"/><geom size=".1" pos=".1 0 0"/></body></worldbody></mujoco>
"""


@pytest.mark.parametrize("flags", [0, DisableBit.ISLAND])
def test_islands_on_or_off_give_the_references_answer(flags):
    mj_model = exact(load(SPARSE, disableflags=int(flags)))
    m = jaxsim.from_mujoco(mj_model)
    mj_data = states(mj_model, 1, skip=3)[0]
    d = STEP(m, to_data(m, mj_data))
    mujoco.mj_step(mj_model, mj_data)
    assert mj_data.nefc > 10
    assert_fields(["nefc", "qfrc_constraint", "qacc", "qvel", "qpos"], mj_model, mj_data, d, 1e-8)


def test_counters_of_overflow_outlive_a_world_that_starts_anew_but_not_a_reset():
    mj_model = load(SPARSE)
    m = jaxsim.from_mujoco(mj_model, max_contacts=2)
    d = STEP(m, jaxsim.make_data(m))
    lost = int(d.overflow_contacts)
    assert lost > 0 and int(d.maxuse_con) == 2 + lost
    d = STEP(m, d.replace(qvel=d.qvel.at[0].set(np.nan)))
    assert float(d.time) == float(m.opt.timestep) and int(d.overflow_contacts) == 2 * lost
    fresh = jaxsim.reset_data(m, d)
    assert int(fresh.overflow_contacts) == int(fresh.maxuse_con) == 0
