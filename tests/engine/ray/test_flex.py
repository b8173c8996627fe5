"""Rays against flexes, compared with MuJoCo's."""

from functools import partial

import jax
import mujoco
import numpy as np
import pytest

import jaxsim

XML = """
<mujoco><worldbody>
  <flexcomp name="rope" type="grid" dim="1" count="5 1 1" spacing=".1 .1 .1" pos="0 .5 0" radius=".03"/>
  <flexcomp name="cloth" type="grid" dim="2" count="4 4 1" spacing=".1 .1 .1" radius=".01"/>
  <flexcomp name="solid" type="grid" dim="3" count="4 4 4" spacing=".1 .1 .1" pos="0 -.5 0" radius=".005"/>
</worldbody></mujoco>
"""
MODEL = mujoco.MjModel.from_xml_string(XML)
DATA = mujoco.MjData(MODEL)
DATA.qpos[:] = 0.02 * np.random.default_rng(0).standard_normal(MODEL.nq)
for stage in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_flex):
    stage(MODEL, DATA)
M = jaxsim.load_model(XML)
# (layer, vertices, edges, faces, skin), flex
DRAWN = {
    "vertices of a rope": ((0, 1, 0, 0, 0), 0),
    "edges of a rope": ((0, 1, 1, 1, 1), 0),
    "faces of a cloth": ((0, 0, 0, 1, 0), 1),
    "skin of a cloth": ((0, 1, 0, 0, 1), 1),
    "inner layer of a solid": ((1, 1, 0, 1, 0), 2),
    "skin of a solid": ((0, 0, 0, 0, 1), 2),
    "nothing": ((0, 0, 0, 0, 0), 2),
}


def theirs(drawn, flex, pnt, vec):
    vertex, normal = np.full((1, 1), -1, np.int32), np.zeros((3, 1))
    return mujoco.mj_rayFlex(MODEL, DATA, *drawn, flex, pnt, vec, vertex, normal), vertex[0, 0], normal[:, 0]


@pytest.mark.parametrize("case", DRAWN)
def test_distance_vertex_and_normal_are_those_of_mujoco(case):
    drawn, flex = DRAWN[case]
    d = jaxsim.make_data(M).replace(flexvert_xpos=DATA.flexvert_xpos.copy())
    rng = np.random.default_rng(1)
    own = DATA.flexvert_xpos[MODEL.flex_vertadr[flex] + np.arange(MODEL.flex_vertnum[flex])]
    pnt = rng.standard_normal((80, 3))
    vec = own[rng.integers(0, len(own), 80)] + 0.03 * rng.standard_normal((80, 3)) - pnt
    program = jax.jit(jax.vmap(partial(jaxsim.ray_flex, M, d, *drawn, flex)))
    met = 0
    for *ours, p, v in zip(*program(pnt, vec), pnt, vec, strict=True):
        dist, vertex, normal = theirs(drawn, flex, p, v)
        np.testing.assert_allclose(ours[0], dist, atol=1e-9)
        if dist >= 0:
            met += 1
            assert int(ours[1]) == vertex
            np.testing.assert_allclose(ours[2], normal, atol=1e-7)
    assert met > 20 or not any(drawn)


def test_the_derivative_of_a_distance_is_that_of_differences():
    def distance(at):
        d = jaxsim.make_data(M).replace(flexvert_xpos=at)
        return jaxsim.ray_flex(M, d, 0, 0, 0, 1, 0, 1, np.array([0.02, 0.03, 1.0]), np.array([0.0, 0.01, -1.0]))[0]

    at, step = DATA.flexvert_xpos.copy(), np.random.default_rng(2).standard_normal(DATA.flexvert_xpos.shape)
    slope = np.sum(np.asarray(jax.grad(distance)(at)) * step)
    difference = (distance(at + 1e-6 * step) - distance(at - 1e-6 * step)) / 2e-6
    np.testing.assert_allclose(slope, difference, rtol=1e-6)
