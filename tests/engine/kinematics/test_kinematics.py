"""Frames of geoms that the reference takes for those of their bodies' inertia; how frames move."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.engine.kinematics import kinematics
from jaxsim.engine.structure import tables
from tests.paths import HUMANOID
from validation.stages import host, host_data, load, states

POINTS = np.random.default_rng(3).uniform(-0.1, 0.1, (12, 3)) * [1, 1.2, 1.4]
XML = f"""<mujoco><asset><mesh name="stone" vertex="{" ".join(map(str, POINTS.reshape(-1)))}"/></asset><worldbody>
<body pos="0 0 1"><freejoint/><inertial pos="{{}}" quat="{{}}" mass="1" diaginertia=".1 .2 .25"/>
<geom type="mesh" mesh="stone" euler="10 20 30" pos=".1 .2 .3"/></body></worldbody></mujoco>"""


def nearly_inertial() -> mujoco.MjModel:
    """A mesh whose frame differs from its body's inertial one by less than what the reference tells apart."""
    model = load(XML.format("0 0 0", "1 0 0 0"))
    text = [" ".join(map(str, x[0] + 4e-7)) for x in (model.geom_pos, model.geom_quat)]
    return load(XML.format(*text))


def test_what_is_nearly_in_the_inertial_frame_is_in_it_as_in_the_reference():
    model = nearly_inertial()
    assert model.geom_sameframe[0] == mujoco.mjtSameFrame.mjSAMEFRAME_INERTIA
    assert np.abs(model.geom_pos[0] - model.body_ipos[1]).max() > 1e-7  # else there is nothing to see
    m, data = host(model), states(model, 1)[0]
    mujoco.mj_kinematics(model, data)
    d = jaxsim.kinematics(m, host_data(m, data))
    for name in ("geom_xpos", "geom_xmat", "ximat", "xipos"):
        np.testing.assert_allclose(getattr(d, name).reshape(-1), getattr(data, name).reshape(-1), atol=1e-14)


# a capsule and a site nearly in the inertial frame, one turned only, and frames nearly those of the bodies
NEAR = """<mujoco><worldbody><body pos="0 0 1"><freejoint/>
<inertial pos=".1 .2 .3" quat="0.6 0.8 0 0" mass="1" diaginertia=".1 .2 .25"/>
<geom type="capsule" size=".1 .2" pos=".1000003 .2 .3" quat="0.6000004 0.7999997 0 0"/>
<geom type="box" size=".1 .2 .1" pos="1 .2 .3" quat="0.6000004 0.7999997 0 0"/>
<site pos=".1 .2000004 .3" quat=".6 .8 0 0"/>
<geom size=".1" pos="3e-7 0 0"/><site pos=".3 0 0" quat="1 0 3e-7 0"/>
<body><joint/><inertial pos="0 2e-7 0" quat="1 3e-7 0 0" mass="1" diaginertia=".1 .2 .25"/></body></body>
</worldbody></mujoco>"""


def test_frames_within_the_tolerance_are_those_that_they_count_as():
    model = load(NEAR)
    m, data = host(model), states(model, 1)[0]
    np.testing.assert_array_equal(m.near_frames, np.arange(2, 8))
    mujoco.mj_kinematics(model, data)
    d = jaxsim.kinematics(m, host_data(m, data))
    for name in ("geom_xpos", "geom_xmat", "site_xpos", "site_xmat", "ximat", "xipos"):
        np.testing.assert_allclose(getattr(d, name).reshape(-1), getattr(data, name).reshape(-1), atol=1e-14)


def test_what_is_moved_away_from_the_inertial_frame_is_moved():
    m = jaxsim.from_mujoco(nearly_inertial())

    def height(shift):
        moved = m.replace(geom_pos=m.geom_pos.at[:, 2].add(shift))
        return jaxsim.kinematics(moved, jaxsim.make_data(m)).geom_xpos[0, 2]

    value, slope = jax.value_and_grad(height)(0.5)
    np.testing.assert_allclose(value, height(0.0) + 0.5, atol=1e-6)
    np.testing.assert_allclose([slope, jax.grad(height)(0.0)], 1.0, atol=1e-12)


@pytest.mark.parametrize("dense", (True, False))
def test_frames_move_as_the_sum_of_what_the_nodes_above_them_do(dense, monkeypatch):
    """Against the rounds of the composition, differentiated one after the other."""
    monkeypatch.setattr(tables, "DENSE_NODES", 128 if dense else 0)
    m = jaxsim.load_model(HUMANOID)
    nodes = tables.nodes(m)
    assert (nodes.ancestor is not None) == dense
    rng = np.random.default_rng(0)
    frame = rng.standard_normal((m.nbody + m.njnt, 7))
    frame[0] = [0, 0, 0, 1, 0, 0, 0]
    frame[:, 3:] /= np.linalg.norm(frame[:, 3:], axis=1, keepdims=True)
    move = rng.standard_normal(frame.shape) * (np.arange(len(frame)) > 0)[:, None]
    move[:, 3:] -= frame[:, 3:] * (move[:, 3:] * frame[:, 3:]).sum(1, keepdims=True)  # quaternions stay units
    ours = jax.jvp(lambda x: kinematics.compose(nodes, x), (jnp.asarray(frame),), (jnp.asarray(move),))
    rounds = jax.jvp(lambda x: kinematics.compose_by_jumps(nodes.jumps, x), (jnp.asarray(frame),), (jnp.asarray(move),))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), ours, rounds)


def test_frames_that_are_composed_one_after_the_other_are_those_of_the_rounds():
    m = jaxsim.load_model(HUMANOID)
    nodes = tables.nodes(m)
    frame = np.random.default_rng(0).standard_normal((m.nbody + m.njnt, 7))
    frame[0] = [0, 0, 0, 1, 0, 0, 0]
    frame[:, 3:] /= np.linalg.norm(frame[:, 3:], axis=1, keepdims=True)
    sequential = kinematics.compose_sequentially(nodes, jnp.asarray(frame))
    np.testing.assert_allclose(sequential, kinematics.compose_by_jumps(nodes.jumps, frame), rtol=1e-9, atol=1e-9)


TREE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos=".1 .2 1" quat=".8 .6 0 0"><freejoint/>
<geom size=".1" pos=".1 0 0" quat=".6 0 .8 0"/><body pos="0 .3 0" quat=".6 0 .8 0"><joint axis="0 .6 .8" pos=".05 0 0"/>
<joint type="slide" axis="1 0 0"/><geom type="box" size=".1 .2 .3"/><body pos=".2 0 .1"><joint type="ball"/>
<geom size=".1"/><site pos="0 .1 0"/></body></body></body></worldbody></mujoco>"""
NUMBERS = ("body_pos", "body_quat", "body_ipos", "jnt_pos", "jnt_axis", "geom_pos", "geom_quat", "site_pos")


@pytest.mark.parametrize("field", ["qpos", *NUMBERS])
def test_frames_have_the_derivatives_of_differences_by_all_numbers(field):
    """Along the lengths of quaternions and by the world's own frame too: nothing moves then."""
    m = jaxsim.load_model(TREE)
    d = jaxsim.make_data(m)
    rng = np.random.default_rng(4)
    d = d.replace(qpos=d.qpos + 0.3 * rng.standard_normal(m.nq))
    at = d.qpos if field == "qpos" else getattr(m, field)

    @jax.jit
    def frames(x):
        by = (m, d.replace(qpos=x)) if field == "qpos" else (m.replace(**{field: x}), d)
        out = jaxsim.kinematics(*by)
        return out.xpos, out.xquat, out.xmat, out.xipos, out.geom_xpos, out.geom_xmat, out.xanchor, out.xaxis

    way, h = jnp.asarray(rng.standard_normal(at.shape)), 1e-6
    slope = jax.jvp(frames, (at,), (way,))[1]
    for found, after, before in zip(slope, frames(at + h * way), frames(at - h * way), strict=True):
        np.testing.assert_allclose(found, (after - before) / (2 * h), atol=1e-8)  # differences of 1e-6 know nine digits
