"""Vertices, edges, boxes and Jacobians of flexes, against MuJoCo's from the same states."""

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.flex.kinematics import edge_velocities
from tests.compiler.flex_cases import EXPLICIT, MACROS
from validation.stages import assert_fields, host, host_data, load

CASES = {**EXPLICIT, **MACROS}
FIELDS = ("flexvert_xpos", "flexelem_aabb", "flexedge_length", "flexedge_J", "flexvert_length", "flexvert_J")


def moved(model, seed, scale=0.3):
    """MuJoCo's data at random positions and velocities."""
    rng, data = np.random.default_rng(seed), mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, scale * rng.standard_normal(model.nv), 1)
    data.qvel[:] = rng.standard_normal(model.nv)
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    return data


@pytest.mark.parametrize("case", CASES)
def test_flexes_stand_where_mujoco_has_them(case):
    model = load(CASES[case])
    m = host(model)
    for seed in range(2):
        data = moved(model, seed)
        d = jaxsim.stages.flex(m, jaxsim.com_pos(m, jaxsim.kinematics(m, host_data(m, data))))
        d = d.replace(flexedge_velocity=edge_velocities(m, d, d.qvel))
        assert_fields((*FIELDS, "flexedge_velocity"), model, data, d, 1e-12)
