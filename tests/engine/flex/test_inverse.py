"""Inverse dynamics and sensors of models with flexes against MuJoCo's; batches."""

import jax
import mujoco
import numpy as np

import jaxsim
from tests.engine.flex.cases import CONSTRAINED, scene
from validation.stages import assert_fields, exact, load, states, to_data

SENSORS = """<sensor><e_potential/><e_kinetic/><subtreecom body="p"/><subtreelinvel body="p"/><subtreeangmom body="p"/>
<framepos objtype="body" objname="f_1"/><framelinacc objtype="body" objname="f_4"/></sensor>"""
ROPE = scene(
    'type="grid" dim="1" count="5 1 1" mass="1"', '<edge stiffness="20" damping=".1"/><pin id="0"/>', extra=SENSORS
)


def test_inverse_dynamics_are_those_of_mujoco():
    model = exact(load(CONSTRAINED["cloth of held edges"]))
    m = jaxsim.from_mujoco(model)
    inverse = jax.jit(jaxsim.inverse)
    for data in states(model, 2, 1, noise=0.2):
        data.qacc[:] = np.random.default_rng(1).standard_normal(model.nv)
        d = inverse(m, to_data(m, data).replace(qacc=data.qacc))
        mujoco.mj_inverse(model, data)
        assert_fields(("qfrc_passive", "qfrc_constraint", "qfrc_inverse"), model, data, d, 1e-7)


def test_sensors_are_those_of_mujoco():
    model = exact(load(ROPE))
    m = jaxsim.from_mujoco(model)
    forward = jax.jit(jaxsim.forward)
    for data in states(model, 2, 3):
        d = forward(m, to_data(m, data))
        mujoco.mj_forward(model, data)
        assert_fields(("energy", "sensordata"), model, data, d, 1e-8)


def test_worlds_of_a_batch_are_what_they_are_alone():
    model = exact(load(ROPE))
    m = jaxsim.from_mujoco(model)
    worlds = [to_data(m, data) for data in states(model, 3, 3)]
    batch = jax.tree.map(lambda *x: np.stack(x), *worlds)
    together = jax.jit(jax.vmap(jaxsim.step, (None, 0)))(m, batch)
    alone = [jax.jit(jaxsim.step)(m, d) for d in worlds]
    for i, d in enumerate(alone):
        np.testing.assert_allclose(together.qvel[i], d.qvel, atol=1e-10)
        np.testing.assert_allclose(together.flexvert_xpos[i], d.flexvert_xpos, atol=1e-12)
